"""Chains on a real log: two orderers agree, whatever is in it; outages pass; a restart goes on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cluster.conftest import Bus, MakeBus
from tests.ordering.single_channel import SingleChannel, contents, envelope, new_ledger
from twinlog.ordering import records
from twinlog.ordering.chain import Chain, State
from twinlog.ordering.ledger import Ledger
from twinlog.ordering.localconfig import ConsumerRetry, NetworkTimeouts, Retry
from twinlog.ordering.proto import common_pb2
from twinlog.ordering.support import Unavailable
from twinlog.ordering.topic import Reach
from twinlog.sites import processes
from twinlog.wire import configs, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline

pytestmark = pytest.mark.cluster

SOON_S = 60.0  # for what takes a second or two on a quiet machine
RETRY = Retry(
    short_interval_s=0.5,
    short_total_s=60.0,
    long_interval_s=1.0,
    long_total_s=1.0,
    network_timeouts=NetworkTimeouts(3.0, 3.0, 3.0),
    consumer=ConsumerRetry(0.5),
)
FILE = """\
bus: ordered
sites:
  a: {brokers: 1}
"""


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    deadline, pause = Deadline(SOON_S), threading.Event()
    while not condition():
        assert not deadline.passed, what
        pause.wait(0.05)


@dataclass
class Orderer:
    """A chain with its channel and ledger."""

    channel: SingleChannel
    ledger: Ledger
    chain: Chain

    def wait_for(self, height: int) -> None:
        until(lambda: self.ledger.height >= height, f"no block {height - 1}")

    def order(self, *names: str) -> list[int]:
        futures = [self.chain.order(envelope(name), self.channel.sequence) for name in names]
        return [future.result(SOON_S) for future in futures]

    def inject(self, value: bytes) -> int:
        """Write any bytes to the log."""
        return self.chain._topic.post(value).result(SOON_S)

    def compared(self) -> list[tuple[object, ...]]:
        """What must be equal at all orderers."""
        found = map(self.ledger.block, range(self.ledger.height))
        return [
            (block.header, block.data, block.metadata.metadata[1], block.metadata.metadata[3])
            for block in found
        ]


@dataclass
class Place:
    """A bus, and orderers that are halted at the end."""

    bus: Bus
    directory: Path
    orderers: list[Orderer] = field(default_factory=list)

    def orderer(
        self, topic: str, name: str, *, sequence: int = 0, covered: Callable[[], int] | None = None
    ) -> Orderer:
        reach = Reach(self.bus.home().admin_access("a"), RETRY, replication=1, min_insync_replicas=1)
        channel = SingleChannel(topic, name, sequence)
        ledger = new_ledger(self.directory / topic / name)
        made = Orderer(channel, ledger, Chain(channel, ledger, reach, covered=covered))
        self.orderers.append(made)
        made.chain.start()
        until(lambda: made.chain.state is not State.STARTING, "the chain does not start")
        return made

    def end(self, orderer: Orderer) -> None:
        orderer.chain.halt()
        orderer.ledger.close()
        self.orderers.remove(orderer)


@contextmanager
def gathered(bus: Bus, directory: Path) -> Iterator[Place]:
    place = Place(bus, directory)
    try:
        yield place
    finally:
        for orderer in list(place.orderers):
            place.end(orderer)


@contextmanager
def connected(bus: Bus) -> Iterator[Cluster]:
    cluster = Cluster(bus.home().admin_access("a"))
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def ordered(make_bus: MakeBus) -> Bus:
    """A bus of one broker: what is tested here does not depend on copies."""
    return make_bus(FILE)


@pytest.fixture
def place(ordered: Bus, tmp_path: Path) -> Iterator[Place]:
    with gathered(ordered, tmp_path) as place:
        yield place


def test_two_orderers_and_anything_in_the_log_make_the_same_blocks(place: Place) -> None:
    one, two = place.orderer("foo", "one"), place.orderer("foo", "two")
    assert one.order("a", "b", "c") == [2, 3, 4]  # behind the CONNECT of each
    two.order("d")
    one.wait_for(3)
    assert contents(one.ledger) == [["a", "b", "c"], ["d"]]  # the second one cut by time
    for value in (b"\xff\xff", b"", records.time_to_cut(1), records.connect(), records.normal(b"\xff", 0)):
        one.inject(value)
    assert two.chain.configure(envelope("size", common_pb2.CONFIG), 0).result(SOON_S)
    one.inject(records.normal(envelope("late"), 0))
    two.wait_for(5)
    one.wait_for(5)
    assert contents(two.ledger)[2:] == [["size"], ["late"]]
    assert one.channel.applied == [("size", 3)]
    assert one.compared() == two.compared()
    signatures = [orderer.ledger.block(4).metadata.metadata[0] for orderer in (one, two)]
    assert signatures[0] != signatures[1]
    place.end(two)
    one.order("e", "f", "g")
    again = place.orderer("foo", "two", sequence=1)
    new = place.orderer("foo", "three")
    for orderer in (one, again, new):
        orderer.wait_for(6)
        assert orderer.compared() == one.compared()
        assert list(orderer.ledger.faults()) == []
        assert not orderer.chain.errored.is_set()


def test_channel_is_new_gets_a_topic_that_keeps_everything(place: Place) -> None:
    place.orderer("kept", "one")
    with connected(place.bus) as cluster:
        found = configs.describe(cluster, configs.Kind.TOPIC, "kept")
    values = {name: entry.value for name, entry in found.items()}
    assert values["retention.ms"] == "-1"
    assert values["min.insync.replicas"] == "1"
    assert values["unclean.leader.election.enable"] == "false"


def test_config_is_out_of_date_is_sent_again_and_lets_messages_in_behind_it(place: Place) -> None:
    orderer = place.orderer("gate", "one")
    first = orderer.chain.configure(envelope("c", common_pb2.CONFIG), 0)
    second = orderer.chain.configure(envelope("d", common_pb2.CONFIG), 0)
    assert first.result(SOON_S) < second.result(SOON_S)
    orderer.wait_for(3)
    orderer.chain.wait_ready(SOON_S)
    assert contents(orderer.ledger) == [["c"], ["d+"]]


@pytest.mark.parametrize("number", [1, 7])
def test_time_to_cut_cannot_be_right_stops_the_channel_and_every_restart(place: Place, number: int) -> None:
    topic = f"poison-{number}"
    orderer = place.orderer(topic, "one")
    orderer.inject(records.time_to_cut(number))
    expect_stopped(orderer)
    place.end(orderer)
    expect_stopped(place.orderer(topic, "one"))


def expect_stopped(orderer: Orderer) -> None:
    """A channel that takes nothing any more, and says so."""
    until(lambda: orderer.chain.state is State.STOPPED, "the chain goes on")
    assert orderer.chain.errored.wait(SOON_S)
    with pytest.raises(Unavailable, match="cannot go on"):
        orderer.chain.order(envelope("a"), 0)
    with pytest.raises(Unavailable):
        orderer.chain.wait_ready(0.0)
    assert orderer.channel.crashes == []


def test_config_cannot_be_applied_is_a_crash(place: Place) -> None:
    orderer = place.orderer("crash", "one")
    orderer.chain.configure(envelope("impossible", common_pb2.CONFIG), 0).result(SOON_S)
    assert orderer.channel.crash_came.wait(SOON_S)
    assert orderer.chain.errored.is_set()
    assert orderer.ledger.height == 1


def test_standby_lacks_records_cuts_no_block_of_them(place: Place) -> None:
    mark = [0]
    orderer = place.orderer("twin", "one", covered=lambda: mark[0])
    offsets = orderer.order("a", "b", "c", "d", "e", "f")
    until(lambda: orderer.chain._intake.next_offset > offsets[-1], "the records are not read")
    assert orderer.ledger.height == 1
    mark[0] = offsets[3]
    orderer.wait_for(2)
    assert orderer.ledger.height == 2
    mark[0] = offsets[5] + 1
    orderer.wait_for(3)
    assert contents(orderer.ledger) == [["a", "b", "c"], ["d", "e", "f"]]


def test_chain_is_halted_takes_nothing_and_may_be_halted_again(place: Place) -> None:
    orderer = place.orderer("halted", "one")
    orderer.chain.halt()
    orderer.chain.halt()
    assert orderer.chain.errored.is_set()
    with pytest.raises(Unavailable, match="has been halted"):
        orderer.chain.order(envelope("a"), 0)


def test_log_was_cut_short_is_errored_or_never_starts(place: Place) -> None:
    orderer = place.orderer("short", "one")
    orderer.order("a", "b", "c")
    orderer.wait_for(2)
    place.end(orderer)
    with connected(place.bus) as cluster:
        topics.delete(cluster, "short")
    reach = Reach(place.bus.home().admin_access("a"), RETRY, replication=1, min_insync_replicas=1)
    channel = SingleChannel("short", "one")
    ledger = new_ledger(place.directory / "short" / "one")
    chain = Chain(channel, ledger, reach)
    chain.start()
    until(lambda: "has offsets 0 to" in chain.trouble, "nobody says that the log is short")
    assert chain.state is State.STARTING
    with pytest.raises(Unavailable, match="has not completed booting"):
        chain.order(envelope("a"), 0)
    chain.halt()
    ledger.close()


def test_broker_dies_and_comes_back_is_errored_meanwhile_and_goes_on(place: Place) -> None:
    orderer = place.orderer("outage", "one")
    orderer.order("a", "b", "c")
    orderer.wait_for(2)
    lost = place.bus.home().layout("a").brokers[0]
    processes.end(list(processes.find([lost]).values()), signal.SIGKILL)
    with pytest.raises(Unavailable, match="cannot enqueue"):
        orderer.order("lost")
    assert orderer.chain.errored.wait(SOON_S)
    assert contents(orderer.ledger) == [["a", "b", "c"]]
    place.bus.done("up")
    until(lambda: not orderer.chain.errored.is_set(), "the chain stays errored")
    orderer.order("d", "e", "f")
    until(lambda: ["f"] in [batch[-1:] for batch in contents(orderer.ledger)], "the message is in no block")
    assert list(orderer.ledger.faults()) == []
