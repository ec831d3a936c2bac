"""Commands that are needed when the file is wrong: they go by what was recorded, and say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Twinlog
from tests.program.prepared_bus import FILE, prepare
from twinlog.errors import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE
from twinlog.sites.home import Home

COMMANDS = {("down",): EXIT_OK, ("destroy", "--yes"): EXIT_OK, ("logs",): EXIT_OK, ("status",): EXIT_FINDINGS}
NAMES = [words[0] for words in COMMANDS]
WRONG = "bus: [orders\n"
TOLD = "going by what was recorded when bus orders was brought up"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return prepare(tmp_path / "work")


@pytest.mark.parametrize(("command", "code"), COMMANDS.items(), ids=NAMES)
def test_wrong_file_does_not_block_what_ends_or_looks(
    twinlog: Twinlog, home: Home, command: tuple[str, ...], code: int
) -> None:
    home.file.write_text(WRONG)
    end = twinlog(*command)
    assert (end.returncode, TOLD in end.stderr) == (code, True), end.stderr
    assert home.directory.exists() == (command[0] != "destroy")


@pytest.mark.parametrize("text", [FILE + "sights: {}\n", "", None], ids=["unknown key", "empty", "gone"])
def test_file_that_is_wrong_in_any_way_is_done_without(
    twinlog: Twinlog, home: Home, text: str | None
) -> None:
    home.file.unlink() if text is None else home.file.write_text(text)
    end = twinlog("down")
    assert (end.returncode, TOLD in end.stderr) == (EXIT_OK, True), end.stderr


@pytest.mark.parametrize("variable", ["KAFKA_MESSAGE_MAX_BYTES", "TWINLOG_SITES_C_BROKERS"])
def test_wrong_variable_is_named_and_the_file_done_without(
    twinlog: Twinlog, home: Home, variable: str
) -> None:
    end = twinlog("down", **{variable: "wrong"})
    assert (end.returncode, TOLD in end.stderr) == (EXIT_OK, True), end.stderr
    assert f"${variable}: warning:" in end.stderr


def test_wrong_file_blocks_what_would_follow_it(twinlog: Twinlog, home: Home) -> None:
    home.file.write_text(WRONG)
    end = twinlog("plan")
    assert (end.returncode, TOLD in end.stderr) == (EXIT_USAGE, False)


def test_wrong_file_of_a_bus_that_was_never_brought_up_is_an_error(twinlog: Twinlog, tmp_path: Path) -> None:
    (tmp_path / "work" / "twinlog.yaml").write_text(WRONG)
    assert twinlog("down").returncode == EXIT_USAGE


def test_recorded_status_has_the_sites_and_nodes_that_the_file_had(twinlog: Twinlog, home: Home) -> None:
    right, end = (status(twinlog, home, text) for text in (FILE, WRONG))
    assert end[0] == right[0]
    assert end[1] == ["warning", "warning", "error"]


def status(twinlog: Twinlog, home: Home, text: str) -> tuple[object, list[str]]:
    """What is said of the bus while its file has this text, and what is said beside."""
    home.file.write_text(text)
    end = twinlog("status", "-o", "json")
    found = json.loads(end.stdout)
    for node in found["nodes"]:
        del node["free_bytes"]  # others use the disk too
    return found, [next(iter(json.loads(line))) for line in end.stderr.splitlines()]


def test_forgotten_site_is_destroyed_when_it_is_named(twinlog: Twinlog, home: Home) -> None:
    home.file.write_text(FILE.replace("  b: {brokers: 1}\n", ""))
    assert twinlog("status").returncode == 1
    assert twinlog("destroy", "--site", "b", "--yes").returncode == EXIT_OK
    assert set(home.state().sites) == {"a"}
    assert twinlog("status").returncode == EXIT_FINDINGS
