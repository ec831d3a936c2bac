"""What a writer notes of its writes, and how it keeps its pace."""

from __future__ import annotations

import threading
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from twinlog.drills.cast import EVERYBODY, IDEMPOTENT, KEYS, Names, Part
from twinlog.drills.history import Outcome
from twinlog.drills.recording import Recorder, load
from twinlog.drills.writers import (
    FEWEST_PER_TRANSACTION,
    TRANSACTIONS_PER_S,
    Beat,
    Stage,
    records_per_transaction,
)
from twinlog.sites.home import Home
from twinlog.spec.load import load as load_file
from twinlog.wire.driver import Delivered, Failed


def stage_in(directory: Path) -> Stage:
    file = directory / "twinlog.yaml"
    file.write_text("bus: load\nsites:\n  a: {brokers: 1}\n")
    part = Part(IDEMPOTENT, Names.of(EVERYBODY), file, directory / "one.jsonl", 10.0)
    return Stage(part, Home(load_file(file, {}).bus, file), Recorder(part.history), threading.Event())


def test_write_without_an_answer_stays_in_the_history_as_unknown(tmp_path: Path) -> None:
    stage = stage_in(tmp_path)
    stage.begun()
    (write,) = load([stage.part.history]).writes
    assert (write.value, write.outcome, write.has_only_begun) == ("rd-idempotent:0", Outcome.UNKNOWN, True)


def test_answers_end_writes_as_what_they_are(tmp_path: Path) -> None:
    stage = stage_in(tmp_path)
    answers = (Delivered(1, 7), Failed("too large", "", True), Failed("late", "", False))
    for answer in answers:
        stage.told(stage.begun())(answer)
    done, refused, lost = load([stage.part.history]).writes
    assert (done.outcome, done.partition, done.offset) == (Outcome.OK, 1, 7)
    assert (refused.outcome, lost.outcome) == (Outcome.FAILED, Outcome.UNKNOWN)
    assert done.start_s is not None
    assert done.end_s is not None
    assert done.start_s <= done.end_s


def test_keys_repeat_so_that_their_order_can_be_checked(tmp_path: Path) -> None:
    stage = stage_in(tmp_path)
    keys = [stage.begun().key for _ in range(2 * KEYS)]
    assert keys[:KEYS] == keys[KEYS:]
    assert len(set(keys)) == KEYS


def test_beat_is_due_at_once_and_then_after_its_time() -> None:
    beat = Beat(rate=0.1)
    assert beat.left_s() == 0.0
    beat.passed()
    assert 5.0 < beat.left_s() <= 10.0


@given(st.floats(min_value=0.1, max_value=10_000))
def test_transactions_of_any_rate_keep_up_with_it_and_never_get_smaller_than_usual(rate: float) -> None:
    records = records_per_transaction(rate)
    assert records >= FEWEST_PER_TRANSACTION
    assert rate / records <= TRANSACTIONS_PER_S
