"""The bytes of Produce, compared with those that kafka-python's classes write."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from tests.unit.wire.test_fetch_bytes import IDS, by_topic, places
from twinlog.wire import produce_bytes
from twinlog.wire.produce_bytes import Appended
from twinlog.wire.topic_keys import TopicKeys

VERSIONS = range(9, 14)
FIRST_BY_ID = 13
WITHOUT_RECORD_ERRORS: list[tuple[int, str | None]] = []

appended = st.builds(
    Appended,
    topic=st.sampled_from(sorted(IDS)),
    partition=st.integers(0, 300),
    code=st.integers(-1, 140),
    base_offset=st.integers(-1, 2**63 - 1),
    message=st.text(max_size=200),
)


def keys_for(version: int) -> TopicKeys:
    keys = TopicKeys(IDS if version >= FIRST_BY_ID else None)
    for topic in IDS:
        keys.write(topic)
    return keys


@given(
    version=st.sampled_from(VERSIONS),
    acks=st.sampled_from([-1, 1]),
    timeout_ms=st.integers(0, 2**31 - 1),
    batches=st.dictionaries(places, st.binary(max_size=300), max_size=200),
)
def test_a_request_is_written_as_others_write_it(
    version: int, acks: int, timeout_ms: int, batches: dict[tuple[str, int], bytes]
) -> None:
    kind = ProduceRequest.TopicProduceData
    expected: Any = ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            kind(
                name=topic,
                topic_id=IDS[topic],
                partition_data=[
                    kind.PartitionProduceData(index=index, records=batch) for index, batch in entries
                ],
            )
            for topic, entries in by_topic((t, (p, batch)) for (t, p), batch in batches.items()).items()
        ],
    )
    given_batches = [(topic, partition, memoryview(batch)) for (topic, partition), batch in batches.items()]
    pieces = produce_bytes.encode(keys_for(version), acks, timeout_ms, given_batches)
    assert b"".join(pieces) == bytes(expected.encode(version=version))


def test_batches_stay_where_they_are() -> None:
    batch = memoryview(bytearray(b"batch"))
    pieces = produce_bytes.encode(TopicKeys(), -1, 1000, [("orders", 0, batch), ("orders", 1, batch)])
    assert sum(piece is batch for piece in pieces) == 2


def test_two_batches_for_one_partition_are_refused() -> None:
    with pytest.raises(ValueError, match="two batches for orders-1"):
        produce_bytes.encode(TopicKeys(), -1, 1000, [("orders", 1, b"a"), ("orders", 1, b"b")])


def response(
    version: int, partitions: list[Appended], wrong: list[tuple[int, str | None]], *, tagged: bool
) -> bytes:
    kind = ProduceResponse.TopicProduceResponse
    part = kind.PartitionProduceResponse
    extra: dict[str, Any] = {}
    if tagged:
        extra = {"current_leader": part.LeaderIdAndEpoch(leader_id=1001, leader_epoch=4)}
    endpoint = ProduceResponse.NodeEndpoint(node_id=1001, host="there", port=9, rack=None)
    answer: Any = ProduceResponse(
        responses=[
            kind(
                name=topic,
                topic_id=IDS[topic],
                partition_responses=[
                    part(
                        index=one.partition,
                        error_code=one.code,
                        base_offset=one.base_offset,
                        log_append_time_ms=-1,
                        log_start_offset=0,
                        record_errors=[
                            part.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=said)
                            for index, said in wrong
                        ],
                        error_message=one.message or None,
                        **extra,
                    )
                    for one in theirs
                ],
            )
            for topic, theirs in by_topic((one.topic, one) for one in partitions).items()
        ],
        throttle_time_ms=0,
        node_endpoints=[endpoint] if tagged else [],
    )
    return bytes(answer.encode(version=version))


@given(version=st.sampled_from(VERSIONS), partitions=st.lists(appended, max_size=20), tagged=st.booleans())
def test_an_answer_reads_as_what_others_wrote(version: int, partitions: list[Appended], tagged: bool) -> None:
    encoded = response(version, partitions, WITHOUT_RECORD_ERRORS, tagged=tagged)
    expected = [one for group in by_topic((one.topic, one) for one in partitions).values() for one in group]
    assert produce_bytes.decode(memoryview(encoded), keys_for(version)) == expected


def test_words_about_single_records_stand_in_for_a_missing_message() -> None:
    refused = Appended("orders", 1, 87, -1, "")
    encoded = response(12, [refused, refused], [(3, "no key"), (4, None)], tagged=False)
    for one in produce_bytes.decode(memoryview(encoded), keys_for(12)):
        assert one == refused._replace(message="record 3: no key; record 4")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_that_is_cut_off_is_not_read(version: int) -> None:
    frame = response(version, [Appended("orders", 1, 87, -1, "why")], [(3, "no key")], tagged=False)
    throttle_and_tags = 5  # behind what is read
    for end in range(len(frame) - throttle_and_tags):
        with pytest.raises((ValueError, IndexError, struct.error)):
            produce_bytes.decode(memoryview(frame[:end]), keys_for(version))
