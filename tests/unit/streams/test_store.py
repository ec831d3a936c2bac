"""A table has the latest value of each key, however often Spark runs a batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.errors import SiteError
from twinlog.streams.rewinding import KEPT
from twinlog.streams.store import Change, Store

KEYS = st.sampled_from(["1", "2", "3"])
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 9)), max_size=12)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "table.sqlite")
    made.create()
    return made


def change(key: str, value: int | None, offset: int) -> Change:
    return Change(key, None if value is None else json.dumps({"kw": value}), 0, offset)


def test_value_of_a_key_is_its_latest(store: Store) -> None:
    store.apply("r", 0, [change("7", 1, 0), change("8", 2, 1)])
    store.apply("r", 1, [change("7", 3, 2)])
    found = store.get("7")
    assert found is not None and (found.value, found.offset) == ({"kw": 3}, 2)
    assert [entry.key for entry in store.scan()] == ["7", "8"]
    assert [entry.key for entry in store.scan(1)] == ["7"]


def test_null_deletes_a_key(store: Store) -> None:
    store.apply("r", 0, [change("7", 1, 0)])
    store.apply("r", 1, [change("7", None, 1)])
    assert store.get("7") is None
    assert store.scan() == []


def test_batch_that_is_run_again_changes_nothing(store: Store) -> None:
    assert store.apply("r", 0, [change("7", 1, 0)])
    assert store.apply("r", 1, [change("7", 2, 1)])
    assert not store.apply("r", 1, [change("7", 99, 1)])
    assert not store.apply("r", 0, [change("7", 98, 0)])
    assert store.texts() == [("7", '{"kw": 2}')]
    assert store.version() == ("r", 1)


def test_run_that_begins_anew_begins_with_an_empty_table(store: Store) -> None:
    store.apply("r", 5, [change("7", 1, 9)])
    store.apply("s", 0, [change("8", 1, 0)])
    assert [entry.key for entry in store.scan()] == ["8"]


def test_table_that_was_never_kept_is_told(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="never kept"):
        Store(tmp_path / "none.sqlite").get("7")


@settings(max_examples=20, deadline=None)
@given(batches=st.lists(CHANGES, max_size=5), again=st.integers(0, 4))
def test_any_batches_with_repeats_give_what_a_dict_gives(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[str, int | None]]], again: int
) -> None:
    store = Store(tmp_path_factory.mktemp("any") / "table.sqlite")
    store.create()
    expected: dict[str, int] = {}
    offset = 0
    for number, batch in enumerate(batches):
        latest: dict[str, Change] = {}
        for key, value in batch:
            latest[key] = change(key, value, offset)
            offset += 1
            expected.pop(key, None)
            if value is not None:
                expected[key] = value
        for _ in range(2 if number == again else 1):
            store.apply("r", number, latest.values())
    assert {entry.key: entry.value["kw"] for entry in store.scan()} == expected


@settings(max_examples=20, deadline=None)
@given(st.lists(CHANGES, min_size=1, max_size=5), st.integers(-1, 5))
def test_table_that_goes_back_is_what_it_was_behind_that_batch(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[str, int | None]]], back: int
) -> None:
    made = Store(tmp_path_factory.mktemp("table") / "table.sqlite")
    made.create()
    back = min(back, len(batches) - 1)
    offset, then = 0, made.scan()
    for number, batch in enumerate(batches):
        latest = {key: change(key, value, offset + at) for at, (key, value) in enumerate(batch)}
        offset += len(batch)
        made.apply("r", number, latest.values())
        if number == back:
            then = made.scan()
    for _ in range(2):  # whoever is killed half-way does it again
        made.go_back("s", back)
        assert made.scan() == then
        assert made.version() == ("s", back)
    assert made.apply("s", back + 1, [change("1", 77, offset + 50)])
    assert made.get("1") is not None


def test_table_remembers_what_was_replaced_as_long_as_spark_keeps_batches(store: Store) -> None:
    for batch in (0, 10, 20, 30, KEPT + 15):
        store.apply("r", batch, [change("7", batch % 9, batch)])
    store.go_back("s", 20)
    found = store.get("7")
    assert found is not None and found.offset == 20
