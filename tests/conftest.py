"""What all tests share: the program itself, run as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no finding: examples have no deadline of their own.
# Each run draws other ones; `make drills` draws ten times as many.
for profile, examples in (("twinlog", 50), ("thorough", 500)):
    settings.register_profile(
        profile, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "twinlog"))

# A shell that runs us in the background lets us ignore Ctrl-C, and so would every program that a
# test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).parents[1]
COMMAND_TIMEOUT_S = 60  # a command that needs no Kafka takes a third of a second; the rest is a busy machine

Twinlog = Callable[..., subprocess.CompletedProcess[str]]


def program_environment(cache: Path, **extra: str) -> dict[str, str]:
    """The environment of a user who has set nothing of ours."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TWINLOG_", "KAFKA_", "_TWINLOG")) and name not in ("NO_COLOR", "COLUMNS")
    }
    return kept | {"PYTHONPATH": str(REPOSITORY / "src"), "TWINLOG_CACHE": str(cache)} | extra


@pytest.fixture
def twinlog(tmp_path: Path) -> Twinlog:
    """Runs `twinlog ARGS` in a fresh directory and returns how it ended."""
    home = tmp_path / "work"
    home.mkdir()

    def run(*args: str, cwd: Path = home, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "twinlog", *args],
            cwd=cwd,
            env=program_environment(tmp_path / "cache", **extra),
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )

    return run
