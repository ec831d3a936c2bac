"""The three voters of a bus: where they are asked, by which papers, what they know.

There are voters only with `promote: automatic`: one beside each site, in its agent, and the witness. With
`promote: ask` a person is the vote, and nothing here is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twinlog.errors import UsageError
from twinlog.sites.home import Home
from twinlog.spec.address import is_loopback
from twinlog.spec.model import Promote
from twinlog.traffic.journal import DIRECTORY
from twinlog.traffic.poll import Papers, collect
from twinlog.traffic.timing import Timing
from twinlog.traffic.votes import MAJORITY, VOTERS, WITNESS, Answer, Memory, Request, Wish, voter_of
from twinlog.traffic.witness import Seat, enrol, read_memory
from twinlog.wire.addresses import HostPort

MANAGER = "manager"  # who may ask what voters know, and nothing else


def is_used(home: Home) -> bool:
    """True if sites are active by lease."""
    return home.bus.gate.promote is Promote.AUTOMATIC


def timing(home: Home) -> Timing:
    """How long leases last."""
    return Timing.for_failover(home.bus.gate.failover_after)


def addresses(home: Home) -> dict[str, HostPort]:
    """Where each voter is asked, by its name."""
    found = {voter_of(site): _agent(home, site) for site in home.bus.sites}
    witness = home.bus.gate.witness
    if witness is None:
        raise UsageError("the file names no witness", where=str(home.file), hint="gate: {witness: host:port}")
    return {**found, WITNESS: HostPort.parse(witness)}


def _agent(home: Home, site: str) -> HostPort:
    declared = home.bus.sites[site]
    if declared.agent is not None:
        return HostPort.parse(declared.agent)
    return HostPort(declared.advertise or declared.listen, home.state().sites[site].agent_port)


def seat(home: Home, name: str) -> Seat:
    """What a voter needs to be asked on this machine."""
    everybody = addresses(home)
    return Seat(
        name,
        everybody[name],
        home.directory / DIRECTORY / f"{name}.vote",
        Papers.issue(home.pki, home.bus.bus, name),
        {other: place for other, place in everybody.items() if other != name},
    )


def enrol_first(home: Home) -> None:
    """Give new voters of this machine their first memory: what the bus's own state says.

    The witness gets one only together with all others, before anybody was granted anything: a witness that
    lost its memory has to ask (`votes`), and one that is far away asks too.
    """
    state = home.state()
    memory = Memory(state.term, state.active, timing(home).lease_s)
    everybody = addresses(home)
    sites = {voter_of(site) for site in home.local_sites}
    new = {name for name in sites if read_memory(seat(home, name).path) is None}
    near = is_loopback(everybody[WITNESS].host)
    if near and new == everybody.keys() - {WITNESS}:
        new.add(WITNESS)
    for name in sorted(new):
        enrol(seat(home, name).path, memory)


def forgetful(home: Home) -> list[str]:
    """The voters that have no memory yet or do not answer."""
    told = ask(home, lambda told: len(told) == VOTERS)
    return [name for name in addresses(home) if name not in told or told[name].blank]


def ask(home: Home, enough: Callable[[Mapping[str, Answer]], bool] = lambda told: False) -> dict[str, Answer]:
    """What the voters know, of those that answer in time or until it is enough."""
    papers = Papers.issue(home.pki, home.bus.bus, MANAGER)
    return collect(addresses(home), Request(Wish.TELL), papers, timing(home).answer_s, enough)


def lacks_lease(home: Home, site: str, term: int) -> str:
    """Why a site does not hold the lease of a term; empty if two voters say that it does."""

    def gave(told: Mapping[str, Answer]) -> int:
        return sum(one.holder == site and one.term >= term and one.wait_s > 0 for one in told.values())

    told = ask(home, lambda told: gave(told) >= MAJORITY)
    if gave(told) >= MAJORITY:
        return ""
    return f"{gave(told)} of {len(told)} voters that answer have given it"


def next_term(home: Home) -> int:
    """A term that nobody has heard of."""
    known = [home.state().term]
    if is_used(home):
        known += [answer.term for answer in ask(home).values()]
    return max(known) + 1
