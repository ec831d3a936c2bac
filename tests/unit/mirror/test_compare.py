"""Whether two logs show the same."""

from __future__ import annotations

import pytest

from tests.unit.wire import samples
from twinlog.mirror.compare import Difference, Seen, first_difference, seen
from twinlog.wire.batches import LOG_APPEND_TIME_BIT, Header
from twinlog.wire.records import Record

ONE, OTHER, LATER = Seen(5, b"one"), Seen(5, b"other"), Seen(6, b"one")


@pytest.mark.parametrize("compacted", [True, False])
def test_same_records_no_difference(compacted: bool) -> None:
    assert first_difference({}, {}, compacted=compacted) is None
    assert first_difference({3: ONE}, {3: ONE}, compacted=compacted) is None


@pytest.mark.parametrize("compacted", [True, False])
def test_other_content_or_time_at_an_offset_is_a_difference(compacted: bool) -> None:
    differs = Difference(4, "key, value or headers differ")
    assert first_difference({3: ONE, 4: ONE}, {3: ONE, 4: OTHER}, compacted=compacted) == differs
    later = Difference(4, "times differ: 5 and 6")
    assert first_difference({4: ONE}, {4: LATER}, compacted=compacted) == later


def test_shifted_record_the_first_offset_is_named() -> None:
    found = first_difference({3: ONE, 5: ONE}, {4: ONE, 5: ONE}, compacted=False)
    assert found == Difference(3, "the standby lacks a record")


def test_additional_record_is_a_difference() -> None:
    found = first_difference({}, {9: ONE}, compacted=False)
    assert found == Difference(9, "the standby has a record that the active has not")


def test_compacted_topic_either_side_may_lack_a_record() -> None:
    assert first_difference({3: ONE, 4: ONE}, {4: ONE, 5: ONE}, compacted=True) is None


def test_records_of_a_batch_have_the_time_that_readers_see() -> None:
    records = [Record(b"v", 1000), Record(None, 1001, key=b"k")]
    header = Header(base_offset=7, last_offset_delta=1, base_timestamp_ms=1000, max_timestamp_ms=2000)
    placed = samples.placed(records, 7)
    assert [at for at, _ in seen(samples.lying(placed, header))] == [7, 8]
    assert [one.timestamp_ms for _, one in seen(samples.lying(placed, header))] == [1000, 1001]
    own_time = header._replace(attributes=LOG_APPEND_TIME_BIT)
    assert [one.timestamp_ms for _, one in seen(samples.lying(placed, own_time))] == [2000, 2000]
