"""What is to be done with a chunk: every offset once, in order, and what readers see stays the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mirror.active_log import (
    IDEMPOTENT,
    OLD_MS,
    TRANSACTIONAL,
    YOUNG_MS,
    ActiveLog,
    Producer,
    made_up,
)
from tests.unit.mirror.choices import Choices
from tests.unit.wire import samples
from twinlog.mirror.compare import Seen, seen
from twinlog.mirror.steps import FIRST_LINK_ID, Chain, Copy, Fill, Step, plan
from twinlog.wire.batches import (
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    Batch,
    Codec,
    ControlType,
    Header,
    UnreadableBatch,
    checksum_is_right,
    read,
)
from twinlog.wire.records import Record

WRITER = IDEMPOTENT[0]


def planned(log: ActiveLog, position: int = 0, *, keep_identity: bool = True) -> list[Step]:
    records, aborted = log.read(position, 1000)
    return list(plan(records, aborted, position, keep_identity=keep_identity))


def shown_by(steps: Sequence[Step]) -> dict[int, Seen]:
    """What readers of the standby will see, if every step lands where it should."""
    found: dict[int, Seen] = {}
    for step in steps:
        if isinstance(step, Copy):
            batch = read(step.view)
            assert checksum_is_right(batch)
            assert batch.header.record_count == step.length
            for number, (_, record) in enumerate(seen(batch)):
                found[step.first + number] = record
    return found


def spans(steps: Sequence[Step]) -> list[tuple[str, int, int]]:
    return [(type(step).__name__, step.first, step.length) for step in steps]


@given(data=st.binary(max_size=150), position=st.integers(0, 60), keep_identity=st.booleans())
def test_any_log_every_offset_is_covered_once_in_order(
    data: bytes, position: int, keep_identity: bool
) -> None:
    log = made_up(Choices(data), batches=20, old=True, cleaned=True)
    steps = planned(log, position, keep_identity=keep_identity)
    at = position
    for step in steps:
        assert step.first == at
        assert step.length > 0
        at = step.end
    assert at == max(position, log.end)


@given(data=st.binary(max_size=150), position=st.integers(0, 60), keep_identity=st.booleans())
def test_any_log_readers_of_the_copy_see_the_same(data: bytes, position: int, keep_identity: bool) -> None:
    log = made_up(Choices(data), batches=20, old=True, cleaned=True)
    expected = {o: record for o, record in log.seen.items() if o >= position and log.shows(o)}
    assert shown_by(planned(log, position, keep_identity=keep_identity)) == expected


def test_nothing_fetched_nothing_to_do() -> None:
    assert planned(ActiveLog(), 7) == []


def test_marker_between_batches_is_a_gap_of_one() -> None:
    log = ActiveLog()
    log.write(2, YOUNG_MS)
    log.end_transaction(TRANSACTIONAL[0], ControlType.COMMIT)
    log.write(1, YOUNG_MS)
    assert spans(planned(log)) == [("Copy", 0, 2), ("Fill", 2, 1), ("Copy", 3, 1)]


def test_aborted_batches_and_their_marker_are_one_gap() -> None:
    log, producer = ActiveLog(), Producer(TRANSACTIONAL[0])
    log.write(2, YOUNG_MS, producer)
    log.write(3, YOUNG_MS, producer)
    log.end_transaction(producer.producer_id, ControlType.ABORT)
    assert spans(planned(log)) == [("Fill", 0, 6)]


def test_interleaved_transactions_only_committed_batches_are_copied() -> None:
    log, first, second = ActiveLog(), Producer(TRANSACTIONAL[0]), Producer(TRANSACTIONAL[1])
    log.write(1, YOUNG_MS, first)
    log.write(2, YOUNG_MS, second)
    log.write(1, YOUNG_MS, first)
    log.end_transaction(first.producer_id, ControlType.ABORT)
    log.end_transaction(second.producer_id, ControlType.COMMIT)
    assert spans(planned(log)) == [("Fill", 0, 1), ("Copy", 1, 2), ("Fill", 3, 3)]


def test_missing_batches_a_long_gap_is_one_step() -> None:
    log = ActiveLog()
    log.write(1, YOUNG_MS)
    for _ in range(3000):
        log.write(3, YOUNG_MS)
    log.write(1, YOUNG_MS)
    log.clean(range(1, 9001))
    assert spans(planned(log)) == [("Copy", 0, 1), ("Fill", 1, 9000), ("Copy", 9001, 1)]


def test_thinned_batch_is_copied_run_by_run_under_the_links_name() -> None:
    log = ActiveLog()
    log.write(6, YOUNG_MS, Producer(WRITER))
    log.clean([0, 3])
    steps = planned(log)
    assert spans(steps) == [("Fill", 0, 1), ("Copy", 1, 2), ("Fill", 3, 1), ("Copy", 4, 2)]
    assert [step.chain for step in steps if isinstance(step, Copy)] == [None, None]


def test_thinned_batch_without_its_last_record_is_filled_to_its_end() -> None:
    log = ActiveLog()
    log.write(3, YOUNG_MS)
    log.write(1, YOUNG_MS)
    log.clean([2])
    assert spans(planned(log)) == [("Copy", 0, 2), ("Fill", 2, 1), ("Copy", 3, 1)]


def test_batch_that_begins_before_the_position_only_the_rest_is_copied() -> None:
    log = ActiveLog()
    log.write(4, YOUNG_MS, Producer(WRITER))
    log.write(1, YOUNG_MS)
    [rest, whole] = planned(log, 2)
    assert spans([rest, whole]) == [("Copy", 2, 2), ("Copy", 4, 1)]
    assert isinstance(rest, Copy) and rest.chain is None


def test_batches_below_the_position_are_left_out() -> None:
    log = ActiveLog()
    log.write(2, YOUNG_MS)
    log.write(2, YOUNG_MS)
    records, _ = log.read(0, 2)
    assert spans(list(plan(records, (), 2, keep_identity=True))) == [("Copy", 2, 2)]


def test_first_batch_beyond_the_position_the_way_to_it_is_a_gap() -> None:
    log = ActiveLog()
    log.write(5, YOUNG_MS)
    log.write(1, YOUNG_MS)
    log.clean(range(5))
    assert spans(planned(log, 1)) == [("Fill", 1, 4), ("Copy", 5, 1)]


def test_idempotent_batch_keeps_its_producer_when_identity_is_kept() -> None:
    log, producer = ActiveLog(), Producer(WRITER, epoch=3, sequence=17)
    log.write(2, OLD_MS, producer)
    [kept] = planned(log)
    [stamped] = planned(log, keep_identity=False)
    assert isinstance(kept, Copy) and isinstance(stamped, Copy)
    assert (kept.chain, kept.sequence, kept.timestamp_ms) == (Chain(WRITER, 3), 17, OLD_MS)
    assert stamped.chain is None


def test_transactional_batch_never_keeps_its_producer() -> None:
    log = ActiveLog()
    log.write(1, YOUNG_MS, Producer(TRANSACTIONAL[0]))
    log.end_transaction(TRANSACTIONAL[0], ControlType.COMMIT)
    copy = planned(log)[0]
    assert isinstance(copy, Copy) and copy.chain is None


def test_batch_that_a_link_wrote_earlier_does_not_keep_its_producer() -> None:
    log = ActiveLog()
    log.write(1, YOUNG_MS, Producer(FIRST_LINK_ID + 5))
    [copy] = planned(log)
    assert isinstance(copy, Copy) and copy.chain is None


def lying(attributes: int, base_timestamp_ms: int = YOUNG_MS) -> Batch:
    header = Header(
        base_offset=10,
        attributes=attributes | Codec.ZSTD,
        last_offset_delta=2,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=YOUNG_MS + 99,
        producer_id=WRITER,
        producer_epoch=1,
        base_sequence=8,
    )
    records = [Record(b"v", YOUNG_MS + number, key=b"k") for number in range(3)]
    return samples.lying(samples.placed(records, 10), header)


def test_log_append_time_is_kept_with_the_producer_and_its_sequence() -> None:
    batch = lying(LOG_APPEND_TIME_BIT)
    [copy] = plan(batch.view, (), 10, keep_identity=True)
    assert isinstance(copy, Copy)
    assert (copy.chain, copy.sequence, copy.length) == (Chain(WRITER, 1), 8, 3)
    header = read(copy.view).header
    assert not header.is_log_append_time
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (WRITER, 1, 8)
    assert {record.timestamp_ms for record in shown_by([copy]).values()} == {YOUNG_MS + 99}


def test_delete_horizon_of_the_active_is_not_copied() -> None:
    batch = lying(DELETE_HORIZON_BIT, base_timestamp_ms=YOUNG_MS + 5000)
    before = {offset: record for offset, record in seen(batch)}
    [copy] = plan(batch.view, (), 10, keep_identity=True)
    assert isinstance(copy, Copy)
    assert not read(copy.view).header.has_delete_horizon
    assert shown_by([copy]) == before


@pytest.mark.parametrize("keep_identity", [True, False])
def test_damaged_batch_is_refused(keep_identity: bool) -> None:
    batch = lying(0)
    batch.view[-1] ^= 1
    with pytest.raises(UnreadableBatch, match="at offset 10"):
        list(plan(batch.view, (), 10, keep_identity=keep_identity))


def test_gap_takes_no_memory_of_its_own() -> None:
    assert Fill(0, 10**9).bytes == 0
