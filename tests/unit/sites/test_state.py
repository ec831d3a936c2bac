"""What a bus remembers, and who may change it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import SiteError, UsageError
from twinlog.sites.state import BusState, NodeState, SiteState, StateFile

names = st.text("abcdefgh", min_size=1, max_size=8)
nodes = st.builds(
    NodeState,
    ports=st.dictionaries(names, st.integers(1, 65535)),
    directory_ids=st.lists(names),
    data=st.lists(names),
    formatted=st.booleans(),
)
sites = st.builds(
    SiteState,
    index=st.integers(0, 9),
    cluster_id=names,
    producer_range=st.integers(0, 100),
    nodes=st.dictionaries(st.integers(1, 9999), nodes, max_size=3),
)
states = st.builds(
    BusState,
    bus=names,
    active=names,
    term=st.integers(1, 99),
    next_producer_range=st.integers(1, 99),
    sites=st.dictionaries(names, sites, max_size=2),
    destroying=st.lists(names),
    applied=st.dictionaries(names, st.dictionaries(names, names)),
)


@given(states)
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, state: BusState) -> None:
    file = StateFile(tmp_path_factory.mktemp("bus"))
    file.write(state)
    assert file.read() == state


def test_a_bus_that_was_never_brought_up_has_no_state(tmp_path: Path) -> None:
    assert StateFile(tmp_path).read() is None


def test_a_broken_file_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{half")
    with pytest.raises(SiteError) as caught:
        StateFile(tmp_path).read()
    assert caught.value.where.endswith("state.json")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"version": 1}',
        '{"version": 1, "bus": "orders", "active": "a", "sites": [], "term": 1}',
        '{"version": 1, "bus": "orders", "active": "a", "sites": {"a": {"index": 0}}}',
        '{"version": 1, "bus": "orders", "active": "a", "sites": {}, "colour": "blue"}',
    ],
)
def test_what_is_no_state_is_an_error_that_names_the_way_back(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(SiteError, match="cannot be read") as caught:
        StateFile(tmp_path).read()
    assert caught.value.where.endswith("state.json")
    assert caught.value.hint == "twinlog recover"


def test_what_a_newer_twinlog_remembers_is_named(tmp_path: Path) -> None:
    StateFile(tmp_path).write(BusState("orders", "a", sites={"a": SiteState(0, "x", 1)}))
    text = (tmp_path / "state.json").read_text().replace('"agent_port"', '"colour": 1, "agent_port"')
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(SiteError, match=r"'sites\.a\.colour'; was it written by a newer one"):
        StateFile(tmp_path).read()


@pytest.mark.parametrize("in_the_way", ["a file", "a dangling link"])
def test_something_else_in_the_directorys_place_is_an_error(tmp_path: Path, in_the_way: str) -> None:
    place = tmp_path / ".twinlog"
    if in_the_way == "a file":
        place.write_text("")
    else:
        place.symlink_to(tmp_path / "gone")
    with pytest.raises(SiteError, match="something else"):
        StateFile(place).read()
    with pytest.raises(SiteError, match="something else"), StateFile(place).locked("up"):
        pass


def test_git_is_told_to_leave_the_directory_alone(tmp_path: Path) -> None:
    with StateFile(tmp_path / ".twinlog").locked("up"):
        pass
    assert (tmp_path / ".twinlog" / ".gitignore").read_text() == "*\n"


def test_a_newer_version_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"version": 99}')
    with pytest.raises(SiteError, match="version 99"):
        StateFile(tmp_path).read()


def test_the_second_to_want_the_bus_is_told_who_has_it(tmp_path: Path) -> None:
    file = StateFile(tmp_path)
    with file.locked("up"), pytest.raises(UsageError, match=r"twinlog up \(pid \d+\)"), file.locked("down"):
        pass
    with file.locked("down"):
        pass
