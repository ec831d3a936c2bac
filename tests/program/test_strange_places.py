"""A file that was given another name, a terminal with few characters: nothing is lost by either."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import COMMAND_TIMEOUT_S
from tests.program.prepared_bus import prepare

EXIT_USAGE = 2


@pytest.mark.parametrize(
    "command",
    [
        ("destroy", "--yes"),
        ("down",),
        ("status",),
        ("topic", "list"),
        ("user", "rotate", "shop"),
        ("certs", "renew"),
        ("client", "shop"),
    ],
    ids=" ".join,
)
def test_bus_of_another_name_is_refused_before_anything_is_done(
    tmp_path: Path, environment: dict[str, str], command: tuple[str, ...]
) -> None:
    home = prepare(tmp_path)
    before = {path: path.read_bytes() for path in home.directory.rglob("*") if path.is_file()}
    ended = subprocess.run(
        [sys.executable, "-m", "twinlog", *command],
        cwd=tmp_path,
        env=environment | {"TWINLOG_BUS": "other"},
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == EXIT_USAGE, ended.stderr
    assert "belongs to bus 'orders' and the file declares 'other'" in ended.stderr
    after = {path: path.read_bytes() for path in home.directory.rglob("*") if path.is_file()}
    assert {path: after[path] for path in after if path.suffix != ".memo"} == before


def test_characters_that_a_terminal_does_not_have_are_no_error(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    home = prepare(tmp_path / "łódź")
    ended = subprocess.run(
        [sys.executable, "-m", "twinlog", "destroy", "--yes"],
        cwd=home.file.parent,
        env=environment | {"PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "?ód?/.twinlog".encode("latin-1") in ended.stdout
