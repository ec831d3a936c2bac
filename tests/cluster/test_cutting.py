"""Logs cut at given offsets at a real site: what Kafka makes of them when its brokers start again.

One site of three brokers with two disks each serves both tests: in one its brokers are killed, in the
other they end in order. The topic has several segments, written by idempotent producers, transactions and
compressed batches; what each partition must be afterwards is reckoned from what was in it before.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from tests.cluster.conftest import Bus, MakeBus
from twinlog.errors import SiteError
from twinlog.sites import processes, replicas
from twinlog.sites.cutting import LOG_STARTS, cut
from twinlog.traffic.shelf import batches
from twinlog.wire import codes, deletion, offsets, producers, topics, transactions
from twinlog.wire.appending import Appender
from twinlog.wire.batches import Header, records_section
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.records import Record, encode_batch

pytestmark = pytest.mark.cluster

FILE = """\
bus: cutting
kafka:
  offsets.topic.num.partitions: 2
  transaction.state.log.num.partitions: 2
  log.flush.start.offset.checkpoint.interval.ms: 500
sites:
  a: {brokers: 3, controllers: 1, memory: 256MB, data: [one, two]}
"""
WAIT_S = 90.0
SEGMENT_BYTES = 1 << 20  # the least that Kafka takes
VALUE_BYTES = 40_000
ROUNDS = 45  # of four batches each: a good three segments
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OWN_ID = 1 << 50  # of producers whose every batch is made here
COORDINATORS = "__transaction_state"


class Seen(NamedTuple):
    """A batch as it lies in a log."""

    header: Header
    section: bytes


class State(NamedTuple):
    """What a partition remembers of a producer."""

    epoch: int
    last_sequence: int


@pytest.fixture(scope="module")
def bus(make_bus: MakeBus) -> Bus:
    return make_bus(FILE)


@pytest.fixture
def cluster(bus: Bus) -> Iterator[Cluster]:
    with Cluster(bus.home().admin_access("a")) as cluster:
        yield cluster


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {WAIT_S:g} s"
        pause.wait(0.2)


def librdkafka(bus: Bus, **settings: Any) -> Producer:
    access = bus.home().admin_access("a").librdkafka()
    return Producer({**access, "enable.idempotence": True, "linger.ms": 0, **settings})


def append(cluster: Cluster, place: TopicPartition, batch: bytes) -> tuple[str, int]:
    """Append one batch; gives the code's name and the offset."""
    deadline = Deadline(WAIT_S)
    appender = Appender(cluster.broker(cluster.leader(*place)))
    appender.send([(*place, batch)], deadline)
    (answer,) = appender.receive(deadline)
    return codes.name_of(answer.code), answer.base_offset


def own_batch(number: int, sequence: int, count: int) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    records = [Record(f"own {sequence + n}".encode(), now_ms, b"key") for n in range(count)]
    return encode_batch(records, producer_id=OWN_ID + number, producer_epoch=0, first_sequence=sequence)


def write(bus: Bus, cluster: Cluster, places: Sequence[TopicPartition]) -> None:
    """Several segments in each partition, and a transaction that is open at the end."""
    plain = {codec: librdkafka(bus, **{"compression.type": codec}) for codec in CODECS}
    named = [librdkafka(bus, **{"transactional.id": f"{places[0][0]}-{n}"}) for n in range(3)]
    for producer in named:
        producer.init_transactions(WAIT_S)
    for number in range(ROUNDS):
        codec = CODECS[number % len(CODECS)]
        ending = named[number % 2]
        ending.begin_transaction()
        for topic, partition in places:
            for producer in (plain[codec], ending):
                producer.produce(topic, os.urandom(VALUE_BYTES), f"{number}", partition)
            plain["zstd"].produce(topic, b"compressible" * 400, f"{number}", partition)
        if number % 3:
            ending.commit_transaction(WAIT_S)
        else:
            ending.flush(WAIT_S)
            ending.abort_transaction(WAIT_S)
        for producer in plain.values():
            assert producer.flush(WAIT_S) == 0
        for place in places:
            # Batches of three, so that a cut can fall into one.
            assert append(cluster, place, own_batch(number % 7, (number // 7) * 3, 3))[0] == "NONE"
    named[2].begin_transaction()
    for topic, partition in places:
        named[2].produce(topic, b"never committed", "open", partition)
    assert named[2].flush(WAIT_S) == 0


def read(cluster: Cluster, place: TopicPartition) -> list[Seen]:
    end = offsets.end_offsets(cluster, [place])[place]
    return [
        Seen(batch.header, bytes(records_section(batch.view))) for batch in batches(cluster, place, 0, end)
    ]


def remembered(log: Sequence[Seen]) -> dict[int, State]:
    """What a partition must remember of its producers when its log is this one."""
    states: dict[int, State] = {}
    for header, _ in log:
        before = states.get(header.producer_id, State(-1, -1))
        if header.producer_id < 0:
            continue
        if not header.is_control:
            last = header.base_sequence + header.last_offset_delta
            states[header.producer_id] = State(header.producer_epoch, last)
        elif header.producer_epoch > before.epoch:  # since Kafka 4.0 each transaction has an epoch (KIP-890)
            states[header.producer_id] = State(header.producer_epoch, -1)
    return states


def settled(log: Sequence[Seen], point: int) -> list[Seen]:
    """What is to stay of a log: as much before the point as has no transaction without its end."""
    inside: set[int] = set()
    stays = 0
    for number, (header, _) in enumerate(log, 1):
        if header.next_offset > point:
            break
        if header.is_control:
            inside.discard(header.producer_id)
        elif header.is_transactional:
            inside.add(header.producer_id)
        if not inside:
            stays = number
    return list(log[:stays])


def described(cluster: Cluster, place: TopicPartition) -> dict[int, State]:
    found = producers.describe(cluster, [place])[place]
    return {number: State(state.epoch, state.last_sequence) for number, state in found.items()}


def points_of(logs: dict[TopicPartition, list[Seen]], bases: dict[TopicPartition, list[int]]) -> list[int]:
    """Three cuts: inside a batch of the second segment, at a segment's beginning, just before a marker."""
    first, second, third = logs
    own = [
        seen.header
        for seen in logs[first]
        if seen.header.last_offset_delta == 2 and bases[first][1] < seen.header.base_offset < bases[first][2]
    ]
    marker = [seen.header for seen in logs[third] if seen.header.is_control][len(logs[third]) // 20]
    return [own[len(own) // 2].base_offset + 1, bases[second][-1], marker.base_offset]


def segment_bases(bus: Bus, place: TopicPartition) -> list[int]:
    directories = [
        directory
        for node in bus.home().layout("a").brokers
        for disk in node.data
        if (directory := disk / f"{place[0]}-{place[1]}").exists()
    ]
    assert len(directories) == 3
    return sorted(int(path.stem) for path in directories[0].glob("*.log"))


def kill(bus: Bus) -> None:
    running = list(processes.find(bus.home().layout("a").brokers).values())
    assert len(running) == 3
    processes.end(running, signal.SIGKILL)
    assert processes.wait(running, WAIT_S) == []


def stop(bus: Bus) -> None:
    bus.done("down")


def is_whole(cluster: Cluster, topic: str) -> bool:
    (found,) = topics.describe(cluster, [topic])
    return all(sorted(one.isr) == sorted(one.replicas) and one.has_leader for one in found.partitions)


@pytest.mark.parametrize("end", [kill, stop], ids=["killed", "stopped"])
def test_a_site_whose_logs_were_cut_starts_as_if_the_rest_had_never_been_written(
    bus: Bus, cluster: Cluster, end: Callable[[Bus], None]
) -> None:
    topic = f"cut-{end.__name__}"
    topics.create(cluster, topics.NewTopic(topic, 4, 3, configs={"segment.bytes": str(SEGMENT_BYTES)}))
    *places, begun = [(topic, number) for number in range(4)]
    write(bus, cluster, [*places, begun])
    before = {place: read(cluster, place) for place in places}
    bases = {place: segment_bases(bus, place) for place in places}
    assert all(len(found) > 2 for found in bases.values()), bases
    points = dict(zip(places, points_of(before, bases), strict=True))
    kept = {place: settled(before[place], points[place]) for place in places}
    assert kept[places[2]][-1].header.next_offset < points[places[2]]  # its transaction goes whole
    # In the last one the log starts inside the batch in which it is cut: nothing of it can stay.
    own = [seen.header for seen in read(cluster, begun) if seen.header.last_offset_delta == 2]
    start = own[-9].base_offset + 1
    deletion.delete_records(cluster, {begun: start})
    wait_for("the disks know where the log starts", lambda: starts_on_disk(bus, begun) == [start] * 3)
    points[begun] = start + 1
    layout = bus.home().layout("a")
    with pytest.raises(SiteError, match="cannot cut logs while brokers run"):
        cut(layout, points)

    end(bus)
    assert all(replicas.opened_in(path.read_bytes()) is not None for path in snapshots_on_disk(bus, topic))
    outcomes = cut(layout, points, emptied=[COORDINATORS])
    assert [(one.why_not, one.cut_replicas) for one in outcomes if one.place in points] == [("", 3)] * 4
    assert all(one.cut_replicas == 0 for one in cut(layout, points, emptied=[COORDINATORS]))
    bus.done("up")
    cluster.forget()

    wait_for("all replicas are in sync", lambda: is_whole(cluster, topic))
    wait_for("the coordinators know", lambda: transactions.unsettled(cluster) == ())
    ends = offsets.log_ends(cluster, [*places, begun])
    for place in places:
        assert ends[place] == kept[place][-1].header.next_offset <= points[place]
        assert read(cluster, place) == kept[place]
        assert described(cluster, place) == remembered(kept[place])
        assert remembered(before[place]) != remembered(kept[place])
    assert ends[begun] == start == offsets.start_offsets(cluster, [begun])[begun]
    goes_on(bus, cluster, places, kept)


def snapshots_on_disk(bus: Bus, topic: str) -> list[Path]:
    """What Kafka wrote down of a topic's producers."""
    found = [
        path
        for node in bus.home().layout("a").brokers
        for disk in node.data
        for path in disk.glob(f"{topic}-*/*.snapshot")
    ]
    assert found
    return found


def starts_on_disk(bus: Bus, place: TopicPartition) -> list[int | None]:
    """Where a log starts, by the checkpoints of the disks that have a replica."""
    return [
        replicas.offsets_in((disk / LOG_STARTS).read_text()).get(place)
        for node in bus.home().layout("a").brokers
        for disk in node.data
        if (disk / f"{place[0]}-{place[1]}").exists()
    ]


def goes_on(
    bus: Bus,
    cluster: Cluster,
    places: Sequence[TopicPartition],
    kept: dict[TopicPartition, list[Seen]],
) -> None:
    """Producers are taken up where the cut left them, and nowhere else; every replica follows."""
    for place in places:
        known = remembered(kept[place])
        end = kept[place][-1].header.next_offset
        number = next(n for n in range(7) if OWN_ID + n in known)
        following = known[OWN_ID + number].last_sequence + 1
        refused = append(cluster, place, own_batch(number, following + 3, 3))
        assert refused[0] == "OUT_OF_ORDER_SEQUENCE_NUMBER"
        assert append(cluster, place, own_batch(number, following, 3)) == ("NONE", end)
        assert append(cluster, place, own_batch(number, following, 3)) == ("NONE", end)  # a repetition
        assert offsets.log_ends(cluster, [place])[place] == end + 3
    later = librdkafka(bus, **{"transactional.id": f"{places[0][0]}-0"})
    later.init_transactions(WAIT_S)
    later.begin_transaction()
    for topic, partition in places:
        later.produce(topic, b"later", "later", partition)
    later.commit_transaction(WAIT_S)
    wait_for("everything is replicated", lambda: is_whole(cluster, places[0][0]))
    wait_for(
        "readers see it all",
        lambda: offsets.last_stable_offsets(cluster, places) == offsets.log_ends(cluster, places),
    )
