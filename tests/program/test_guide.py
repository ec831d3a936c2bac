"""The command that CONTRIBUTING.md shows is a real one: it is taken from there and run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import COMMAND_TIMEOUT_S, REPOSITORY

FILE = """\
bus: orders
sites:
  a: {brokers: 1}
topics:
  orders: {partitions: 6}
  scratch: {partitions: 1, mirror: false}
"""
PROGRAM = (
    "from twinlog.cli import app;"
    "app.COMMANDS = {'topics': app.Entry('topics', 'List the topics that the file declares.')};"
    "app.main()"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with the command's module and, one level up, a file."""
    guide = (REPOSITORY / "CONTRIBUTING.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    (tmp_path / "twinlog.yaml").write_text(FILE)
    below = tmp_path / "below"
    below.mkdir()
    (below / "topics.py").write_text(example)
    return below


def run(home: Path, environment: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    """Run the guide's command in a directory."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "topics", *args],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )


def test_example_command_finds_the_file_above_and_prints_a_table(
    home: Path, environment: dict[str, str]
) -> None:
    end = run(home, environment)
    assert end.stdout.splitlines() == [
        "TOPIC    PARTITIONS  MIRRORED",
        "orders            6  yes",
        "scratch           1  no",
    ]


def test_warnings_of_the_file_are_shown_once_on_stderr(home: Path, environment: dict[str, str]) -> None:
    warnings = run(home, environment).stderr.splitlines()
    assert any("twinlog.yaml:3:" in line and ": warning: " in line for line in warnings)
    assert len(set(warnings)) == len(warnings)


def test_warnings_with_json_are_one_object_a_line(home: Path, environment: dict[str, str]) -> None:
    end = run(home, environment, "--mirrored", "-o", "json")
    assert json.loads(end.stdout) == [{"topic": "orders", "partitions": 6, "mirrored": True}]
    assert all(json.loads(line)["warning"]["line"] for line in end.stderr.splitlines())


def test_wrong_file_exits_2_with_places(home: Path, environment: dict[str, str]) -> None:
    wrong = home / "wrong.yaml"
    wrong.write_text("bus: orders\nsites:\n  a: {broker: 1}\n")
    end = run(home, environment, "-f", str(wrong))
    assert end.returncode == 2
    assert f"{wrong}:3:7: error: " in end.stderr


def test_no_file_anywhere_exits_2_and_names_init(home: Path, environment: dict[str, str]) -> None:
    (home.parent / "twinlog.yaml").unlink()
    end = run(home, environment)
    assert end.returncode == 2
    assert "hint: twinlog init" in end.stderr
