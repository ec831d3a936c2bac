"""What a reader notes of its records and commits, and a writer of its transactions: errors, or none."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from twinlog.drills.cast import EVERYBODY, GROUP, TRANSACTIONS, TWIN_READER, Client, Names, Part
from twinlog.drills.history import History, Outcome, Step
from twinlog.drills.readers import Handed
from twinlog.drills.recording import Recorder, load
from twinlog.drills.writers import ABORT_EVERY, Stage, transact
from twinlog.errors import KafkaError, SiteError, TwinlogError
from twinlog.sites.home import Home
from twinlog.spec.load import load as load_file
from twinlog.wire.receiver import Received
from twinlog.wire.transactional import Transactional, TransactionFailed


def stage_of(client: Client, directory: Path) -> Stage:
    file = directory / "twinlog.yaml"
    file.write_text("bus: load\nsites:\n  a: {brokers: 1}\n")
    part = Part(client, Names.of(EVERYBODY), file, directory / "one.jsonl", 10.0)
    return Stage(part, Home(load_file(file, {}).bus, file), Recorder(part.history), threading.Event())


def told(stage: Stage) -> History:
    return load([stage.part.history])


RECORD = Received("orders", 2, 17, None, b"rd-plain:8", (), 0)


def test_reader_that_knows_its_site_says_so(tmp_path: Path) -> None:
    stage = stage_of(TWIN_READER, tmp_path)
    Handed(stage, "b").take(RECORD)
    (read,) = told(stage).reads
    assert (read.site, read.twin, read.offset, read.value) == ("b", True, 17, "rd-plain:8")


def test_reader_behind_the_gate_says_no_site(tmp_path: Path) -> None:
    stage = stage_of(GROUP, tmp_path)
    Handed(stage).take(RECORD)
    (read,) = told(stage).reads
    assert (read.site, read.twin) == (None, False)


@pytest.mark.parametrize(
    ("failed", "error"),
    [
        (KafkaError("no right", code="GROUP_AUTHORIZATION_FAILED"), "no right"),
        (SiteError("no site"), "no site"),
        (KafkaError("late", code="TIMED_OUT", retriable=True), ""),
        (KafkaError("cut", code="TRANSPORT"), ""),
        (KafkaError("shared out", code="REBALANCE_IN_PROGRESS"), ""),
    ],
)
def test_commit_that_is_made_good_by_the_next_is_unknown_and_no_error(
    tmp_path: Path, failed: TwinlogError, error: str
) -> None:
    stage = stage_of(GROUP, tmp_path)
    handed = Handed(stage)
    handed.take(RECORD)
    handed.committed(Outcome.UNKNOWN, failed)
    (commit,) = told(stage).commits
    assert (commit.outcome, commit.error, commit.offset) == (Outcome.UNKNOWN, error, 18)


class Broken:
    """A transactional producer whose transactions end by an error, or do not."""

    def __init__(self, failed: TransactionFailed | None) -> None:
        self._failed = failed

    def begin(self) -> None:
        """It opens."""

    def send(self, *_: object) -> None:
        """Nobody answers."""

    def flush(self, _: float) -> None:
        """Nothing is left."""

    def commit(self, _: float) -> None:
        if self._failed is not None:
            raise self._failed

    abort = commit


@pytest.mark.parametrize(("number", "step"), [(0, Step.COMMIT), (ABORT_EVERY - 1, Step.ABORT)])
@pytest.mark.parametrize(("retriable", "error"), [(True, ""), (False, "fenced")])
def test_transaction_that_may_be_tried_again_ends_unknown_without_an_error(
    tmp_path: Path, number: int, step: Step, retriable: bool, error: str
) -> None:
    stage = stage_of(TRANSACTIONS, tmp_path)
    failed = TransactionFailed(KafkaError("fenced", retriable=retriable), must_reopen=False)
    with pytest.raises(TransactionFailed):
        transact(stage, cast(Transactional, Broken(failed)), number)
    begin, end = told(stage).transactions
    assert (begin.step, begin.outcome) == (Step.BEGIN, Outcome.OK)
    assert (end.step, end.outcome, end.error) == (step, Outcome.UNKNOWN, error)


def test_transaction_that_ends_well_has_no_error(tmp_path: Path) -> None:
    stage = stage_of(TRANSACTIONS, tmp_path)
    transact(stage, cast(Transactional, Broken(None)), 0)
    (_, end) = told(stage).transactions
    assert end == replace(end, step=Step.COMMIT, outcome=Outcome.OK, error="")
