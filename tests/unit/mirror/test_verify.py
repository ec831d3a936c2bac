"""Comparing two logs: what counts as equal however it is packed, what a cleaner may have taken, what not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire import samples
from tests.unit.wire.samples import codecs, lying, record_lists, rest_of
from twinlog.errors import SiteError
from twinlog.mirror import compare
from twinlog.mirror.checkpoint import VerifyState
from twinlog.mirror.comparison import MOST_DIFFERENCES, Comparison
from twinlog.mirror.memory import Twins
from twinlog.mirror.missing import Missing, Side
from twinlog.mirror.outline import outline
from twinlog.wire.batches import LOG_APPEND_TIME_BIT, Batch, Codec, Header, UnreadableBatch
from twinlog.wire.contents import contents, key_of
from twinlog.wire.records import Record

NOW_MS = 1_000_000
TOMBSTONE_MS = 1_000
TIME_MS = NOW_MS - 10  # too young for a tombstone to go
TWINS = Twins(UUID(int=1), UUID(int=2))


def batch(first: int, records: Sequence[Record], **header: int) -> Batch:
    """Records at consecutive offsets as one batch."""
    placed = [(first + delta, record) for delta, record in enumerate(records)]
    return thinned(first, first + len(records), placed, **header)


def thinned(first: int, end: int, placed: Sequence[tuple[int, Record]], **header: int) -> Batch:
    """A batch that stands for more offsets than it has records."""
    content = [samples.Seen(offset, record.timestamp_ms, rest_of(record)) for offset, record in placed]
    times = [record.timestamp_ms for _, record in placed]
    fixed = {"base_timestamp_ms": times[0], "max_timestamp_ms": max(times), **header}
    return lying(content, Header(base_offset=first, last_offset_delta=end - first - 1, **fixed))


def record(key: str | None, value: str | None, timestamp_ms: int = TIME_MS) -> Record:
    """A small record."""
    sent = None if key is None else key.encode()
    return Record(None if value is None else value.encode(), timestamp_ms, sent)


def chunk(batches: Iterable[Batch]) -> memoryview:
    """Batches as a fetch brings them."""
    return memoryview(bytearray(b"".join(bytes(one.view) for one in batches)))


def compared(
    active: Sequence[Batch], standby: Sequence[Batch], end: int, missing: Missing | None = None
) -> Comparison:
    """Both logs, read whole and compared."""
    comparison = Comparison(0, end, missing)
    for side, log in ((Side.ACTIVE, active), (Side.STANDBY, standby)):
        comparison.offer(side, chunk(log), ())
    comparison.advance()
    comparison.settle()
    return comparison


def cleaner() -> Missing:
    """The rule for compacted topics."""
    return Missing(TOMBSTONE_MS, NOW_MS)


# Packaging


@given(
    content=st.lists(record_lists, min_size=1, max_size=5),
    seams=st.sets(st.integers(1, 29)),
    codec=codecs,
    data=st.data(),
)
def test_same_records_in_other_batches_and_pieces_are_equal(
    content: list[list[Record]], seams: set[int], codec: Codec, data: st.DataObject
) -> None:
    records = [one for part in content for one in part]
    end = len(records)
    borders = sorted({0, end, *(seam for seam in seams if seam < end)})
    starts = [sum(len(part) for part in content[:number]) for number in range(len(content))]
    logs = {
        Side.ACTIVE: [batch(first, part) for first, part in zip(starts, content, strict=True)],
        Side.STANDBY: [
            batch(first, records[first:after], attributes=codec) for first, after in pairwise(borders)
        ],
    }
    comparison = Comparison(0, end)
    while not comparison.is_over:
        side = data.draw(st.sampled_from([one for one in Side if not comparison.has_all(one)] or [*Side]))
        count = data.draw(st.integers(1, 3))
        left = [one for one in logs[side] if one.header.next_offset > comparison.next_offset(side)]
        comparison.offer(side, chunk(left[:count]), ())
        comparison.advance()
    assert comparison.found == []
    assert (comparison.records, comparison.offsets, comparison.equal_to) == (end, end, end)


@given(content=record_lists, at=st.integers(0, 5), codec=codecs)
def test_one_changed_record_is_found_where_it_stands(content: list[Record], at: int, codec: Codec) -> None:
    at %= len(content)
    changed = list(content)
    old = changed[at]
    changed[at] = Record((old.value or b"") + b"!", old.timestamp_ms, old.key, old.headers)
    comparison = compared(
        [batch(0, content, attributes=codec)], [batch(0, changed, attributes=codec)], len(content)
    )
    (found,) = comparison.found
    assert (found.offset, found.what) == (at, "key, value or headers differ")
    assert found.active != found.standby
    assert comparison.equal_to == at


def test_times_that_differ_alone_are_found() -> None:
    active, standby = ([batch(0, [record("k", "v", time_ms)])] for time_ms in (1, 2))
    (found,) = compared(active, standby, 1).found
    assert found.what == "times differ: 1 and 2"


def test_log_append_time_at_the_active_equals_the_same_times_of_creation() -> None:
    sent = [record("k", "v", 5), record("k", "w", 7)]
    shown = [record("k", "v", 9), record("k", "w", 9)]
    stamped = batch(0, sent, attributes=LOG_APPEND_TIME_BIT, max_timestamp_ms=9)
    assert compared([stamped], [batch(0, shown)], 2).found == []


def test_thinned_batch_equals_its_runs_with_gaps_between() -> None:
    one, two = record("a", "1"), record("b", "2")
    runs = [batch(0, [one]), batch(5, [two])]
    comparison = compared([thinned(0, 10, [(0, one), (5, two)])], runs, 6)
    assert comparison.found == []
    assert comparison.records == 2


def test_record_in_a_gap_of_the_active_is_found() -> None:
    active = [batch(0, [record("a", "1")]), batch(2, [record("b", "2")])]
    standby = [active[0], batch(1, [record("x", "filler")]), active[1]]
    (found,) = compared(active, standby, 3).found
    assert (found.offset, found.what) == (1, "the standby has a record that the active has not")
    assert found.active == "no record"


def test_shifted_log_ends_after_the_first_differences() -> None:
    records = [record(str(number), "v") for number in range(100)]
    comparison = compared([batch(0, records)], [batch(1, records)], 100)
    assert len(comparison.found) == MOST_DIFFERENCES
    assert comparison.is_over
    assert comparison.equal_to == 0


def test_comparison_begins_inside_a_batch_where_a_log_begins() -> None:
    whole = [record("a", "old"), record("b", "1")]
    other = [record("a", "gone"), record("b", "1")]
    comparison = Comparison(1, 2)
    comparison.offer(Side.ACTIVE, chunk([batch(0, whole)]), ())
    comparison.offer(Side.STANDBY, chunk([batch(0, other)]), ())
    assert comparison.advance() == 1
    assert comparison.found == []


def test_what_waits_for_the_other_side_is_counted() -> None:
    one = batch(0, [record("a", "1")])
    comparison = Comparison(0, 1)
    comparison.offer(Side.ACTIVE, chunk([one]), ())
    assert comparison.waiting_bytes(Side.ACTIVE) == len(one.view)
    assert comparison.advance() == 0
    comparison.offer(Side.STANDBY, chunk([one]), ())
    comparison.advance()
    assert [comparison.waiting_bytes(side) for side in Side] == [0, 0]
    assert comparison.bytes == len(one.view)


def test_beginning_again_drops_what_waits_and_never_goes_back() -> None:
    comparison = Comparison(0, 4)
    comparison.offer(Side.ACTIVE, chunk([batch(0, [record("a", "1")])]), ())
    comparison.begin_at(3)
    assert [comparison.next_offset(side) for side in Side] == [3, 3]
    comparison.begin_at(1)
    assert comparison.position == 3


# Compacted topics

updates = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.just("v")), min_size=1, max_size=12)


def cleaned(log: Sequence[tuple[str, str | None]], dirty_from: int, tombstones_go: bool) -> list[int]:
    """The offsets that a cleaner leaves when it has seen the log up to an offset."""
    newest = {key: offset for offset, (key, _) in enumerate(log[:dirty_from])}
    return [
        offset
        for offset, (key, value) in enumerate(log)
        if offset >= dirty_from or (newest[key] == offset and not (tombstones_go and value is None))
    ]


@given(log=updates, points=st.tuples(st.integers(0, 12), st.integers(0, 12)), gone=st.booleans())
def test_logs_cleaned_at_different_times_are_equal(
    log: list[tuple[str, str | None]], points: tuple[int, int], gone: bool
) -> None:
    time_ms = NOW_MS - TOMBSTONE_MS if gone else TIME_MS
    logs = [
        [batch(offset, [record(*log[offset], time_ms)]) for offset in cleaned(log, point, gone)]
        for point in points
    ]
    # One more record, so that both logs are read to it even where all was cleaned.
    end = len(log) + 1
    closing = batch(len(log), [record("z", "end")])
    comparison = compared([*logs[0], closing], [*logs[1], closing], end, cleaner())
    assert comparison.found == []
    assert comparison.equal_to == end


@given(log=updates, point=st.integers(0, 12), side=st.sampled_from(Side))
def test_newest_record_of_a_key_must_not_be_missing(
    log: list[tuple[str, str | None]], point: int, side: Side
) -> None:
    lost = len(log) - 1
    kept = {
        one: [batch(offset, [record(*log[offset])]) for offset in cleaned(log, point, False)] for one in Side
    }
    kept[side] = [one for one in kept[side] if one.header.base_offset != lost]
    closing = batch(len(log), [record("z", "end")])
    for one in Side:
        kept[one].append(closing)
    comparison = compared(kept[Side.ACTIVE], kept[Side.STANDBY], len(log) + 1, cleaner())
    (found,) = comparison.found
    assert found.what == f"the {side.value} lacks a record and has no newer one of its key"
    assert comparison.equal_to <= lost


def test_young_tombstone_must_not_be_missing() -> None:
    gone = batch(0, [record("a", None)])
    closing = batch(1, [record("z", "end")])
    (found,) = compared([gone, closing], [closing], 2, cleaner()).found
    assert found.offset == 0


def test_expired_tombstone_explains_the_older_records_that_went_with_it() -> None:
    old_ms = NOW_MS - TOMBSTONE_MS
    active = [batch(0, [record("a", "1", old_ms)]), batch(1, [record("a", None, old_ms)])]
    closing = batch(2, [record("z", "end")])
    assert compared([*active, closing], [closing], 3, cleaner()).found == []


def test_newer_record_in_batches_that_are_equal_explains_a_missing_one() -> None:
    newer = batch(1, [record("a", "2")])
    assert compared([batch(0, [record("a", "1")]), newer], [newer], 2, cleaner()).found == []


def test_compacted_record_that_changed_is_found() -> None:
    active, standby = ([batch(0, [record("a", value)])] for value in ("1", "2"))
    (found,) = compared(active, standby, 1, cleaner()).found
    assert found.what == "key, value or headers differ"


def test_comparison_to_be_resumed_goes_back_to_what_was_not_explained() -> None:
    comparison = Comparison(0, 10, cleaner())
    comparison.offer(Side.ACTIVE, chunk([batch(number, [record(str(number), "v")]) for number in (3, 5)]), ())
    comparison.offer(Side.STANDBY, chunk([batch(5, [record("5", "v")])]), ())
    comparison.advance()
    assert (comparison.position, comparison.equal_to) == (6, 3)


# Words


def test_outline_shows_sizes_and_never_contents() -> None:
    sent = Record(b"secret", 1_700_000_000_000, b"key", headers=(("h", b"x"),))
    words = outline(compare.Seen(sent.timestamp_ms, rest_of(sent)))
    assert "secret" not in words
    assert "2023-11-14T22:13:20.000+00:00, key 3 bytes, value 6 bytes, 1 headers, checksum" in words


def test_outline_of_a_time_that_no_calendar_has() -> None:
    words = outline(compare.Seen(2**62, rest_of(record(None, None))))
    assert words.startswith(f"{2**62} ms, key null, value null")


def test_contents_that_are_cut_off_are_unreadable() -> None:
    whole = rest_of(record("key", "value"))
    assert contents(whole)[:2] == (b"key", b"value")
    for read in (contents, key_of):
        with pytest.raises(UnreadableBatch):
            read(whole[:2])


# What is remembered


def test_positions_are_remembered_between_runs(tmp_path: Path) -> None:
    path = tmp_path / "verify.json"
    state = VerifyState(path)
    state.found_equal(("orders", 3), TWINS, 70)
    state.save()
    again = VerifyState(path)
    assert again.equal_to(("orders", 3), TWINS) == 70
    assert again.equal_to(("orders", 2), TWINS) == 0
    assert again.equal_to(("other", 3), TWINS) == 0


def test_topic_made_again_is_compared_from_its_beginning(tmp_path: Path) -> None:
    state = VerifyState(tmp_path / "verify.json")
    state.found_equal(("orders", 0), TWINS, 70)
    made_again = TWINS._replace(active=UUID(int=3))
    assert state.equal_to(("orders", 0), made_again) == 0
    state.found_equal(("orders", 1), made_again, 5)
    assert state.equal_to(("orders", 0), TWINS) == 0


def test_damaged_memory_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "verify.json"
    path.write_text("{")
    with pytest.raises(SiteError) as caught:
        VerifyState(path)
    assert caught.value.where == str(path)
