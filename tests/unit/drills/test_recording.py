"""Files of a history: what is written is read back, from several writers, killed ones too."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.drills.history import (
    Commit,
    Event,
    Final,
    Happening,
    History,
    Operation,
    Outcome,
    Read,
    Salvaged,
    Step,
    Transaction,
    Write,
)
from twinlog.drills.recording import Recorder, decode, encode, load
from twinlog.errors import TwinlogError

WRITE = Write(
    "c", "java", "all", True, "orders", "c:1", Outcome.OK, 1.5, 2.5, site="a", partition=0, offset=7
)
BEGUN = Write("c", "java", "all", True, "orders", "c:1", Outcome.UNKNOWN, 1.25)

texts = st.text(max_size=8)
times = st.floats(min_value=1, max_value=2e9)
numbers = st.integers(0, 2**63)
outcomes = st.sampled_from(Outcome)
operations: st.SearchStrategy[Operation] = st.one_of(
    st.builds(
        Write,
        *(texts, texts, texts, st.booleans(), texts, texts, outcomes),
        start_s=st.none() | times,
        end_s=st.none() | times,
        key=st.none() | texts,
        transaction=st.none() | texts,
        site=st.none() | texts,
        partition=st.none() | numbers,
        offset=st.none() | numbers,
        retried=st.none() | st.booleans(),
    ),
    st.builds(Read, texts, st.none() | texts, texts, numbers, numbers, texts, times),
    st.builds(Commit, texts, texts, texts, numbers, numbers, times, outcomes),
    st.builds(Transaction, texts, texts, st.sampled_from(Step), outcomes, times),
    st.builds(Event, st.sampled_from(Happening), times, texts, st.dictionaries(texts, texts)),
    st.builds(Final, texts, texts, numbers, numbers, texts, numbers),
    st.builds(Salvaged, texts, texts, numbers, numbers, texts),
)


@given(operations)
def test_any_operation_is_one_line_of_ascii_and_comes_back_equal(operation: Operation) -> None:
    line = encode(operation)
    assert line.isascii()
    assert "\n" not in line
    assert decode(line) == operation
    assert type(decode(line)) is type(operation)


def test_files_of_several_writers_are_merged_by_time(tmp_path: Path) -> None:
    with Recorder(tmp_path / "one") as one, Recorder(tmp_path / "two") as two:
        one.add(Event(Happening.NOTE, 1.0, "first"))
        one.add(Event(Happening.NOTE, 3.0, "third"))
        two.add(Event(Happening.NOTE, 2.0, "second"))
    history = load([tmp_path / "one", tmp_path / "two"])
    assert [event.text for event in history.events] == ["first", "second", "third"]
    assert history.span_s == (1.0, 3.0)


def test_line_is_in_the_file_before_add_returns(tmp_path: Path) -> None:
    with Recorder(tmp_path / "file") as recorder:
        recorder.add(WRITE)
        assert load([tmp_path / "file"]).writes == (WRITE,)


def test_threads_that_share_a_recorder_never_mix_their_lines(tmp_path: Path) -> None:
    def note(recorder: Recorder) -> None:
        for _ in range(100):
            recorder.event(Happening.NOTE, "x" * 100)

    with Recorder(tmp_path / "file") as recorder:
        threads = [threading.Thread(target=note, args=(recorder,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(load([tmp_path / "file"]).events) == 400


def test_file_that_is_there_already_is_not_written_to(tmp_path: Path) -> None:
    Recorder(tmp_path / "file").close()
    with pytest.raises(FileExistsError):
        Recorder(tmp_path / "file")


def test_line_of_a_killed_writer_is_dropped_at_the_end_only(tmp_path: Path) -> None:
    path = tmp_path / "file"
    half = encode(WRITE)[:20]
    path.write_text(f"{encode(WRITE)}\n{half}")
    assert load([path]).writes == (WRITE,)
    path.write_text(f"{half}\n{encode(WRITE)}\n")
    with pytest.raises(TwinlogError, match=r"file:1: this is no line") as caught:
        load([path])
    assert caught.value.hint.endswith("?")


@pytest.mark.parametrize("line", ["7", "[]", '{"op":"dance"}', '{"op":"read"}', '{"op":"write","colour":1}'])
def test_line_that_tells_of_nothing_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "file").write_text(line + "\n")
    with pytest.raises(TwinlogError, match="file:1"):
        load([tmp_path / "file"])


def test_write_that_only_began_is_completed_by_its_end_in_any_order() -> None:
    assert History.of([BEGUN, WRITE]).writes == History.of([WRITE, BEGUN]).writes == (WRITE,)
    assert History.of([BEGUN]).writes == (BEGUN,)


def test_write_that_was_sent_again_counts_as_done_if_one_of_them_was() -> None:
    refused = Write("c", "java", "all", True, "orders", "c:1", Outcome.FAILED, 1.0, 1.1)
    (write,) = History.of([refused, WRITE]).writes
    assert (write.outcome, write.sends, write.start_s, write.offset) == (Outcome.OK, 2, 1.0, 7)
