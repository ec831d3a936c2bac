"""Automatic promotion on real sites: agents, a witness and a manager, and nobody who confirms anything.

One bus of two small sites serves all tests here, in the order in which they stand. Times are for people to
read: a machine that runs other tests too may take longer than a quiet one.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.mortals import killed_at_every_step
from twinlog.errors import SiteError, TwinlogError
from twinlog.progress import Silent
from twinlog.sites import processes
from twinlog.sites.ports import free_ports
from twinlog.spec.model import Role
from twinlog.traffic import agent, beginning
from twinlog.traffic.crossing import carry_out
from twinlog.traffic.ground import Ground
from twinlog.traffic.journal import DIRECTORY, Overtaken
from twinlog.traffic.moves import Kind, Move, Step
from twinlog.wire import offsets, roles
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

LOG = logging.getLogger("tests.clients")
LOG.setLevel(logging.CRITICAL)  # librdkafka tells of every connection that is closed

WAIT_S = 120.0
LOG_LINES = 60
PLACES = [("orders", 0)]
FILE = """\
bus: voting
kafka:
  broker.session.timeout.ms: 5000
  offsets.topic.num.partitions: 1
  transaction.state.log.num.partitions: 1
sites:
  a: {{brokers: 1}}
  b: {{brokers: 1}}
topics:
  orders: {{partitions: 1}}
users:
  app: {{produce: ["*"]}}
gate:
  address: 127.0.0.1:{ports[0]}
  tls_address: 127.0.0.1:{ports[1]}
  failover_after: 5s
  promote: automatic
  witness: 127.0.0.1:{ports[2]}
"""


@pytest.fixture(scope="module")
def voting(make_bus: MakeBus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bus]:
    """A bus whose mirror, manager, agents and witness run."""
    seed = str(tmp_path_factory.getbasetemp())
    bus = make_bus(FILE.format(ports=free_ports("127.0.0.1", 3, seed=seed, avoid=frozenset())))
    bus.done("link", "up")
    bus.done("traffic", "up")
    yield bus
    bus.done("traffic", "down")
    bus.done("link", "down")


@pytest.fixture(autouse=True)
def told_afterwards(voting: Bus) -> Iterator[None]:
    """What those who look after traffic said; pytest shows it beside a failure."""
    yield
    for log in sorted((voting.home().directory / DIRECTORY).glob("*.log")):
        print(f"--- {log.name}", *log.read_text().splitlines()[-LOG_LINES:], sep="\n")


@dataclass
class Writer:
    """An idempotent producer that knows the gate and nothing else."""

    sent: int = 0
    acknowledged: dict[str, float] = field(default_factory=dict)  # value → when
    errors: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def write(self, settings: dict[str, str], name: str) -> None:
        producer = Producer({**settings, "enable.idempotence": True}, logger=LOG)
        while not self.stopping.wait(0.02):
            producer.produce("orders", value=f"{name}:{self.sent}", on_delivery=self._delivered)
            self.sent += 1
            producer.poll(0)
        if producer.flush(WAIT_S):
            self.errors.append("not all was acknowledged")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        assert value is not None
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged[value.decode()] = time.monotonic()

    def first_after(self, moment_s: float) -> float | None:
        """When the first write after a moment was acknowledged."""
        return min((at for at in list(self.acknowledged.values()) if at > moment_s), default=None)


@contextmanager
def writer_on(bus: Bus, name: str) -> Iterator[Writer]:
    printed = bus.done("client", "app", "--gate", "--format", "librdkafka")
    lines = [line for line in printed.splitlines() if line and not line.startswith("#")]
    settings = {key.strip(): value.strip() for key, value in (line.split("=", 1) for line in lines)}
    writer = Writer()
    thread = threading.Thread(target=writer.write, args=(settings, name))
    thread.start()
    try:
        wait_for("the load has begun", lambda: len(writer.acknowledged) > 20)
        yield writer
    finally:
        writer.stopping.set()
        thread.join(WAIT_S)


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {WAIT_S:g} s"
        pause.wait(0.05)


def active_site(bus: Bus) -> str:
    return bus.home().state().active


def standing(bus: Bus, site: str) -> tuple[Role, int] | None:
    try:
        with Cluster(bus.home().admin_access(site)) as cluster:
            found = roles.read(cluster)
    except TwinlogError:
        return None
    return (found.role, found.term) if found is not None else None


def hit(bus: Bus, site: str, how: signal.Signals, *, with_agent: bool) -> float:
    """Send a signal to every node of a site; returns when."""
    home = bus.home()
    found = list(processes.find(home.layout(site).local_nodes).values())
    beside = agent.background(home, site).find()
    assert found
    assert beside is not None
    at_s = time.monotonic()
    processes.end([beside, *found] if with_agent else found, how)
    return at_s


def wait_until_whole(bus: Bus) -> None:
    """Wait until both sites have their roles again, in the term of the bus, and hold the same."""
    home = bus.home()
    state = home.state()
    wait_for("the lost site is back", lambda: not home.state().lost)
    other = next(site for site in home.bus.sites if site != state.active)
    wait_for("it is the standby", lambda: standing(bus, other) == (Role.STANDBY, state.term))
    assert standing(bus, state.active) == (Role.ACTIVE, state.term)
    with (
        Ground(home, Silent()) as ground,
        Cluster(home.admin_access("a")) as one,
        Cluster(home.admin_access("b")) as two,
    ):
        wait_for("no move is under way", lambda: beginning.any_unfinished(ground) is None)
        wait_for("both logs end alike", lambda: _ends(one) == _ends(two))


def _ends(cluster: Cluster) -> dict[tuple[str, int], int]:
    return offsets.log_ends(cluster, PLACES)


def test_whole_site_killed_the_other_is_promoted_and_clients_write_again(voting: Bus) -> None:
    lost = active_site(voting)
    with writer_on(voting, "killed") as writer:
        killed_s = hit(voting, lost, signal.SIGKILL, with_agent=True)
        wait_for("somebody was promoted", lambda: active_site(voting) != lost)
        # What was on its way is acknowledged within a moment; a lease was over when voters turned.
        quiet_s = killed_s + 1.0
        wait_for("clients write again", lambda: writer.first_after(quiet_s) is not None)
        back_s = (writer.first_after(quiet_s) or 0.0) - killed_s
    print(f"killed with its agent: written again after {back_s:.1f} s")
    assert writer.errors == []
    assert len(writer.acknowledged) == writer.sent
    voting.done("traffic", "up")  # its machine is back, and with it the agent
    wait_until_whole(voting)


def test_site_that_hangs_is_ended_by_its_agent_and_replaced(voting: Bus) -> None:
    lost = active_site(voting)
    log = agent.background(voting.home(), lost).log
    with writer_on(voting, "hanging") as writer:
        # Nobody else may end them: the manager looks on until the agent has.
        voting.done("traffic", "pause")
        stopped_s = hit(voting, lost, signal.SIGSTOP, with_agent=False)
        wait_for("its agent ends its brokers", lambda: "no broker takes writes" in log.read_text())
        assert active_site(voting) == lost
        brokers = voting.home().layout(lost).brokers
        wait_for("they are gone", lambda: not processes.find(brokers))
        voting.done("traffic", "resume")
        wait_for("the other is promoted", lambda: active_site(voting) != lost)
        quiet_s = stopped_s + 1.0
        wait_for("clients write again", lambda: writer.first_after(quiet_s) is not None)
    assert writer.errors == []
    assert len(writer.acknowledged) == writer.sent
    wait_until_whole(voting)


def test_two_that_carry_out_one_switchover_one_stops_and_the_other_ends_it(voting: Bus) -> None:
    before = active_site(voting)
    voting.done("traffic", "pause")
    outcomes: list[Move | TwinlogError] = []

    def carry(move: Move) -> None:
        with Ground(voting.home(), Silent()) as ground:
            try:
                outcomes.append(carry_out(ground, move))
            except TwinlogError as error:
                outcomes.append(error)

    with writer_on(voting, "twice") as writer:
        with Ground(voting.home(), Silent()) as ground:
            begun = beginning.switchover(ground)
        threads = [threading.Thread(target=carry, args=(begun,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        at_s = time.monotonic()
        wait_for("clients write again", lambda: writer.first_after(at_s) is not None)
    voting.done("traffic", "resume")
    assert len([one for one in outcomes if isinstance(one, Overtaken)]) == 1, outcomes
    assert [one.is_done for one in outcomes if isinstance(one, Move)] == [True], outcomes
    assert active_site(voting) != before
    assert writer.errors == []
    assert len(writer.acknowledged) == writer.sent
    wait_until_whole(voting)


def test_active_killed_in_the_middle_of_a_switchover_the_other_is_promoted(voting: Bus) -> None:
    lost = active_site(voting)
    killed: list[float] = []

    def watch(move: Move) -> None:
        if move.step is Step.HOLD and not killed:
            killed.append(hit(voting, lost, signal.SIGKILL, with_agent=True))

    with writer_on(voting, "amid") as writer:
        voting.done("traffic", "pause")
        with Ground(voting.home(), Silent()) as ground:
            begun = beginning.switchover(ground)
            with pytest.raises(SiteError, match=f"could not be let in at site {lost} again"):
                carry_out(ground, begun, watch=watch)
        voting.done("traffic", "resume")
        wait_for("the other is promoted", lambda: active_site(voting) != lost)
        assert voting.home().state().term > begun.term
        at_s = time.monotonic()
        wait_for("clients write again", lambda: writer.first_after(at_s) is not None)
    assert writer.errors == []
    assert len(writer.acknowledged) == writer.sent
    voting.done("traffic", "up")  # its machine is back, and with it the agent
    wait_until_whole(voting)


def test_moves_with_leases_are_ended_by_others_when_each_is_killed(voting: Bus) -> None:
    lost = active_site(voting)
    with writer_on(voting, "mortals") as writer:
        voting.done("traffic", "pause")  # else the manager would be quicker
        hit(voting, lost, signal.SIGKILL, with_agent=True)
        killed_at_every_step(voting, Kind.FAILOVER)
        assert active_site(voting) != lost
        at_s = time.monotonic()
        wait_for("clients write again", lambda: writer.first_after(at_s) is not None)
        voting.done("traffic", "up")  # its machine is back, and with it the agent
        killed_at_every_step(voting, Kind.RETURN)
        wait_until_whole(voting)
        killed_at_every_step(voting, Kind.SWITCHOVER)
        assert active_site(voting) == lost
        at_s = time.monotonic()
        wait_for("clients write at home", lambda: writer.first_after(at_s) is not None)
    voting.done("traffic", "resume")
    assert writer.errors == []
    assert len(writer.acknowledged) == writer.sent
    wait_until_whole(voting)
