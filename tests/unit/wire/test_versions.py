"""Which version of a request is sent, and which requests count as writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol import admin, consumer, metadata, producer

from twinlog.wire.versions import Range, choose, is_write

ranges = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda ends: Range(min(ends), max(ends)))


@given(ranges, ranges, st.none() | st.integers(0, 20))
def test_the_highest_common_version_below_the_cap_is_chosen(
    ours: Range, theirs: Range, cap: int | None
) -> None:
    common = set(range(ours.low, ours.high + 1)) & set(range(theirs.low, theirs.high + 1))
    allowed = {version for version in common if cap is None or version <= cap}
    assert choose(ours, theirs, cap) == max(allowed, default=None)


def test_a_request_that_the_broker_does_not_know_has_no_version() -> None:
    assert choose(Range(0, 5), None) is None


@pytest.mark.parametrize(
    "name", ["MetadataRequest", "DescribeConfigsRequest", "ListOffsetsRequest", "FetchRequest"]
)
def test_a_request_that_only_reads_is_no_write(name: str) -> None:
    assert not is_write(name)


def test_every_request_that_changes_something_is_a_write() -> None:
    changing = (
        "Create",
        "Delete",
        "Alter",
        "Incremental",
        "Produce",
        "Init",
        "Add",
        "End",
        "Txn",
        "Write",
        "Update",
    )
    names = [name for module in (admin, consumer, metadata, producer) for name in module.__all__]
    found = [name for name in names if name.endswith("Request") and name.startswith(changing)]
    assert len(found) > 10
    assert all(is_write(name) for name in found)


def test_a_request_that_is_not_known_counts_as_a_write() -> None:
    assert is_write("SomethingNewRequest")
