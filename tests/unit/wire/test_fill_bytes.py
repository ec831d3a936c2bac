"""The bytes of fills, compared with those that kafka-python's classes write."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.producer import WriteTxnMarkersRequest, WriteTxnMarkersResponse

from tests.unit.wire.test_fetch_bytes import by_topic, places
from twinlog.wire import fill_bytes
from twinlog.wire.fill_bytes import Fill

MARKERS_VERSIONS, ENDS_VERSIONS = (1, 2), range(6, 10)
Place = tuple[str, int]

numbers = st.integers(-1, 2**63 - 1)
code = st.integers(-1, 140)


def a_marker(producer_id: int, epoch: int, marked: list[Place]) -> WriteTxnMarkersRequest.WritableTxnMarker:
    kind = WriteTxnMarkersRequest.WritableTxnMarker
    return kind(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=False,
        topics=[
            kind.WritableTxnMarkerTopic(name=topic, partition_indexes=partitions)
            for topic, partitions in by_topic(marked).items()
        ],
        coordinator_epoch=0,
        transaction_version=0,
    )


@given(
    version=st.sampled_from(MARKERS_VERSIONS),
    counts=st.dictionaries(places, st.tuples(st.integers(1, 5), st.integers(0, 1)), max_size=20),
)
def test_markers_are_written_as_others_write_them(version: int, counts: dict[Place, tuple[int, int]]) -> None:
    fills = [Fill(*place, count, 2**62, epoch) for place, (count, epoch) in counts.items()]
    epochs = dict.fromkeys(epoch for _, epoch in counts.values())
    expected: Any = WriteTxnMarkersRequest(
        markers=[
            a_marker(2**62, epoch, marked)
            for epoch in epochs
            for turn in range(5)
            if (marked := [place for place, (count, own) in counts.items() if count > turn and own == epoch])
        ]
    )
    assert fill_bytes.encode_markers(version, fills) == bytes(expected.encode(version=version))


@given(version=st.sampled_from(MARKERS_VERSIONS), codes=st.dictionaries(places, code, max_size=200))
def test_codes_of_markers_read_as_what_others_wrote(version: int, codes: dict[Place, int]) -> None:
    kind = WriteTxnMarkersResponse.WritableTxnMarkerResult
    topic = kind.WritableTxnMarkerTopicResult
    halves: list[list[tuple[str, tuple[int, int]]]] = [[], []]
    for number, ((name, partition), one) in enumerate(codes.items()):
        halves[number % 2].append((name, (partition, one)))
    answer: Any = WriteTxnMarkersResponse(
        markers=[
            kind(
                producer_id=number,
                topics=[
                    topic(
                        name=name,
                        partitions=[
                            topic.WritableTxnMarkerPartitionResult(partition_index=index, error_code=one)
                            for index, one in theirs
                        ],
                    )
                    for name, theirs in by_topic(half).items()
                ],
            )
            for number, half in enumerate(halves)
        ]
    )
    assert fill_bytes.decode_markers(memoryview(bytes(answer.encode(version=version)))) == codes


@given(version=st.sampled_from(ENDS_VERSIONS), wanted=st.lists(places, max_size=200, unique=True))
def test_the_question_for_log_ends_is_written_as_others_write_it(version: int, wanted: list[Place]) -> None:
    kind = ListOffsetsRequest.ListOffsetsTopic
    expected: Any = ListOffsetsRequest(
        replica_id=-2,
        isolation_level=0,
        topics=[
            kind(
                name=topic,
                partitions=[
                    kind.ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=-1)
                    for index in partitions
                ],
            )
            for topic, partitions in by_topic(wanted).items()
        ],
    )
    assert fill_bytes.encode_ends(wanted) == bytes(expected.encode(version=version))


def ends(version: int, told: dict[Place, tuple[int, int]]) -> bytes:
    kind = ListOffsetsResponse.ListOffsetsTopicResponse
    answer: Any = ListOffsetsResponse(
        throttle_time_ms=2,
        topics=[
            kind(
                name=topic,
                partitions=[
                    kind.ListOffsetsPartitionResponse(
                        partition_index=index, error_code=one, timestamp=-1, offset=offset, leader_epoch=4
                    )
                    for index, (one, offset) in theirs
                ],
            )
            for topic, theirs in by_topic((t, (p, content)) for (t, p), content in told.items()).items()
        ],
    )
    return bytes(answer.encode(version=version))


@given(
    version=st.sampled_from(ENDS_VERSIONS),
    told=st.dictionaries(places, st.tuples(code, numbers), max_size=200),
)
def test_log_ends_read_as_what_others_wrote(version: int, told: dict[Place, tuple[int, int]]) -> None:
    assert fill_bytes.decode_ends(memoryview(ends(version, told))) == told


def test_an_answer_that_is_cut_off_is_not_read() -> None:
    frame = ends(9, {("orders", 1): (0, 5)})
    for end in range(len(frame) - 1):
        with pytest.raises((ValueError, IndexError, struct.error)):
            fill_bytes.decode_ends(memoryview(frame[:end]))
