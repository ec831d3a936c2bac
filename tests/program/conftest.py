"""The program with sample commands added, as a subprocess."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import COMMAND_TIMEOUT_S, program_environment

SAMPLE_PROGRAM = [sys.executable, str(Path(__file__).with_name("sample_commands.py"))]

Sample = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a fresh user."""
    return program_environment(tmp_path / "cache")


@pytest.fixture
def sample(tmp_path: Path, environment: dict[str, str]) -> Sample:
    """Runs `twinlog sample ARGS` and returns how it ended."""

    def run(*args: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*SAMPLE_PROGRAM, "sample", *args],
            cwd=tmp_path,
            env=environment | extra,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )

    return run
