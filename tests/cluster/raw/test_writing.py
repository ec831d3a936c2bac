"""What a mirror writes: batches, markers, and what a partition remembers of it, against a live site."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.cluster.conftest import Site
from tests.cluster.raw.talk import LINK_ID, WAIT_S, a_batch, append, fetch, fill, soon, topic_ids, values_in
from twinlog.errors import KafkaError
from twinlog.wire import codes, configs, deletion, markers, offsets, producers, topics
from twinlog.wire.appending import LEADER_ONLY, Appender
from twinlog.wire.cluster import Cluster
from twinlog.wire.configs import Kind
from twinlog.wire.connection import Connection
from twinlog.wire.fetching import FetchSession
from twinlog.wire.markers import Fill
from twinlog.wire.producers import ProducerState
from twinlog.wire.records import Record, encode_batch

pytestmark = pytest.mark.cluster

OUT_OF_ORDER, OLD_EPOCH, INVALID_RECORD = (
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_RECORD",
)


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
    fills = [Fill(topic, 0, 3, LINK_ID, 4), Fill(topic, 1, 1000, LINK_ID, 0), Fill(topic, 9, 2, LINK_ID, 0)]
    told = fill(leader, *fills)
    assert {index: (codes.name_of(one.code), one.log_end) for (_, index), one in told.items()} == {
        0: (OLD_EPOCH, 1),
        1: ("NONE", 1000),
        9: ("UNKNOWN_TOPIC_OR_PARTITION", -1),
    }


def test_a_single_marker_is_there_when_its_code_says_so_and_the_log_end_is_not_asked_for(
    cluster: Cluster, topic: str, leader: Connection
) -> None:
    for count in range(1, 4):
        assert fill(leader, Fill(topic, 1, 1, LINK_ID, 5)) == {(topic, 1): markers.Filled(codes.NONE, None)}
        assert offsets.log_ends(cluster, [(topic, 1)]) == {(topic, 1): count}
    told = fill(
        leader, Fill(topic, 1, 1, LINK_ID, 4), Fill(topic, 0, 2, LINK_ID, 0), Fill(topic, 9, 1, LINK_ID, 0)
    )
    assert {index: (codes.name_of(one.code), one.log_end) for (_, index), one in told.items()} == {
        0: ("NONE", 2),
        1: (OLD_EPOCH, None),
        9: ("UNKNOWN_TOPIC_OR_PARTITION", None),
    }
    assert offsets.log_ends(cluster, [(topic, 1)]) == {(topic, 1): 3}


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
