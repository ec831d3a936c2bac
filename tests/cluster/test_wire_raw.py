"""The raw conversations that a mirror is made of, against a live site of one broker.

Tests share the site, so each has a topic and a group of its own name.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka.record.default_records import DefaultRecordBatch

from tests.cluster.conftest import MakeBus, Site
from twinlog.errors import KafkaError
from twinlog.sites import processes
from twinlog.wire import codes, configs, deletion, fetch_bytes, groups, markers, offsets, producers, topics
from twinlog.wire.appending import LEADER_ONLY, Appender
from twinlog.wire.cluster import Cluster
from twinlog.wire.configs import Kind
from twinlog.wire.connection import Connection, RawRequest
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetching import Fetched, FetchLimits, FetchSession
from twinlog.wire.groups import Committed
from twinlog.wire.markers import Fill
from twinlog.wire.producers import ProducerState
from twinlog.wire.records import Record, encode_batch
from twinlog.wire.topic_keys import TopicKeys

pytestmark = pytest.mark.cluster

FILE = """\
bus: raw
kafka:
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 2
  transaction.state.log.num.partitions: 2
  message.max.bytes: 4194304
sites:
  a: {brokers: 1, controllers: 1}
"""
# A broker that is stopped for a moment must not be taken for dead: then the high watermark would go on.
FILE_OF_TWO = """\
bus: two
kafka: {broker.session.timeout.ms: 60000, replica.lag.time.max.ms: 60000}
sites:
  a: {brokers: 2, controllers: 1}
"""
LINK_ID = 2**62 + 1
WAIT_S = 30.0  # an answer takes milliseconds; the rest is a busy machine
OUT_OF_ORDER, OLD_EPOCH, INVALID_RECORD = (
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_RECORD",
)


@pytest.fixture(scope="module")
def raw_site(make_bus: MakeBus) -> Site:
    """A site of one broker for this file."""
    return Site(make_bus(FILE), "a")


@pytest.fixture
def cluster(raw_site: Site) -> Iterator[Cluster]:
    with Cluster(raw_site.access()) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic of three partitions, named after the test."""
    name: str = request.node.name.partition("[")[0]
    topics.create(cluster, topics.NewTopic(name, 3, 1))
    # The broker names itself as leader a moment before it acts as one.
    offsets.log_ends(cluster, [(name, index) for index in range(3)])
    return name


@pytest.fixture
def leader(cluster: Cluster, topic: str) -> Connection:
    """A connection to the only broker, which leads everything."""
    return cluster.broker(cluster.leader(topic, 0))


def soon() -> Deadline:
    return Deadline(WAIT_S)


def a_batch(sequence: int, *values: bytes, epoch: int = 0, producer_id: int = LINK_ID) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    return encode_batch(
        [Record(value, now_ms) for value in values],
        producer_id=producer_id,
        producer_epoch=epoch,
        first_sequence=sequence,
    )


def append(appender: Appender, topic: str, batch: bytes, partition: int = 0) -> tuple[str, int]:
    """Append one batch; gives the code's name and the offset."""
    appender.send([(topic, partition, batch)], soon())
    (answer,) = appender.receive(soon())
    assert (answer.topic, answer.partition) == (topic, partition)
    return codes.name_of(answer.code), answer.base_offset


def fetch(session: FetchSession) -> dict[int, Fetched]:
    session.send(soon())
    return {one.partition: one for one in session.receive(soon())}


def values_in(records: memoryview) -> list[tuple[int, bytes]]:
    """Offsets and values of all data records, read by a reader that is not ours."""
    reader: Any = DefaultRecordBatch
    found: list[tuple[int, bytes]] = []
    at = 0
    while at < len(records):
        end = at + 12 + int.from_bytes(records[at + 8 : at + 12], "big")
        batch = reader(bytes(records[at:end]))
        assert batch.validate_crc()
        if not batch.is_control_batch:
            found += ((record.offset, record.value) for record in batch)
        at = end
    return found


def topic_ids(cluster: Cluster, topic: str) -> dict[str, UUID]:
    (state,) = topics.describe(cluster, [topic])
    return {topic: state.id}


@pytest.mark.parametrize("by_id", [False, True])
def test_what_was_appended_is_fetched_at_the_same_offsets(
    cluster: Cluster, topic: str, leader: Connection, by_id: bool
) -> None:
    ids = topic_ids(cluster, topic) if by_id else None
    appender = Appender(leader, ids=ids)
    for sequence in range(0, 10, 2):
        appender.send([(topic, index, a_batch(sequence, b"one", b"two")) for index in (0, 2)], soon())
    for offset in range(0, 10, 2):
        answers = sorted(appender.receive(soon()))
        assert [(one.partition, one.code, one.base_offset) for one in answers] == [
            (0, 0, offset),
            (2, 0, offset),
        ]
    session = FetchSession(leader, ids=ids)
    for index in range(3):
        session.want((topic, index), 0)
    found = fetch(session)
    expected = [(offset, b"two" if offset % 2 else b"one") for offset in range(10)]
    assert values_in(found[0].records) == values_in(found[2].records) == expected
    assert values_in(found[1].records) == []
    assert (found[0].high_watermark, found[0].last_stable_offset, found[0].log_start_offset) == (10, 10, 0)
    topics.delete(cluster, topic)


def test_a_recreated_topic_is_refused_when_it_is_named_by_its_old_id(cluster: Cluster, topic: str) -> None:
    ids = topic_ids(cluster, topic)
    topics.delete(cluster, topic)
    topics.create(cluster, topics.NewTopic(topic, 3, 1))
    leader = cluster.broker(cluster.leader(topic, 0))
    assert append(Appender(leader, ids=ids), topic, a_batch(0, b"one"))[0] == "UNKNOWN_TOPIC_ID"
    session = FetchSession(leader, ids=ids)
    session.want((topic, 0), 0)
    assert codes.name_of(fetch(session)[0].code) == "UNKNOWN_TOPIC_ID"
    assert append(Appender(leader), topic, a_batch(0, b"one")) == ("NONE", 0)


def test_a_batch_that_is_there_already_is_answered_with_its_offset_and_not_written_again(
    cluster: Cluster, topic: str, leader: Connection
) -> None:
    appender = Appender(leader)
    batches = [a_batch(sequence, b"value") for sequence in range(3)]
    for offset, batch in enumerate(batches):
        assert append(appender, topic, batch) == ("NONE", offset)
    assert append(appender, topic, batches[1]) == ("NONE", 1)
    assert offsets.log_ends(cluster, [(topic, 0)]) == {(topic, 0): 3}


def test_a_gap_in_the_sequence_and_an_old_epoch_are_refused(
    cluster: Cluster, topic: str, leader: Connection
) -> None:
    appender = Appender(leader, acks=LEADER_ONLY)
    assert append(appender, topic, a_batch(0, b"value")) == ("NONE", 0)
    assert append(appender, topic, a_batch(2, b"value"))[0] == OUT_OF_ORDER
    assert append(appender, topic, a_batch(0, b"value", epoch=1)) == ("NONE", 1)
    assert append(appender, topic, a_batch(1, b"value"))[0] == OLD_EPOCH
    assert offsets.log_ends(cluster, [(topic, 0)]) == {(topic, 0): 2}


def test_a_refused_partition_does_not_hold_up_the_others_of_its_request(
    topic: str, leader: Connection
) -> None:
    appender = Appender(leader)
    misplaced = bytearray(a_batch(0, b"value"))
    misplaced[7] = 1  # a base offset that is not 0
    good = bytearray(a_batch(0, b"value"))
    appender.send([(topic, 0, good), (topic, 1, misplaced), (topic, 7, good)], soon())
    told = {one.partition: one for one in appender.receive(soon())}
    assert {index: codes.name_of(one.code) for index, one in told.items()} == {
        0: "NONE",
        1: INVALID_RECORD,
        7: "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_what_is_no_batch_at_all_refuses_its_whole_request(
    cluster: Cluster, topic: str, leader: Connection
) -> None:
    appender = Appender(leader)
    appender.send([(topic, 0, a_batch(0, b"value")), (topic, 1, bytes(100))], soon())
    told = appender.receive(soon())
    assert {codes.name_of(one.code) for one in told} == {"CORRUPT_MESSAGE"}
    assert all(one.message for one in told)
    assert offsets.log_ends(cluster, [(topic, 0)]) == {(topic, 0): 0}


def test_the_record_that_is_wrong_is_named(cluster: Cluster, topic: str, leader: Connection) -> None:
    configs.alter(cluster, Kind.TOPIC, topic, values={"cleanup.policy": "compact"})
    appender = Appender(leader)
    said: list[str] = []

    def still_taken() -> str:
        appender.send([(topic, 0, encode_batch([Record(b"no key", 0)]))], soon())
        (answer,) = appender.receive(soon())
        said.append(answer.message)
        return "" if codes.name_of(answer.code) == INVALID_RECORD else "it still takes records without a key"

    cluster.wait_until(still_taken, "waiting for a policy")
    assert said[-1]


def fill(leader: Connection, *fills: Fill) -> dict[tuple[str, int], markers.Filled]:
    """Send a fill and wait for what became of it."""
    return markers.receive_fill(leader, markers.send_fill(leader, fills, soon()), soon())


def test_a_fill_goes_behind_what_is_in_flight(topic: str, leader: Connection) -> None:
    appender = Appender(leader)
    appender.send([(topic, 0, a_batch(0, b"one"))], soon())
    filling = markers.send_fill(leader, [Fill(topic, 1, 2, LINK_ID, 0)], soon())
    appender.send([(topic, 0, a_batch(1, b"two"))], soon())
    assert appender.receive(soon())[0].base_offset == 0
    assert markers.receive_fill(leader, filling, soon()) == {(topic, 1): markers.Filled(codes.NONE, 2)}
    assert appender.receive(soon())[0].base_offset == 1


def test_markers_take_exactly_their_number_of_offsets_and_nobody_sees_them(
    raw_site: Site, cluster: Cluster, topic: str, leader: Connection
) -> None:
    appender = Appender(leader)
    assert append(appender, topic, a_batch(0, b"before")) == ("NONE", 0)
    assert append(appender, topic, a_batch(0, b"before"), partition=1) == ("NONE", 0)
    fills = [Fill(topic, 0, 7, LINK_ID, 0), Fill(topic, 1, 2, LINK_ID, 0), Fill(topic, 2, 1, LINK_ID, 3)]
    assert {place: one.code for place, one in fill(leader, *fills).items()} == dict.fromkeys(
        [(topic, index) for index in range(3)], codes.NONE
    )
    places = [(topic, index) for index in range(3)]
    assert offsets.log_ends(cluster, places) == {places[0]: 8, places[1]: 3, places[2]: 1}
    assert append(appender, topic, a_batch(1, b"after")) == ("NONE", 8)
    consumer = Consumer(
        {**raw_site.access().librdkafka(), "group.id": topic, "isolation.level": "read_uncommitted"}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        seen = consumer.consume(2, timeout=WAIT_S)
    finally:
        consumer.close()
    assert [(message.offset(), message.value()) for message in seen] == [(0, b"before"), (8, b"after")]


def test_a_fill_tells_where_the_log_ends_behind_it(topic: str, leader: Connection) -> None:
    append(Appender(leader), topic, a_batch(0, b"value", epoch=5))
    fills = [Fill(topic, 0, 3, LINK_ID, 4), Fill(topic, 1, 1000, LINK_ID, 0), Fill(topic, 9, 1, LINK_ID, 0)]
    told = fill(leader, *fills)
    assert {index: (codes.name_of(one.code), one.log_end) for (_, index), one in told.items()} == {
        0: (OLD_EPOCH, 1),
        1: ("NONE", 1000),
        9: ("UNKNOWN_TOPIC_OR_PARTITION", -1),
    }
    for log_end in range(1001, 1004):
        told = fill(leader, Fill(topic, 1, 1, LINK_ID, 0))
        assert told == {(topic, 1): markers.Filled(codes.NONE, log_end)}


def test_markers_of_an_old_epoch_are_refused(cluster: Cluster, topic: str, leader: Connection) -> None:
    place = (topic, 0)
    assert append(Appender(leader), topic, a_batch(0, b"value", epoch=5)) == ("NONE", 0)
    told = fill(leader, Fill(topic, 0, 3, LINK_ID, 4))
    assert {codes.name_of(one.code) for one in told.values()} == {OLD_EPOCH}
    assert offsets.log_ends(cluster, [place]) == {place: 1}


def test_two_fills_of_one_partition_in_one_request_are_refused(leader: Connection, topic: str) -> None:
    with pytest.raises(ValueError, match="two fills"):
        fill(leader, Fill(topic, 0, 1, 1, 0), Fill(topic, 0, 1, 2, 0))


def test_a_partition_tells_where_its_producers_stand(
    cluster: Cluster, topic: str, leader: Connection
) -> None:
    appender = Appender(leader)
    append(appender, topic, a_batch(5, b"one", b"two", epoch=3))
    append(appender, topic, a_batch(0, b"one", producer_id=LINK_ID + 1), partition=1)
    fill(leader, Fill(topic, 2, 1, LINK_ID, 8))
    found = producers.describe(cluster, [(topic, index) for index in range(3)])
    (first,) = found[(topic, 0)].items()
    assert first == (LINK_ID, ProducerState(3, 6, first[1].last_timestamp_ms, -1, -1))
    assert abs(first[1].last_timestamp_ms / 1000 - time.time()) < WAIT_S
    assert set(found[(topic, 1)]) == {LINK_ID + 1}
    only_a_marker = found[(topic, 2)][LINK_ID]
    assert (only_a_marker.epoch, only_a_marker.last_sequence) == (8, -1)


def transactional(raw_site: Site, name: str) -> Producer:
    producer = Producer({**raw_site.access().librdkafka(), "transactional.id": name})
    producer.init_transactions(WAIT_S)
    return producer


def test_an_open_transaction_holds_the_last_stable_offset_and_is_told_of_its_producer(
    raw_site: Site, cluster: Cluster, topic: str, leader: Connection
) -> None:
    place = (topic, 0)
    append(Appender(leader), topic, a_batch(0, b"before"))
    producer = transactional(raw_site, topic)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(WAIT_S) == 0
    try:
        assert offsets.log_ends(cluster, [place]) == offsets.end_offsets(cluster, [place]) == {place: 2}
        assert offsets.last_stable_offsets(cluster, [place]) == {place: 1}
        states = producers.describe(cluster, [place])[place]
        assert [state.current_txn_start_offset for state in states.values()].count(1) == 1
        committed, uncommitted = (
            FetchSession(leader, FetchLimits(read_committed=read_committed))
            for read_committed in (True, False)
        )
        for session, expected in ((committed, [b"before"]), (uncommitted, [b"before", b"open"])):
            session.want(place, 0)
            found = fetch(session)[0]
            assert [value for _, value in values_in(found.records)] == expected
            assert (found.high_watermark, found.last_stable_offset) == (2, 1)
    finally:
        producer.abort_transaction(WAIT_S)


def test_aborted_transactions_are_listed_with_their_first_offset_and_producer(
    raw_site: Site, cluster: Cluster, topic: str, leader: Connection
) -> None:
    producer = transactional(raw_site, topic)
    for value, end in ((b"kept", producer.commit_transaction), (b"lost", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        assert producer.flush(WAIT_S) == 0
        end(WAIT_S)
    place = (topic, 0)
    all_ended = {place: 4}  # two records and two markers
    cluster.wait_until(
        lambda: "" if offsets.last_stable_offsets(cluster, [place]) == all_ended else "a marker",
        "waiting for the end of transactions",
    )
    session = FetchSession(leader)
    session.want(place, 0)
    found = fetch(session)[0]
    (producer_id,) = producers.describe(cluster, [place])[place]
    assert found.aborted == ((2, producer_id),)
    assert values_in(found.records) == [(0, b"kept"), (2, b"lost")]


def test_the_log_end_runs_ahead_of_the_high_watermark_while_a_follower_is_silent(make_bus: MakeBus) -> None:
    site = Site(make_bus(FILE_OF_TWO), "a")
    first, second = site.bus.home().layout("a").brokers
    follower = processes.find([second])[second.id]
    place = ("led-by-first", 0)
    with Cluster(site.access()) as cluster:
        topics.create(cluster, topics.NewTopic(place[0], assignment=((first.id, second.id),)))
        offsets.log_ends(cluster, [place])
        appender = Appender(cluster.broker(first.id), acks=LEADER_ONLY)
        follower.suspend()
        try:
            assert append(appender, place[0], a_batch(0, b"one", b"two")) == ("NONE", 0)
            assert offsets.log_ends(cluster, [place]) == {place: 2}
            assert offsets.end_offsets(cluster, [place]) == {place: 0}
        finally:
            follower.resume()
        everywhere = {place: 2}
        cluster.wait_until(
            lambda: "" if offsets.end_offsets(cluster, [place]) == everywhere else "a copy",
            "waiting for the follower",
        )
    site.bus.done("down")


def test_later_fetches_bring_only_what_changed(topic: str, leader: Connection) -> None:
    appender = Appender(leader)
    session = FetchSession(leader, FetchLimits(max_wait_ms=100))
    for index in range(3):
        session.want((topic, index), 0)
    assert set(fetch(session)) == {0, 1, 2}
    assert fetch(session) == {}
    append(appender, topic, a_batch(0, b"value"), partition=1)
    found = fetch(session)
    assert {index: values_in(one.records) for index, one in found.items()} == {1: [(0, b"value")]}
    session.want((topic, 1), 1)
    assert fetch(session) == {}


def test_a_forgotten_partition_comes_no_more_until_it_is_wanted_again(topic: str, leader: Connection) -> None:
    appender = Appender(leader)
    session = FetchSession(leader, FetchLimits(max_wait_ms=100))
    for index in range(2):
        append(appender, topic, a_batch(0, b"value"), partition=index)
        session.want((topic, index), 0)
    assert set(fetch(session)) == {0, 1}
    session.forget((topic, 0))
    assert set(fetch(session)) == {1}
    session.want((topic, 0), 0)
    session.forget((topic, 1))
    assert set(fetch(session)) == {0}


def test_a_session_that_the_broker_has_forgotten_begins_anew(topic: str, leader: Connection) -> None:
    session = FetchSession(leader, FetchLimits(max_wait_ms=100))
    session.want((topic, 0), 0)
    session.want((topic, 1), 0)
    assert set(fetch(session)) == {0, 1}
    end_session_from_outside(leader, session)
    assert fetch(session) == {}
    assert set(fetch(session)) == {0, 1}
    session.end(soon())
    assert set(fetch(session)) == {0, 1}


def end_session_from_outside(leader: Connection, session: FetchSession) -> None:
    """What a broker does by itself when it has no room for more sessions."""
    keys = TopicKeys()
    last = (session._session_id, fetch_bytes.LAST_EPOCH)
    body = fetch_bytes.encode(12, keys, FetchLimits(), last, {})
    request = RawRequest(
        fetch_bytes.NAME, fetch_bytes.API_KEY, 12, [body], lambda frame: fetch_bytes.decode(frame, keys)
    )
    assert leader.receive(leader.send_raw(request, soon()), soon()).code == codes.NONE


def test_a_record_that_is_larger_than_all_limits_comes_through(topic: str, leader: Connection) -> None:
    appender = Appender(leader)
    large = bytes(range(256)) * 8192
    for index in range(2):
        assert append(appender, topic, a_batch(0, large), partition=index) == ("NONE", 0)
    session = FetchSession(leader, FetchLimits(max_bytes=1000, partition_max_bytes=1000))
    wanted = {0, 1}
    for index in wanted:
        session.want((topic, index), 0)
    deadline = soon()
    while wanted and not deadline.passed:
        for index, one in fetch(session).items():
            if one.records:
                assert values_in(one.records) == [(0, large)]
                session.want((topic, index), 1)
                wanted.discard(index)
    assert wanted == set()


def test_positions_outside_the_log_and_partitions_that_are_not_there_are_told_by_code(
    topic: str, leader: Connection
) -> None:
    session = FetchSession(leader)
    session.want((topic, 0), 100)
    session.want((topic, 9), 0)
    session.want((topic, 1), 0)
    told = {index: codes.name_of(one.code) for index, one in fetch(session).items()}
    assert told == {0: "OFFSET_OUT_OF_RANGE", 9: "UNKNOWN_TOPIC_OR_PARTITION", 1: "NONE"}


def test_fetched_batches_are_stamped_where_they_lie_and_appended(
    cluster: Cluster, topic: str, leader: Connection
) -> None:
    appender = Appender(leader)
    for sequence in range(3):
        append(appender, topic, a_batch(sequence, b"value"))
    session = FetchSession(leader)
    session.want((topic, 0), 0)
    records = fetch(session)[0].records
    size = len(records) // 3
    for number in range(3):
        batch = records[number * size : (number + 1) * size]
        batch[:8] = bytes(8)
        appender.send([(topic, 1, batch)], soon())
    assert [appender.receive(soon())[0].base_offset for _ in range(3)] == [0, 1, 2]
    assert offsets.log_ends(cluster, [(topic, 1)]) == {(topic, 1): 3}


def test_deleting_records_moves_the_log_start_and_never_back(
    cluster: Cluster, topic: str, leader: Connection
) -> None:
    appender = Appender(leader)
    for sequence in range(5):
        append(appender, topic, a_batch(sequence, b"value"))
    place = (topic, 0)
    assert deletion.delete_records(cluster, {place: 3, (topic, 1): 0}) == {place: 3, (topic, 1): 0}
    assert deletion.delete_records(cluster, {place: 2}) == {place: 3}
    assert offsets.start_offsets(cluster, [place]) == {place: 3}
    session = FetchSession(leader)
    session.want(place, 0)
    assert codes.name_of(fetch(session)[0].code) == "OFFSET_OUT_OF_RANGE"
    session.want(place, 3)
    assert fetch(session)[0].log_start_offset == 3


def test_records_of_a_compacted_topic_are_not_deleted(cluster: Cluster, topic: str) -> None:
    configs.alter(cluster, Kind.TOPIC, topic, values={"cleanup.policy": "compact"})
    cluster.wait_until(lambda: _still_deletes(cluster, topic), "waiting for a policy")


def _still_deletes(cluster: Cluster, topic: str) -> str:
    try:
        deletion.delete_records(cluster, {(topic, 0): 0})
    except KafkaError as refusal:
        assert refusal.code == "POLICY_VIOLATION"
        return ""
    return "it still deletes"


def test_offsets_of_groups_are_copied_verbatim(cluster: Cluster, topic: str) -> None:
    first, second = f"{topic}-1", f"{topic}-2"
    wanted = {
        first: {(topic, 0): Committed(5, "some words"), (topic, 2): Committed(0)},
        second: {(topic, 1): Committed(2**40)},
    }
    told = groups.commit(cluster, wanted)
    assert told == {name: dict.fromkeys(places, codes.NONE) for name, places in wanted.items()}
    assert groups.committed(cluster, [first, second, "nobody"]) == {**wanted, "nobody": {}}
    listed = {group.name: group for group in groups.list_groups(cluster)}
    assert not listed[first].has_members
    assert (listed[first].state, listed[first].type) == (groups.EMPTY, "classic")
    assert "nobody" not in listed


def test_an_offset_for_a_topic_that_is_not_there_is_told_by_code(cluster: Cluster, topic: str) -> None:
    told = groups.commit(cluster, {topic: {(topic, 0): Committed(1), ("missing", 0): Committed(1)}})
    assert {codes.name_of(code) for code in told[topic].values()} == {"NONE", "UNKNOWN_TOPIC_OR_PARTITION"}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_names_them_and_takes_no_offsets_from_outside(
    raw_site: Site, cluster: Cluster, topic: str, protocol: str
) -> None:
    name = f"{topic}-{protocol}"
    settings = {"group.id": name, "client.id": "reader", "group.protocol": protocol}
    consumer = Consumer({**raw_site.access().librdkafka(), **settings})
    try:
        consumer.subscribe([topic])
        deadline = soon()
        while not consumer.assignment() and not deadline.passed:
            consumer.poll(0.1)
        (listed,) = [group for group in groups.list_groups(cluster) if group.name == name]
        assert listed.has_members
        assert listed.type == protocol
        membership = groups.describe(cluster, [listed.name, "nobody"])
        told = groups.commit(cluster, {name: {(topic, 0): Committed(1)}})
    finally:
        consumer.close()
    assert {codes.name_of(code) for code in told[name].values()} == {"UNKNOWN_MEMBER_ID"}
    assert set(membership) == {name}
    assert [member.client_id for member in membership[name].members] == ["reader"]
    topics.delete(cluster, topic)
