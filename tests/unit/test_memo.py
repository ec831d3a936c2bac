"""Memos: recalled for what they were kept for and nothing else, if nobody else can have written them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog import memo

parts = st.lists(st.text() | st.binary(), max_size=4)
answers = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept") / "answer.memo"


@given(depends_on=parts, answer=answers)
def test_what_was_kept_is_recalled(place: Path, depends_on: list[str | bytes], answer: object) -> None:
    memo.keep(place, depends_on, answer)
    assert memo.recall(place, depends_on) == answer


@given(kept=parts, asked=parts)
def test_it_is_recalled_for_nothing_else(
    place: Path, kept: list[str | bytes], asked: list[str | bytes]
) -> None:
    def told(depends_on: list[str | bytes]) -> list[bytes]:
        return [
            part.encode(errors="surrogateescape") if isinstance(part, str) else part for part in depends_on
        ]

    memo.keep(place, kept, "answer")
    assert memo.recall(place, asked) == ("answer" if told(kept) == told(asked) else None)


def test_where_one_part_ends_is_not_in_doubt(tmp_path: Path) -> None:
    memo.keep(tmp_path / "memo", ["ab", "c"], 1)
    assert memo.recall(tmp_path / "memo", ["a", "bc"]) is None
    assert memo.recall(tmp_path / "memo", ["ab", "c"]) == 1


@given(data=st.data())
def test_damaged_one_is_as_none_at_all(place: Path, data: st.DataObject) -> None:
    memo.keep(place, ["x"], {"answer": [1, 2, 3]})
    whole = bytearray(place.read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    place.write_bytes(whole)
    assert memo.recall(place, ["x"]) is None
    place.write_bytes(bytes(whole[:at]))
    assert memo.recall(place, ["x"]) is None


def test_kept_file_is_its_owners_alone(tmp_path: Path) -> None:
    memo.keep(tmp_path / "memo", [], 1)
    assert (tmp_path / "memo").stat().st_mode & 0o777 == 0o600


def test_what_others_can_write_is_not_believed(tmp_path: Path) -> None:
    kept = tmp_path / "memo"
    memo.keep(kept, [], 1)
    kept.chmod(0o620)
    assert memo.recall(kept, []) is None
    kept.chmod(0o600)
    assert memo.recall(kept, []) == 1
    tmp_path.chmod(0o777)
    assert memo.recall(kept, []) is None
    memo.keep(kept, [], 2)
    tmp_path.chmod(0o700)
    assert memo.recall(kept, []) == 1  # into such a directory nothing was written


def test_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    memo.keep(tmp_path / "real", [], 1)
    (tmp_path / "memo").symlink_to("real")
    assert memo.recall(tmp_path / "memo", []) is None


def test_without_its_directory_nothing_is_kept_and_nothing_made(tmp_path: Path) -> None:
    memo.keep(tmp_path / "missing" / "memo", [], 1)
    assert memo.recall(tmp_path / "missing" / "memo", []) is None
    assert not any(tmp_path.iterdir())


def test_changed_code_has_another_mark(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one")
    first = memo.code_in(tmp_path)
    assert first == memo.code_in(tmp_path)
    assert memo.code_in(tmp_path / "a.py") == first
    os.utime(tmp_path / "a.py", ns=(1, 1))
    second = memo.code_in(tmp_path)
    (tmp_path / "b.py").touch()
    assert len({first, second, memo.code_in(tmp_path)}) == 3


def test_pipe_in_its_place_is_as_none_at_all(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "memo")
    assert memo.recall(tmp_path / "memo", ["x"]) is None
