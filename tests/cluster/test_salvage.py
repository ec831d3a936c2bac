"""Salvage between two real sites: a is the one that was lost and came back, b took over.

Their logs are equal up to the promotion points, because the same batches were appended to both. What a
has behind them, and what moved clients sent to b again, is written by each test to topics of its own.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.cluster.conftest import Bus, MakeBus
from twinlog.errors import KafkaError, UsageError
from twinlog.mirror.steps import FIRST_LINK_ID
from twinlog.traffic import reapply, stock
from twinlog.traffic.fates import Fate
from twinlog.traffic.salvage import Collected, collect
from twinlog.traffic.salvaged import Note, Word
from twinlog.traffic.shelf import Item, Shelf, append, batches, make_batch
from twinlog.wire import offsets, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.recode import entries
from twinlog.wire.record_headers import headers
from twinlog.wire.records import Record, encode_batch

pytestmark = pytest.mark.cluster

FILE = """\
bus: salvage
kafka:
  offsets.topic.num.partitions: 2
  transaction.state.log.num.partitions: 2
  group.initial.rebalance.delay.ms: 0
sites:
  a: {brokers: 1, controllers: 1, memory: 256MB}
  b: {brokers: 1, controllers: 1, memory: 256MB}
active: b
users:
  app: {consume: ["orders*"], groups: ["*"]}
"""
TERM = 7
WAIT_S = 60.0
MANY = 20_000
IN_A_BATCH = 50
FIRST_MS = time.time_ns() // 1_000_000 - 3_600_000
RUN = """
import json, sys
from pathlib import Path
from twinlog.sites.home import Home
from twinlog.spec.load import load
from twinlog.traffic import reapply
from twinlog.traffic.salvage import collect
from twinlog.wire.cluster import Cluster

file, what, topic, points = Path(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
home = Home(load(file, {}).bus, file)
with Cluster(home.admin_access("a")) as lost, Cluster(home.admin_access("b")) as active:
    if what == "collect":
        collect(lost, active, {(topic, int(number)): point for number, point in points.items()}, 7)
    else:
        reapply.apply(("b", active), active, topic)
"""


@dataclass
class Sites:
    """Both sites."""

    bus: Bus
    lost: Cluster
    active: Cluster

    def make(self, topic: str, partitions: int = 2) -> None:
        """Make a topic at both."""
        for cluster in (self.lost, self.active):
            topics.create(cluster, topics.NewTopic(topic, partitions, 1))

    def both(self, topic: str, partition: int, batch: bytes) -> None:
        """What was mirrored."""
        for cluster in (self.lost, self.active):
            append(cluster, (topic, partition), bytearray(batch))

    def producer(self, site: str, **settings: Any) -> Producer:
        """An ordinary client."""
        return Producer({**self.bus.home().admin_access(site).librdkafka(), "linger.ms": 5, **settings})

    def read(self, topic: str, partition: int) -> list[Any]:
        """What an ordinary administrator reads of a partition at the active."""
        place = (topic, partition)
        first, end = (f(self.active, [place])[place] for f in (offsets.start_offsets, offsets.end_offsets))
        access = self.bus.home().admin_access("b").librdkafka()
        consumer = Consumer({**access, "group.id": "reader", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, partition, first)])
        found: list[Any] = []
        limit = time.monotonic() + WAIT_S
        try:
            while not found or found[-1].offset() < end - 1:
                assert time.monotonic() < limit, f"{len(found)} records of {end}"
                message = consumer.poll(0.5)
                if message is not None:
                    assert message.error() is None, message.error()
                    found.append(message)
        finally:
            consumer.close()
        return found


@pytest.fixture(scope="module")
def sites(make_bus: MakeBus) -> Iterator[Sites]:
    bus = make_bus(FILE)
    home = bus.home()
    with Cluster(home.admin_access("a")) as lost, Cluster(home.admin_access("b")) as active:
        yield Sites(bus, lost, active)


def own(producer: int, sequence: int, values: Sequence[str]) -> bytes:
    """A batch of an idempotent producer that may move."""
    records = [
        Record(
            value.encode(),
            FIRST_MS + number,
            value[:1].encode(),
            (("n", str(number).encode()), ("null", None)),
        )
        for number, value in enumerate(values)
    ]
    return encode_batch(records, producer_id=producer, producer_epoch=3, first_sequence=sequence)


def apply(sites: Sites, topic: str, chosen: reapply.Choice = reapply.is_committed) -> list[reapply.Applied]:
    """Write again what the active keeps."""
    return reapply.apply(("b", sites.active), sites.active, topic, chosen)


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {WAIT_S:g} s"
        pause.wait(0.01)


def test_the_tail_is_salvaged_once_but_for_what_the_active_has_and_nobody_committed(sites: Sites) -> None:
    topic, place = "orders", ("orders", 0)
    sites.make(topic)
    sites.both(topic, 0, own(999, 0, ["mirrored 0", "mirrored 1", "mirrored 2"]))
    points = offsets.log_ends(sites.active, [place, (topic, 1)])
    # Acknowledged at a and lost; then what a took but could not acknowledge, which b got again.
    append(sites.lost, place, bytearray(own(1000, 3, ["lost 3", "lost 4"])))
    again = own(1000, 5, ["again 5", "again 6"])
    append(sites.lost, place, bytearray(again))
    append(sites.active, place, bytearray(encode_batch([Record(b"somebody else's", FIRST_MS)])))
    append(sites.active, place, bytearray(again))
    append(sites.active, place, bytearray(own(1000, 7, ["new 7"])))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = sites.producer("a", **{"compression.type": codec})
        for number in range(20):
            producer.produce(topic, f"{codec} {number}" * 10, None, 0, timestamp=FIRST_MS + number)
        producer.produce(topic, None, f"gone {codec}", 0)
        assert producer.flush(WAIT_S) == 0
    for ending in ("committed", "aborted", "open"):
        named = sites.producer("a", **{"transactional.id": f"tx-{ending}"})
        named.init_transactions(WAIT_S)
        named.begin_transaction()
        for number in range(3):
            named.produce(topic, f"{ending} {number}", "tx", 0)
        assert named.flush(WAIT_S) == 0
        if ending == "committed":
            named.commit_transaction(WAIT_S)
        elif ending == "aborted":
            named.abort_transaction(WAIT_S)

    found = collect(sites.lost, sites.active, points, TERM)
    first, second = found.tallies
    assert second.length == 0
    assert first.adds_up
    assert (first.present, first.aborted, first.control, first.empty) == (2, 3, 2, 0)
    assert (first.salvaged, first.open, first.new) == (2 + 5 * 21 + 3 + 3, 3, first.salvaged)
    assert [one.value for one in found.first[:3]] == [b"lost 3", b"lost 4", b"none 0" * 10]

    lost = {
        entry.offset: entry for batch in batches(sites.lost, place, 3, first.end) for entry in entries(batch)
    }
    messages = sites.read("orders.salvage", 0)
    assert len(messages) == first.salvaged
    seen = []
    for message in messages:
        told = dict(message.headers()[:7])
        assert (told["twinlog.topic"], told["twinlog.partition"]) == (b"orders", b"0")
        assert told["twinlog.term"] == b"7"
        offset = int(told["twinlog.offset"])
        seen.append(offset)
        entry = lost[offset]
        assert int(told["twinlog.timestamp"]) == entry.timestamp_ms
        assert message.headers()[7:] == headers(bytes(entry.rest))
    assert seen == sorted(set(seen))
    values = [message.value() for message in messages]
    assert values[:2] == [b"lost 3", b"lost 4"] and messages[0].key() == b"l"
    assert dict(messages[0].headers())["twinlog.producer"] == b"1000/3/3"
    assert dict(messages[1].headers())["twinlog.producer"] == b"1000/3/4"
    marks = Counter(dict(message.headers())["twinlog.transaction"] for message in messages)
    assert marks == {None: 2 + 5 * 21, b"committed": 3, b"open": 3}
    assert not [value for value in values if value and value.startswith((b"again", b"aborted"))]

    repeated = collect(sites.lost, sites.active, points, TERM)
    assert repeated.records == found.records
    assert sum(tally.new for tally in repeated.tallies) == 0
    assert len(sites.read("orders.salvage", 0)) == first.salvaged


def test_salvage_is_kept_from_users_whose_rights_have_a_pattern_that_fits(sites: Sites) -> None:
    salvaged(sites, "orders-kept", 3)
    with Cluster(sites.bus.home().user_access("app", "b")) as user:
        assert offsets.end_offsets(user, [("orders-kept", 0)]) == {("orders-kept", 0): 1}
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            offsets.end_offsets(user, [("orders-kept.salvage", 0)])


def salvaged(sites: Sites, topic: str, count: int) -> Collected:
    """A topic of which so many records were lost and salvaged."""
    sites.make(topic, 1)
    sites.both(topic, 0, own(50, 0, ["mirrored"]))
    for number in range(count):
        append(sites.lost, (topic, 0), bytearray(own(50, 1 + number, [f"{topic} {number}"])))
    return collect(sites.lost, sites.active, {(topic, 0): 1}, TERM)


def test_salvaged_records_are_applied_once_to_the_partition_they_came_from(sites: Sites) -> None:
    topic = "applied"
    salvaged(sites, topic, 5)
    chosen = apply(sites, topic, lambda one: one.offset < 3)
    assert [(one.applied, one.new, one.left) for one in chosen] == [(2, 2, 3)]
    rest = apply(sites, topic)
    assert [(one.applied, one.new, one.left) for one in rest] == [(5, 3, 0)]
    assert [(one.applied, one.new, one.left) for one in apply(sites, topic)] == [(5, 0, 0)]
    messages = sites.read(topic, 0)
    assert [message.value().decode() for message in messages] == [
        "mirrored",
        *(f"applied {number}" for number in range(5)),
    ]
    assert messages[2].headers() == [("twinlog.salvaged", b"7/0/2"), ("n", b"0"), ("null", None)]
    assert [message.timestamp()[1] for message in messages] == [FIRST_MS] * 6
    assert all(is_applied for _, is_applied in stock.show(sites.active, topic))


def test_records_of_open_transactions_are_left_unless_they_are_chosen(sites: Sites) -> None:
    topic = "unfinished"
    sites.make(topic, 1)
    named = sites.producer("a", **{"transactional.id": "unfinished"})
    named.init_transactions(WAIT_S)
    named.begin_transaction()
    named.produce(topic, b"maybe", b"key", 0)
    assert named.flush(WAIT_S) == 0
    found = collect(sites.lost, sites.active, {(topic, 0): 0}, TERM)
    assert [one.fate for one in found.first] == [Fate.OPEN]
    assert [(one.new, one.left) for one in apply(sites, topic)] == [(0, 1)]
    assert [(one.new, one.left) for one in apply(sites, topic, lambda _: True)] == [(1, 0)]
    # Once salvaged it stays counted so, whatever its coordinator does meanwhile.
    named.abort_transaction(WAIT_S)
    wait_for("the marker is written", lambda: end_of(sites.lost, topic) == 2)
    later = collect(sites.lost, sites.active, {(topic, 0): 0}, TERM)
    assert (later.records, later.tallies[0].control, later.tallies[0].new) == (1, 1, 0)


def test_a_point_inside_a_batch_leaves_its_first_records_where_they_are(sites: Sites) -> None:
    topic = "inside"
    sites.make(topic, 1)
    append(sites.lost, (topic, 0), bytearray(own(70, 0, ["mirrored 0", "mirrored 1", "lost 2", "lost 3"])))
    for number in range(2):
        append(sites.active, (topic, 0), bytearray(own(71, number, [f"mirrored {number}"])))
    found = collect(sites.lost, sites.active, {(topic, 0): 2}, TERM)
    assert [(one.offset, one.value, one.producer) for one in found.first] == [
        (2, b"lost 2", (70, 3, 2)),
        (3, b"lost 3", (70, 3, 3)),
    ]
    assert found.tallies[0].adds_up


def test_a_later_term_is_salvaged_beside_an_earlier_one_and_both_are_listed(sites: Sites) -> None:
    topic = "listed"
    salvaged(sites, topic, 4)
    collect(sites.lost, sites.active, {(topic, 0): 3}, TERM + 1)
    apply(sites, topic, lambda one: one.term == TERM and one.offset == 2)
    listed = [one for one in stock.list_salvage(sites.active) if one.topic == topic]
    assert [(one.term, one.records, one.applied) for one in listed] == [(TERM, 4, 1), (TERM + 1, 2, 0)]
    assert (listed[0].oldest_ms, listed[0].newest_ms) == (FIRST_MS, FIRST_MS)


def test_a_topic_of_which_nothing_was_salvaged_has_nothing_to_apply(sites: Sites) -> None:
    with pytest.raises(UsageError, match="nothing of topic 'nothing' was salvaged"):
        apply(sites, "nothing")


def test_the_commands_list_show_and_apply_what_was_salvaged(sites: Sites) -> None:
    topic, bus = "shown", sites.bus
    salvaged(sites, topic, 3)
    binary = bytearray(encode_batch([Record(b"\xff\x00", FIRST_MS, None)]))
    append(sites.lost, (topic, 0), binary)
    collect(sites.lost, sites.active, {(topic, 0): 1}, TERM)
    (listed,) = [row for row in bus.json("salvage", "list") if row["topic"] == topic]
    assert (listed["term"], listed["records"], listed["applied"]) == (TERM, 4, 0)

    rows = bus.json("salvage", "show", topic)
    assert [(row["offset"], row["key"], row["value"], row["applied"]) for row in rows] == [
        *((1 + number, "s", f"shown {number}", False) for number in range(3)),
        (4, None, "ff00", False),
    ]
    assert rows[3]["hexadecimal"] == ["value"]
    assert len(bus.json("salvage", "show", topic, "--limit", "2")) == 2
    assert "PARTITION  OFFSET  TIME" in bus.done("salvage", "show", topic)

    refused = bus.run("salvage", "apply", topic)
    assert refused.returncode == 2
    assert f"hint: twinlog salvage apply {topic} --yes" in refused.stderr
    assert end_of(sites.active, topic) == 1
    counts = [
        [
            (row["partition"], row["new"], row["applied"])
            for row in bus.json("salvage", "apply", topic, "--yes")
        ]
        for _ in range(2)
    ]
    assert counts == [[(0, 4, 4)], [(0, 0, 4)]]
    assert all(row["applied"] for row in bus.json("salvage", "show", topic))
    assert "twinlog salvage list" in bus.run("salvage", "show", "unheard-of").stderr


def test_salvage_that_the_standby_keeps_is_found_and_applied_to_the_active(sites: Sites) -> None:
    """As after a move home: b was active when a returned, then roles changed. Here they are the other way."""
    topic, bus = "moved", sites.bus
    sites.make(topic, 1)
    sites.both(topic, 0, own(51, 0, ["mirrored"]))
    append(sites.active, (topic, 0), bytearray(own(51, 1, ["only b"])))
    collect(sites.active, sites.lost, {(topic, 0): 1}, TERM)
    salvaged_at_both = "both"
    salvaged(sites, salvaged_at_both, 1)
    append(sites.active, (salvaged_at_both, 0), bytearray(own(52, 0, ["only b"])))
    collect(sites.active, sites.lost, {(salvaged_at_both, 0): 1}, TERM + 1)

    listed = [row for row in bus.json("salvage", "list") if row["topic"] in (topic, salvaged_at_both)]
    assert [(row["topic"], row["term"], row["kept_at"]) for row in listed] == [
        (salvaged_at_both, TERM, "b"),
        (salvaged_at_both, TERM + 1, "a"),
        (topic, TERM, "a"),
    ]
    shown = bus.json("salvage", "show", salvaged_at_both)
    assert [(row["kept_at"], row["value"]) for row in shown] == [("a", "only b"), ("b", "both 0")]

    for _ in range(2):
        rows = bus.json("salvage", "apply", topic, "--yes")
        assert [(row["kept_at"], row["applied"]) for row in rows] == [("a", 1)]
        rows = bus.json("salvage", "apply", salvaged_at_both, "--yes")
        assert [(row["kept_at"], row["applied"]) for row in rows] == [("a", 1), ("b", 1)]
    assert [message.value() for message in sites.read(topic, 0)] == [b"mirrored", b"only b", b"only b"]
    both = [message.value() for message in sites.read(salvaged_at_both, 0)]
    assert both == [b"mirrored", b"only b", b"only b", b"both 0"]
    assert end_of(sites.lost, topic) == 1  # at the standby nothing is written but notes
    assert all(row["applied"] for row in bus.json("salvage", "show", salvaged_at_both))


def test_records_that_a_mirror_copied_under_its_own_name_are_not_written_again(sites: Sites) -> None:
    """A run was killed before it noted what it had written, and roles have changed since."""
    topic = "renamed"
    salvaged(sites, topic, 2)
    found = [one for one, _ in stock.show(sites.active, topic)]
    end = end_of(sites.active, topic)
    note = Note(Word.APPLYING, tuple(one.place for one in found), end, 0)
    Shelf(sites.active, (f"{topic}.salvage", 0)).append([note.encoded()])
    items = [Item(one.timestamp_ms, one.again()) for one in found]
    append(sites.active, (topic, 0), make_batch(items, FIRST_LINK_ID, 0))
    (done,) = apply(sites, topic)
    assert (done.applied, done.left) == (2, 0)
    assert end_of(sites.active, topic) == end + 2


def killed_when(sites: Sites, what: str, topic: str, moment: Callable[[], bool]) -> bool:
    """Run a step in a process of its own and kill it at a moment; False if it ended before."""
    command = [sys.executable, "-c", RUN, str(sites.bus.file), what, topic, json.dumps({0: 1})]
    with subprocess.Popen(command, cwd=sites.bus.directory, env=sites.bus.environment()) as process:
        wait_for("the moment", lambda: process.poll() is not None or moment())
        process.kill()
        return process.wait() != 0


def reaches(cluster: Cluster, topic: str, end: int) -> bool:
    return end_of(cluster, topic) >= end


def end_of(cluster: Cluster, topic: str) -> int:
    if not topics.describe(cluster, [topic]):
        return 0
    return offsets.log_ends(cluster, [(topic, 0)])[(topic, 0)]


def test_salvage_and_its_application_killed_again_and_again_bring_each_record_once(sites: Sites) -> None:
    topic = "many"
    sites.make(topic, 1)
    sites.both(topic, 0, own(60, 0, ["mirrored"]))
    for first in range(0, MANY, IN_A_BATCH):
        batch = own(60, 1 + first, [f"lost {first + number}" for number in range(IN_A_BATCH)])
        append(sites.lost, (topic, 0), bytearray(batch))
    rng = random.Random(4)
    ends = [int(MANY * share) + rng.randrange(500) for share in (0.1, 0.4, 0.7)]
    kills = sum(
        killed_when(sites, "collect", topic, partial(reaches, sites.active, f"{topic}.salvage", end))
        for end in ends
    )
    found = collect(sites.lost, sites.active, {(topic, 0): 1}, TERM)
    assert kills == 3
    assert (found.records, found.tallies[0].adds_up) == (MANY, True)
    assert [one.offset for one, _ in stock.show(sites.active, topic)] == list(range(1, MANY + 1))

    kills += sum(
        killed_when(sites, "apply", topic, partial(reaches, sites.active, topic, end)) for end in ends
    )
    (done,) = apply(sites, topic)
    assert kills == 6
    assert (done.applied, done.left) == (MANY, 0)
    values = [message.value().decode() for message in sites.read(topic, 0)]
    assert values == ["mirrored", *(f"lost {number}" for number in range(MANY))]
    # The broker knows whose batches these are.
    own_batches = [
        batch.header.producer_id
        for batch in batches(sites.active, (topic, 0), 1, end_of(sites.active, topic))
    ]
    assert set(own_batches) == {reapply.apply_id("b")}
