"""The bytes of Fetch, compared with those that kafka-python's classes write."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest, FetchResponse

from twinlog.wire import fetch_bytes
from twinlog.wire.fetch_bytes import Fetched, FetchLimits
from twinlog.wire.topic_keys import TopicKeys

IDS = {"orders": UUID(int=7), "a": UUID(int=2**127 + 1), "köln.€": UUID(int=2**64)}
VERSIONS = range(12, 19)
FIRST_BY_ID = 13

numbers = st.integers(-1, 2**63 - 1)
small = st.integers(-1, 2**31 - 1)
places = st.tuples(st.sampled_from(sorted(IDS)), st.integers(0, 300))
fetched = st.builds(
    Fetched,
    topic=st.sampled_from(sorted(IDS)),
    partition=st.integers(0, 300),
    code=st.integers(-1, 140),
    high_watermark=numbers,
    last_stable_offset=numbers,
    log_start_offset=numbers,
    aborted=st.lists(st.tuples(numbers, numbers), max_size=3).map(tuple),
    records=st.binary(max_size=400).map(memoryview),
)


def keys_for(version: int) -> TopicKeys:
    keys = TopicKeys(IDS if version >= FIRST_BY_ID else None)
    for topic in IDS:
        keys.write(topic)
    return keys


def by_topic(partitions: Any) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = {}
    for topic, content in partitions:
        grouped.setdefault(topic, []).append(content)
    return grouped


@given(
    version=st.sampled_from(VERSIONS),
    limits=st.builds(FetchLimits, small, small, small, small, st.booleans()),
    session=st.tuples(small, small),
    wanted=st.dictionaries(places, numbers, max_size=200),
    forgotten=st.lists(places, max_size=200, unique=True),
)
def test_a_request_is_written_as_others_write_it(
    version: int,
    limits: FetchLimits,
    session: tuple[int, int],
    wanted: dict[tuple[str, int], int],
    forgotten: list[tuple[str, int]],
) -> None:
    asked = FetchRequest.FetchTopic
    left = FetchRequest.ForgottenTopic
    expected: Any = FetchRequest(
        replica_id=-1,
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=int(limits.read_committed),
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            asked(
                topic=topic,
                topic_id=IDS[topic],
                partitions=[
                    asked.FetchPartition(
                        partition=partition,
                        current_leader_epoch=-1,
                        fetch_offset=offset,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=limits.partition_max_bytes,
                    )
                    for partition, offset in partitions
                ],
            )
            for topic, partitions in by_topic((t, (p, offset)) for (t, p), offset in wanted.items()).items()
        ],
        forgotten_topics_data=[
            left(topic=topic, topic_id=IDS[topic], partitions=partitions)
            for topic, partitions in by_topic(forgotten).items()
        ],
        rack_id="",
    )
    ours = fetch_bytes.encode(version, keys_for(version), limits, session, wanted, forgotten)
    assert ours == bytes(expected.encode(version=version))


def response(version: int, code: int, session_id: int, partitions: list[Fetched], *, tagged: bool) -> bytes:
    kind = FetchResponse.FetchableTopicResponse
    data = kind.PartitionData
    extra: dict[str, Any] = {}
    if tagged:
        extra = {
            "diverging_epoch": data.EpochEndOffset(epoch=5, end_offset=9),
            "current_leader": data.LeaderIdAndEpoch(leader_id=1001, leader_epoch=4),
        }
    endpoint = FetchResponse.NodeEndpoint(node_id=1001, host="there", port=9, rack=None)
    answer: Any = FetchResponse(
        throttle_time_ms=3,
        error_code=code,
        session_id=session_id,
        responses=[
            kind(
                topic=topic,
                topic_id=IDS[topic],
                partitions=[
                    data(
                        partition_index=one.partition,
                        error_code=one.code,
                        high_watermark=one.high_watermark,
                        last_stable_offset=one.last_stable_offset,
                        log_start_offset=one.log_start_offset,
                        aborted_transactions=[
                            data.AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
                            for first_offset, producer_id in one.aborted
                        ]
                        or None,
                        preferred_read_replica=-1,
                        records=bytes(one.records) or None,
                        **extra,
                    )
                    for one in theirs
                ],
            )
            for topic, theirs in by_topic((one.topic, one) for one in partitions).items()
        ],
        node_endpoints=[endpoint] if tagged else [],
    )
    return bytes(answer.encode(version=version))


@given(
    version=st.sampled_from(VERSIONS),
    code=st.integers(-1, 140),
    session_id=small,
    partitions=st.lists(fetched, max_size=20),
    tagged=st.booleans(),
)
def test_an_answer_reads_as_what_others_wrote(
    version: int, code: int, session_id: int, partitions: list[Fetched], tagged: bool
) -> None:
    encoded = response(version, code, session_id, partitions, tagged=tagged)
    answer = fetch_bytes.decode(memoryview(bytearray(encoded)), keys_for(version))
    assert (answer.code, answer.session_id) == (code, session_id)
    expected = [one for group in by_topic((one.topic, one) for one in partitions).values() for one in group]
    assert answer.fetched == expected


def a_partition(records: bytes) -> Fetched:
    return Fetched("orders", 3, 0, 100, 90, 5, ((7, 1), (8, 2)), memoryview(records))


def test_records_are_changed_in_the_frame_itself() -> None:
    frame = bytearray(response(12, 0, 1, [a_partition(b"records"), a_partition(b"others")], tagged=False))
    first, second = fetch_bytes.decode(memoryview(frame), keys_for(12)).fetched
    first.records[:3] = b"REC"
    assert b"RECords" in frame
    assert bytes(second.records) == b"others"


def test_records_of_more_than_two_megabytes_need_a_longer_length() -> None:
    large = bytes(2**21 + 1)
    frame = bytearray(response(12, 0, 1, [a_partition(large), a_partition(b"others")], tagged=False))
    first, second = fetch_bytes.decode(memoryview(frame), keys_for(12)).fetched
    assert bytes(first.records) == large
    assert bytes(second.records) == b"others"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_that_is_cut_off_is_not_read(version: int) -> None:
    frame = response(version, 0, 1, [a_partition(b"records")], tagged=True)
    ends_of_read_parts = range(len(frame) - 20)  # behind it come fields of the whole that nobody reads
    for end in ends_of_read_parts:
        with pytest.raises((ValueError, IndexError, struct.error)):
            fetch_bytes.decode(memoryview(bytearray(frame[:end])), keys_for(version))


def test_an_answer_about_an_unknown_topic_id_is_not_read() -> None:
    frame = response(13, 0, 1, [a_partition(b"records")], tagged=False)
    with pytest.raises(ValueError, match="not asked for"):
        fetch_bytes.decode(memoryview(bytearray(frame)), TopicKeys(IDS))
