"""What is refused about brokers before anything is stopped or moved, on a bus of which no node runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.errors import SiteError, UsageError
from twinlog.ops import replacement, resizing, rolls
from twinlog.progress import Silent
from twinlog.sites.home import Home
from twinlog.sites.roll_journal import Progressed, RollJournal
from twinlog.spec.model import Bus, Site

EXISTING = Site(bootstrap=("kafka.example:9093",), client="client.properties")


def home_in(directory: Path, brokers: int = 3) -> Home:
    """A bus that was brought up once with three brokers, and declares so many now."""
    file = directory / "twinlog.yaml"
    first = Home(Bus(bus="quiet", sites={"a": Site(brokers=3), "b": EXISTING}), file)
    if not first.state_file.path.exists():
        first.allocate()
    return Home(Bus(bus="quiet", sites={"a": Site(brokers=brokers), "b": EXISTING}), file)


def test_a_roll_of_a_site_with_a_node_that_is_down_restarts_nothing(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="nothing was restarted, because a/controller-901 does not run"):
        rolls.roll(home_in(tmp_path), "a", (), Silent())
    assert RollJournal(home_in(tmp_path), "a").read() is None


def test_a_roll_of_other_nodes_than_an_unfinished_one_is_refused(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    journal = RollJournal(home, "a")
    journal.path.parent.mkdir(parents=True)
    journal.write(Progressed("2026-01-31T12:00:00", (1, 2, 3), (1,)))
    with pytest.raises(UsageError, match="is unfinished; it has 2, 3 left"):
        rolls.roll(home, "a", (1,), Silent())


def test_a_cluster_that_exists_already_is_not_restarted_or_resized(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with pytest.raises(UsageError, match="exists already"):
        rolls.roll(home, "b", (), Silent())
    with pytest.raises(UsageError, match="exists already"):
        resizing.leaving(home, "b")
    with pytest.raises(UsageError, match="exists already"):
        resizing.add(home, "b", Silent(), rate_bytes=None)


def test_brokers_that_left_the_file_are_those_to_be_removed(tmp_path: Path) -> None:
    assert [node.id for node in resizing.leaving(home_in(tmp_path, brokers=1), "a")] == [2, 3]
    with pytest.raises(UsageError, match="the file has all 3 brokers") as refused:
        resizing.leaving(home_in(tmp_path), "a")
    assert "brokers: 2" in refused.value.hint


def test_adding_needs_a_broker_more_in_the_file(tmp_path: Path) -> None:
    assert resizing.new_brokers(home_in(tmp_path, brokers=5), "a") == [4, 5]
    with pytest.raises(UsageError, match="has all 3 brokers of the file") as refused:
        resizing.add(home_in(tmp_path), "a", Silent(), rate_bytes=None)
    assert "brokers: 4" in refused.value.hint


def test_a_node_that_no_site_has_is_not_replaced(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    assert replacement.find_node(home, 901)[2].name == "a/controller-901"
    with pytest.raises(UsageError, match="no site has a node 77"):
        replacement.find_node(home, 77)
