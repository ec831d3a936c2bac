"""Reassignments as files: what Kafka's own tool writes is read, and what is wrong is named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import UsageError
from twinlog.ops.assignment import Change, Load, Peer, from_file, loads, refuse_unknown, to_file

assignments = st.dictionaries(
    st.tuples(st.text("abc._-", min_size=1), st.integers(0, 99)),
    st.lists(st.integers(0, 3000), min_size=1, max_size=5, unique=True).map(tuple),
)


@given(assignments)
def test_what_was_written_is_read_again(assignment: dict[tuple[str, int], tuple[int, ...]]) -> None:
    assert from_file(to_file(assignment), "plan.json") == assignment


def test_a_file_of_kafkas_own_tool_is_read() -> None:
    content = (
        '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2],"log_dirs":["any","any"]},'
        '{"topic":"foo","partition":1,"replicas":[3]}]}'
    )
    assert from_file(content, "f") == {("foo", 0): (1, 2), ("foo", 1): (3,)}


ENTRY = {"topic": "t", "partition": 0, "replicas": [1, 2]}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "it is no JSON"),
        ("[]", 'does not say "version": 1'),
        ('{"version": 2, "partitions": []}', 'does not say "version": 1'),
        ('{"version": 1}', 'no list "partitions"'),
        (json.dumps({"version": 1, "partitions": [7]}), "entry 1 is no object"),
        (json.dumps({"version": 1, "partitions": [{"topic": "t"}]}), "entry 1 lacks"),
        (json.dumps({"version": 1, "partitions": [ENTRY | {"partition": True}]}), "entry 1 lacks"),
        (json.dumps({"version": 1, "partitions": [ENTRY, ENTRY]}), "t-0 stands in it twice"),
        (
            json.dumps({"version": 1, "partitions": [ENTRY | {"replicas": [1, 1]}]}),
            "two copies on one broker",
        ),
        (json.dumps({"version": 1, "partitions": [ENTRY | {"replicas": []}]}), "no list of broker ids"),
        (json.dumps({"version": 1, "partitions": [ENTRY | {"replicas": ["1"]}]}), "no list of broker ids"),
        (
            json.dumps({"version": 1, "partitions": [ENTRY | {"log_dirs": ["any", "/disk"]}]}),
            "a named log directory",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_reason(content: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        from_file(content, "plan.json")
    assert refused.value.where == "plan.json"


def test_a_file_that_names_what_is_not_there_is_refused() -> None:
    current, peers = {("t", 0): (1, 2)}, [Peer(1), Peer(2)]
    refuse_unknown({("t", 0): (2, 1)}, current, peers, "f")
    with pytest.raises(UsageError, match="no partition t-1"):
        refuse_unknown({("t", 1): (2, 1)}, current, peers, "f")
    with pytest.raises(UsageError, match="broker 3, which is not there"):
        refuse_unknown({("t", 0): (3, 1)}, current, peers, "f")


def test_loads_count_leaders_copies_and_bytes_of_brokers_that_are_gone_too() -> None:
    found = loads({("t", 0): (1, 9), ("t", 1): (2, 1)}, [Peer(1, "r1"), Peer(2), Peer(3)], {("t", 0): 10})
    assert found == [
        Load(1, "r1", 1, 2, 10),
        Load(2, None, 1, 1, 0),
        Load(3, None, 0, 0, 0),
        Load(9, None, 0, 1, 10),
    ]


def test_a_change_says_who_gets_and_who_loses_a_copy() -> None:
    change = Change("t", 0, (1, 2), (3, 1), 100)
    assert (change.adding, change.removing, change.copied_bytes) == ((3,), (2,), 100)
