"""Every command in README, CONTRIBUTING and docs is run as it stands, in the order of the page.

A trailing `# exit code N` says that the command is meant to end so. Targets of make are looked up
instead of run: CI runs them. A page's commands run in a directory of their own, on a small bus.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.conftest import UP_TIMEOUT_S
from tests.conftest import REPOSITORY, program_environment
from twinlog.machine import cache_directory

pytestmark = pytest.mark.cluster

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXIT_CODE = re.compile(r"\s+# exit code (\d).*$")
# One broker a site is enough to run the commands; the pages speak of three.
SMALL = {"TWINLOG_SITES_A_BROKERS": "1", "TWINLOG_SITES_B_BROKERS": "1"}


def commands_of(page: Path) -> list[tuple[str, int]]:
    """The commands of a page with the exit codes they are meant to have."""
    found = []
    for block in BLOCK.findall(page.read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                meant = EXIT_CODE.search(line)
                found.append((EXIT_CODE.sub("", line[2:]), int(meant[1]) if meant else 0))
    return found


def targets() -> set[str]:
    """The targets of the Makefile."""
    return set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


def is_make(command: str) -> bool:
    return command.startswith("make ")


def program(command: str) -> list[str]:
    """The command as this environment runs it."""
    words = shlex.split(command)
    known = {
        "twinlog": [sys.executable, "-m", "twinlog"],
        ".venv/bin/twinlog": [sys.executable, "-m", "twinlog"],
        ".venv/bin/python": [sys.executable],
    }
    assert words[0] in known, f"the test does not know how to run {words[0]}"
    return [*known[words[0]], *words[1:]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_of_the_pages_exist(page: Path) -> None:
    for command, _ in commands_of(page):
        if is_make(command):
            assert command.split()[1] in targets(), f"{page.name}: {command}"


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(not is_make(each) for each, _ in commands_of(page))],
    ids=lambda page: page.name,
)
def test_commands_of_the_page_run_as_they_stand(page: Path, tmp_path: Path) -> None:
    environment = program_environment(cache_directory())
    try:
        for command, meant in commands_of(page):
            if is_make(command):
                continue
            # Commands of contributors run where the tree is.
            where = tmp_path if command.startswith("twinlog") else REPOSITORY
            # Before there is a file there is nothing that these could change.
            extra = SMALL if (where / "twinlog.yaml").exists() else {}
            ended = subprocess.run(
                program(command),
                cwd=where,
                env=environment | extra,
                capture_output=True,
                text=True,
                timeout=UP_TIMEOUT_S,
                check=False,
            )
            assert ended.returncode == meant, f"{command}\n{ended.stdout}\n{ended.stderr}"
    finally:
        if (tmp_path / ".twinlog").exists():
            subprocess.run(
                program("twinlog destroy --yes"), cwd=tmp_path, env=environment | SMALL, check=True
            )


def test_the_pages_have_commands_at_all() -> None:
    assert sum(len(commands_of(page)) for page in PAGES) > 20
