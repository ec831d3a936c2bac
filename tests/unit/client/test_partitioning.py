"""Which partition a record goes to. `tests/running/client` asks librdkafka and Kafka's own classes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.client.partitioning import Turns, murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "hashed"),
    # From Kafka's own unit tests of its hash, without the sign.
    [
        (b"21", 2**32 - 973932308),
        (b"foobar", 2**32 - 790332482),
        (b"a-little-bit-long-string", 2**32 - 985981536),
        (b"a-little-bit-longer-string", 2**32 - 1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", 2**32 - 58897971),
        (b"abc", 479470107),
    ],
)
def test_known_keys_have_the_hash_of_kafka(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed


@given(st.binary(max_size=40), st.integers(1, 100))
def test_a_key_goes_to_one_of_the_partitions(key: bytes, partitions: int) -> None:
    assert 0 <= partition_of(key, partitions) < partitions


@given(st.lists(st.sampled_from(["orders", "payments"]), max_size=40), st.integers(1, 7))
def test_turns_go_around_in_each_topic_by_itself(topics: list[str], partitions: int) -> None:
    turns = Turns()
    seen: dict[str, list[int]] = {}
    for topic in topics:
        seen.setdefault(topic, []).append(turns.next(topic, partitions))
    for dealt in seen.values():
        assert dealt == [number % partitions for number in range(len(dealt))]
