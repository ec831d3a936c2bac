"""What all tests share: the program itself, run as a user runs it; and which tests may run side by side."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

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

# Files whose tests share one bus; the other files have buses of their own.
ON_THE_SHARED_BUS = (
    "test_break_in.py",
    "test_clients.py",
    "test_cmd_admin.py",
    "test_cmd_groups.py",
    "test_cmd_records.py",
    "test_cmd_topics.py",
    "test_cmd_unhappy.py",
    "test_forgetting.py",
    "test_perf.py",
    "test_sizes.py",
    "test_wire_admin.py",
)

Twinlog = Callable[..., subprocess.CompletedProcess[str]]


class BySharedBus(LoadScopeScheduling):
    """Gives all tests of one bus to one process."""

    def _split_scope(self, nodeid: str) -> str:
        path = Path(nodeid.partition("::")[0])
        if path.name in ON_THE_SHARED_BUS:
            return "shared"
        return str(path if path.parent.name == "cluster" else path.parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Tests are dealt out by buses where they are to be dealt out by files."""
    return BySharedBus(config, log) if config.getoption("dist") == "loadfile" else None


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
