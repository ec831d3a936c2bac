"""One broker of three takes connections and never answers, and the site still counts on it.

Its session is so long that the controller does not miss it: it goes on leading its partitions and its
groups. What needs it ends in time with code 1 and a hint; what does not is done as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.ends import Row, check_ends
from twinlog.sites import processes
from twinlog.wire import groups, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.groups import Committed

pytestmark = pytest.mark.cluster

FILE = """\
bus: hung
kafka:
  broker.session.timeout.ms: 1h
  replica.lag.time.max.ms: 5s
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 3
sites:
  a: {brokers: 3, memory: 256MB}
topics:
  load: {partitions: 3, replication: 3, min_insync: 2}
users:
  app: {produce: [load], consume: [load], groups: [app-*], transactions: [app-*]}
"""
HUNG, WELL = 1, 2
TIMEOUT = ("--timeout", "4")
ENDS_WITHIN_S = 60.0  # a command asks a few questions, one after the other, on a busy machine
WRITES_WITHIN_S = 25.0  # a write without `--timeout` would have 30
SILENT = "no answer"
SENT = "--num-records 9 --record-size 1 --throughput -1"
TRIPS = "--num-records 1 --record-size 1 --producer-acks all"


class Led(NamedTuple):
    """What the broker that hangs leads, and what another one leads."""

    bus: Bus
    hung_group: str
    hung_load: str  # a partition of the replicated topic
    well_load: str


@pytest.fixture(scope="module")
def led(make_bus: MakeBus) -> Iterator[Led]:
    """A site with a broker that was stopped, when the others have noticed that its copies fall behind."""
    bus = make_bus(FILE)
    with Cluster(bus.home().admin_access("a")) as cluster:
        for name in ("solo", "trimmed"):
            topics.create(cluster, topics.NewTopic(name, assignment=((HUNG,),)))
        for name in ("other", "gone", "grown"):
            topics.create(cluster, topics.NewTopic(name, assignment=((WELL,),)))
        for name in ("solo", "trimmed", "other"):
            bus.done("produce", name, "--whole-file", str(bus.file))
        names = [f"app-{number}" for number in range(12)]
        for name in names:
            groups.commit(cluster, {name: {("other", 0): Committed(0)}})
        by_coordinator = groups.by_coordinator(cluster, names)
        leaders = leaders_of(cluster)
        hung = processes.find([bus.home().layout("a").node(HUNG)])[HUNG]
        hung.suspend()
        try:
            # A copy is missed as soon as there is something that it lacks.
            well = str(leaders[WELL])
            bus.done("produce", "load", "--whole-file", str(bus.file), "--partition", well, "--acks", "1")
            deadline = Deadline(120.0)
            while HUNG in in_sync(cluster, leaders[WELL]):
                assert not deadline.passed
            yield Led(bus, by_coordinator[HUNG][0], str(leaders[HUNG]), well)
        finally:
            hung.resume()


def leaders_of(cluster: Cluster) -> dict[int, int]:
    """A partition of the replicated topic for each leader."""
    (found,) = topics.describe(cluster, ["load"])
    return {part.leader: part.index for part in found.partitions}


def in_sync(cluster: Cluster, partition: int) -> tuple[int, ...]:
    """The copies in sync of a partition of the replicated topic."""
    (found,) = topics.describe(cluster, ["load"])
    return next(part.isr for part in found.partitions if part.index == partition)


def test_a_write_whose_time_is_over_may_or_may_not_be_there(led: Led) -> None:
    row = Row(
        ("produce", "solo", "--whole-file", str(led.bus.file), *TIMEOUT), 1, "may or may not be written"
    )
    check_ends(led.bus, [row], within_s=WRITES_WITHIN_S)


def test_what_asks_the_broker_ends_in_time_with_a_hint(led: Led) -> None:
    rows = [
        Row(("consume", "solo", *TIMEOUT), 1, SILENT),
        Row(("consume", "load", "--partition", led.hung_load, *TIMEOUT), 1, SILENT),
        Row(("consume", "other", "--user", "app", "--group", led.hung_group, *TIMEOUT), 1),
        Row(("redrive", "solo", "--yes", *TIMEOUT), 1, SILENT),
        Row(("topic", "offsets", "solo", *TIMEOUT), 1, SILENT),
        Row(("topic", "size", *TIMEOUT), 1, SILENT),
        Row(("topic", "trim", "trimmed", "--before", "end", "--yes", *TIMEOUT), 1, SILENT),
        Row(("events", "check", "solo", *TIMEOUT), 1, SILENT),
        Row(("producers", "solo", *TIMEOUT), 1, SILENT),
        Row(("group", "list", *TIMEOUT), 1, SILENT),
        Row(("group", "lag", *TIMEOUT), 1, SILENT),
        Row(("group", "describe", led.hung_group, *TIMEOUT), 1, SILENT),
        Row(("group", "members", led.hung_group, *TIMEOUT), 1, SILENT),
        Row(("group", "reset", led.hung_group, "--to", "end", "--yes", *TIMEOUT), 1, SILENT),
        Row(("group", "delete", led.hung_group, "--yes", *TIMEOUT), 1, SILENT),
        Row(("config", "describe", "broker", "1", *TIMEOUT), 1, SILENT),
        Row(("config", "set", "broker", "1", "log.cleaner.threads=2", "--yes", *TIMEOUT), 1),
        Row(("transactions", "list", *TIMEOUT), 1, SILENT),
        Row(("transactions", "list", "--open", *TIMEOUT), 1, SILENT),
        Row(("transactions", "abort", "--topic", "solo", "--partition", "0", "--yes", *TIMEOUT), 1, SILENT),
        Row(("broker", "list", *TIMEOUT), 1, SILENT),
        Row(("broker", "log-dirs", "1", *TIMEOUT), 1, SILENT),
        Row(("broker", "api-versions", "1", *TIMEOUT), 1, SILENT),
        Row(("move", "plan", *TIMEOUT), 1, SILENT),
        Row(("move", "run", "--topic", "solo", *TIMEOUT), 1, SILENT),
        Row(
            ("perf", "consume", "--topic", "solo", "--num-records", "9", "--timeout", "1000"), 1, "Timed out"
        ),
        Row(("perf", "latency", "--topic", "solo", *TRIPS.split()), 1),
        Row(
            (
                "perf",
                "produce",
                "--topic",
                "solo",
                *SENT.split(),
                "--producer-props",
                "delivery.timeout.ms=3000",
            ),
            1,
            "records failed",
        ),
    ]
    check_ends(led.bus, rows, within_s=ENDS_WITHIN_S)


def test_what_looks_at_the_whole_site_says_that_it_is_not_well(led: Led) -> None:
    rows = [Row(("status",), 3)]
    check_ends(led.bus, rows, within_s=ENDS_WITHIN_S)


def test_what_every_broker_must_have_seen_has_code_1_and_a_hint(led: Led) -> None:
    rows = [
        Row(("topic", "create", "fresh", *TIMEOUT), 1, "is done"),
        Row(("topic", "alter", "grown", "--partitions", "2", "--yes", *TIMEOUT), 1, "is done"),
        Row(("topic", "delete", "gone", "--yes", *TIMEOUT), 1, "is done"),
        Row(("move", "status", *TIMEOUT), 1, SILENT),
        Row(("move", "cancel", *TIMEOUT), 1, SILENT),
        Row(("move", "throttle", "none", *TIMEOUT), 1, SILENT),
        Row(("user", "add", "guest", "--consume", "load", *TIMEOUT), 1, SILENT),
        Row(("user", "grant", "app", "--consume", "other", *TIMEOUT), 1, SILENT),
        Row(("user", "revoke", "app", "--produce", "load", *TIMEOUT), 1, SILENT),
    ]
    check_ends(led.bus, rows, within_s=ENDS_WITHIN_S)


def test_what_others_can_answer_is_done_as_ever(led: Led) -> None:
    file = str(led.bus.file)
    rows = [
        Row(("produce", "other", "--whole-file", file, *TIMEOUT), 0),
        Row(("produce", "load", "--whole-file", file, "--partition", led.well_load, *TIMEOUT), 0),
        Row(("consume", "other", *TIMEOUT), 0),
        Row(("consume", "load", "--partition", led.well_load, *TIMEOUT), 0),
        Row(("topic", "list", *TIMEOUT), 0),
        Row(("topic", "describe", "solo", *TIMEOUT), 0),
        Row(("topic", "describe", "load", *TIMEOUT), 3, "not every replica is in sync"),
        Row(("topic", "offsets", "other", *TIMEOUT), 0),
        Row(("config", "describe", "topic", "load", *TIMEOUT), 0),
        Row(("config", "describe", "broker", "2", *TIMEOUT), 0),
        Row(("config", "set", "topic", "other", "retention.ms=3600000", "--yes", *TIMEOUT), 0),
        Row(("config", "unset", "topic", "load", "segment.ms", "--yes", *TIMEOUT), 0),
        Row(("broker", "log-dirs", "2", *TIMEOUT), 0),
        Row(("broker", "api-versions", "2", *TIMEOUT), 0),
        Row(("elect", *TIMEOUT), 0),
        Row(("quorum", *TIMEOUT), 0),
        Row(("user", "list", *TIMEOUT), 0),
        Row(("user", "rights", *TIMEOUT), 0),
        Row(("user", "quota", *TIMEOUT), 0),
        Row(("user", "quota", "app", "--produce", "100MB/s", *TIMEOUT), 0),
    ]
    check_ends(led.bus, rows, within_s=ENDS_WITHIN_S)
