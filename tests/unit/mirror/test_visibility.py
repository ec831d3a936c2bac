"""Which batches a reader is shown, batch by batch."""

from __future__ import annotations

from tests.unit.mirror.active_log import IDEMPOTENT, TRANSACTIONAL, YOUNG_MS, ActiveLog, Producer
from twinlog.mirror.visibility import judged
from twinlog.wire.batches import ControlType

FIRST, SECOND = TRANSACTIONAL


def shown(log: ActiveLog, position: int = 0) -> dict[int, bool]:
    records, aborted = log.read(position, 100)
    return {batch.header.base_offset: is_shown for batch, is_shown in judged(records, aborted)}


def test_batches_of_no_transaction_are_shown() -> None:
    log = ActiveLog()
    log.write(2, YOUNG_MS)
    log.write(1, YOUNG_MS, Producer(IDEMPOTENT[0]))
    assert shown(log) == {0: True, 2: True}


def test_markers_are_not_shown() -> None:
    log = ActiveLog()
    log.end_transaction(FIRST, ControlType.COMMIT)
    log.end_transaction(FIRST, ControlType.ABORT)
    assert shown(log) == {0: False, 1: False}


def test_interleaved_transactions_only_the_committed_one_is_shown() -> None:
    log, first, second = ActiveLog(), Producer(FIRST), Producer(SECOND)
    log.write(1, YOUNG_MS, first)
    log.write(1, YOUNG_MS, second)
    log.write(1, YOUNG_MS, first)
    log.end_transaction(FIRST, ControlType.ABORT)
    log.write(1, YOUNG_MS, second)
    log.end_transaction(SECOND, ControlType.COMMIT)
    assert shown(log) == {0: False, 1: True, 2: False, 3: False, 4: True, 5: False}


def test_transaction_after_an_aborted_one_is_shown() -> None:
    log, first = ActiveLog(), Producer(FIRST)
    log.write(1, YOUNG_MS, first)
    log.end_transaction(FIRST, ControlType.ABORT)
    log.write(1, YOUNG_MS, first)
    log.end_transaction(FIRST, ControlType.COMMIT)
    log.write(1, YOUNG_MS, first)
    log.end_transaction(FIRST, ControlType.ABORT)
    assert shown(log) == {0: False, 1: False, 2: True, 3: False, 4: False, 5: False}


def test_chunk_that_begins_inside_an_aborted_transaction_hides_the_rest_of_it() -> None:
    log, first = ActiveLog(), Producer(FIRST)
    for _ in range(3):
        log.write(2, YOUNG_MS, first)
    log.end_transaction(FIRST, ControlType.ABORT)
    assert shown(log, position=3) == {2: False, 4: False, 6: False}


def test_plain_batch_of_a_producer_inside_its_aborted_transaction_is_shown() -> None:
    log, first = ActiveLog(), Producer(FIRST)
    log.write(1, YOUNG_MS, first)
    log.write(1, YOUNG_MS)
    log.end_transaction(FIRST, ControlType.ABORT)
    assert shown(log) == {0: False, 1: True, 2: False}
