"""Rebuilds what a bus remembers: identities from its disks, roles and terms from its sites.

For `twinlog recover`. A site that answers says itself what it is and which move was made last; of one
that does not run the same is read from its disks. A site of which neither is to be had may be the active
one of a later term: then nothing is decided unless a person says which site is active. Nothing is written
here and nothing started. The pure half comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from twinlog.errors import SiteError, TwinlogError, UsageError
from twinlog.sites import recovery, remains
from twinlog.sites.home import MECHANISMS, Home
from twinlog.sites.ports import free_ports
from twinlog.sites.recovery import Difference, NodeFiles
from twinlog.sites.state import BusState, StateFile
from twinlog.spec.model import Role
from twinlog.traffic import agent, journal, promotions
from twinlog.traffic.moves import STEPS, Kind, Move, Step, decode
from twinlog.wire import notes, roles
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.roles import Standing

PATIENCE = Patience(connect_s=2.0, request_s=5.0, total_s=10.0)


class Voice(StrEnum):
    """Who spoke for a site."""

    SITE = "the site"
    DISKS = "its disks"
    NOBODY = "nobody"


@dataclass(frozen=True)
class Told:
    """What was said of one site."""

    by: Voice
    standing: Standing | None = None
    move: Move | None = None
    trouble: str = ""  # why the site itself does not answer


@dataclass(frozen=True)
class Reign:
    """Which site is active, in which term, and which one a failover left behind."""

    active: str
    term: int
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recovered:
    """What the bus should remember, in what it remembers otherwise, and who said so."""

    state: BusState
    differences: tuple[Difference, ...]
    told: Mapping[str, Told]
    remarks: tuple[str, ...]
    forgotten: Move | None = None  # with the points of a failover that is not known here any more


def reign(told: Mapping[str, Told], kept: Move | None, before: Reign, active: str | None = None) -> Reign:
    """Who is active by all that was said.

    `kept` is the last move as this machine knows it, `before` what was remembered or declared, and
    `active` the word of a person, which counts more than anybody's.
    """
    moves = [kept, *(one.move for one in told.values())]
    said = [one.standing for one in told.values() if one.standing is not None]
    said += [
        Standing(one.bus, one.target, Role.ACTIVE, one.term) for one in moves if one and _has_opened(one)
    ]
    lost = _lost(journal.newest(moves))
    if active is not None:
        term = max((one.term for one in said), default=before.term)
        return Reign(active, term, tuple(site for site in lost if site != active))
    if not said:
        return before
    term = max(one.term for one in said)
    found = {one.site for one in said if one.role is Role.ACTIVE and one.term == term}
    others = set(told) - {one.site for one in said}
    if not found and len(others) == 1:
        found = others  # the standby of a term has an active beside it
    if len(found) != 1:
        raise SiteError(
            f"{len(found)} sites are said to be active in term {term}", hint="twinlog recover --active SITE"
        )
    (site,) = found
    if doubtful := [name for name, one in told.items() if one.by is Voice.NOBODY and name != site]:
        raise SiteError(
            f"nobody can be asked whether site {doubtful[0]} was promoted: {told[doubtful[0]].trouble}",
            where=f"site {doubtful[0]}",
            hint=f"if it never was: twinlog recover --active {site}",
        )
    return Reign(site, term, lost)


def _has_opened(move: Move) -> bool:
    """True if a move has made its target active."""
    steps = STEPS[move.kind]
    opens = steps.index(Step.OPEN) if Step.OPEN in steps else -1
    return not move.called_off and move.progress > opens


def _lost(move: Move | None) -> tuple[str, ...]:
    """The site that a move left behind and that has not returned since."""
    if move is None or (move.kind is Kind.SWITCHOVER and not move.lost):
        return ()
    has_returned = move.kind is Kind.RETURN and move.progress > STEPS[Kind.RETURN].index(Step.CUT)
    return () if has_returned else (move.source,)


def forgotten(move: Move | None, known: Collection[int]) -> Move | None:
    """The last move, if it has the points of a failover whose term is not among the known ones."""
    return move if move is not None and move.points and move.term not in known else None


class Draft(StateFile):
    """A state that is not written down yet, by which its sites can be reached."""

    def __init__(self, directory: Path, state: BusState) -> None:
        super().__init__(directory)
        self._state = state

    def read(self) -> BusState | None:
        """The state as it may become."""
        return self._state


def recover(home: Home, active: str | None = None) -> Recovered:
    """Find out what the bus should remember."""
    before, remarks = _remembered(home)
    files = remains.node_files(home.directory)
    _refuse(home, before, files)
    state = recovery.rebuilt(home.bus, before, files)
    state.directory = str(home.directory)
    renumbered = recovery.give_missing_ports(home.bus, state, _Ports(home, state))
    remarks += [f"{one}: found closed to clients, gets new ports" for one in renumbered]
    draft = Home(home.bus, home.file)
    draft.state_file = Draft(home.directory, state)
    told = {site: _ask(draft, site) for site in home.bus.sites}
    kept = _kept_move(home)
    now = reign(told, kept, Reign(state.active, state.term, tuple(state.lost)), active)
    state.active, state.term, state.lost = now.active, now.term, list(now.lost)
    for site, one in told.items():
        if one.by is Voice.SITE:
            state.applied[site] = _applied(draft, site)
    for site, known in state.sites.items():
        known.agent_port = known.agent_port or _agent_port(home, site)
    found = [*recovery.differences(before, state)]
    last = journal.newest([kept, *(one.move for one in told.values())])
    missing = forgotten(last, [one.term for one in promotions.read(home)])
    if missing is not None:
        found.append(
            Difference(f"where term {missing.term} took over", "nothing", "the points of each topic")
        )
    return Recovered(state, tuple(found), told, tuple(remarks), missing)


def _remembered(home: Home) -> tuple[BusState | None, list[str]]:
    try:
        return home.state_file.read(), []
    except SiteError as error:
        return None, [str(error)]


def _refuse(home: Home, before: BusState | None, files: Sequence[NodeFiles]) -> None:
    found = {one.site for one in files} | set(before.sites if before is not None else ())
    if not found:
        raise UsageError(
            "no node of this bus was ever started here", where=str(home.directory), hint="twinlog up"
        )
    for site in sorted(found - set(home.bus.sites)):
        raise SiteError(
            f"site {site} is there and the file does not have it",
            where=str(home.file),
            hint="give it its lines back; is it the right file?",
        )
    for site, declared in home.bus.sites.items():
        if declared.remote and site not in found:
            raise SiteError(
                f"all nodes of site {site} run elsewhere, and what they were given cannot be found here",
                where=str(home.file),
                hint="is there a copy of state.json beside its bundles? An old one will do",
            )


class _Ports:
    """Finds ports that nobody uses, and that no node of the bus has."""

    def __init__(self, home: Home, state: BusState) -> None:
        self._seed = str(home.directory)
        nodes = [node for site in state.sites.values() for node in site.nodes.values()]
        self._taken = {port for node in nodes for port in node.ports.values()}

    def __call__(self, host: str, count: int) -> list[int]:
        ports = free_ports(host, count, seed=self._seed, avoid=frozenset(self._taken))
        self._taken.update(ports)
        return ports


def _ask(home: Home, site: str) -> Told:
    """What a site says of itself, or what its disks do."""
    state = home.state()
    if not home.bus.sites[site].exists_already and site not in state.sites:
        return Told(Voice.DISKS, trouble="it was never brought up")
    try:
        with Cluster(home.admin_access(site), patience=PATIENCE) as cluster:
            told = Told(Voice.SITE, roles.read(cluster), decode(notes.read(cluster, journal.NOTE)))
    except TwinlogError as error:
        told = _from_disks(home, site, str(error))
    if told.standing is not None and told.standing.bus != home.bus.bus:
        raise UsageError(
            f"site {site} belongs to bus '{told.standing.bus}' and the file declares '{home.bus.bus}'",
            where=str(home.file),
            hint="give the bus its old name back; is it the right file?",
        )
    return told


def _from_disks(home: Home, site: str, trouble: str) -> Told:
    if home.bus.sites[site].exists_already:
        return Told(Voice.NOBODY, trouble=trouble)
    disks = [path for node in home.layout(site).brokers if not node.remote for path in node.data]
    standing = roles.decode(remains.note_on_disks(disks, roles.NOTE))
    if standing is None and any(node.remote for node in home.layout(site).brokers):
        return Told(Voice.NOBODY, trouble=trouble)
    return Told(Voice.DISKS, standing, decode(remains.note_on_disks(disks, journal.NOTE)), trouble)


def _kept_move(home: Home) -> Move | None:
    try:
        return decode((home.directory / journal.DIRECTORY / journal.FILE).read_bytes())
    except FileNotFoundError:
        return None


def _applied(home: Home, site: str) -> dict[str, str]:
    """Whose present password a site takes: Kafka tells nobody which one it has, so it is tried."""
    found = {}
    for name, user in home.bus.users.items():
        if user.auth not in MECHANISMS:
            continue
        try:
            with Cluster(home.user_access(name, site), patience=PATIENCE) as cluster:
                cluster.brokers()
            found[name] = home.passwords.fingerprint(name, user.password)
        except TwinlogError:
            continue  # `plan` will say that the site is to be given it
    return found


def _agent_port(home: Home, site: str) -> int:
    """Where a site's agent is asked now, if one runs: the others still look for it there."""
    process = agent.background(home, site).find()
    if process is None:
        return 0
    try:
        open_now = process.net_connections(kind="tcp")
    except psutil.Error:
        return 0
    ports = {one.laddr.port for one in open_now if one.status == psutil.CONN_LISTEN}
    return ports.pop() if len(ports) == 1 else 0
