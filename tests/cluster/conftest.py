"""One bus for all tests with real Kafka: two sites of three brokers, brought up by the program itself.

Tests share it, so each uses topics and groups of its own, or those of the file under names that
nobody else counts on. A test that stops brokers or changes certificates brings up a bus of its own
with `make_bus`; it is gone when the file's tests are done. Spark and the console tools are shared too.
`make test-cluster` runs several buses side by side: much of a test is waiting for a JVM to start.

A broker that is started again is let in when the session of its last run has ended: four seconds
unless `broker.session.timeout.ms` says otherwise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import program_environment
from twinlog.machine import cache_directory
from twinlog.sites.home import Home
from twinlog.sites.state import DIRECTORY
from twinlog.spec.load import load
from twinlog.wire.access import Access

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.cluster.programs import Console, Printer

UP_TIMEOUT_S = 300  # two sites come up in twenty seconds; the rest is downloads and a busy machine

SHARED_FILE = """\
bus: shared
kafka:
  message.max.bytes: 15728640
  replica.fetch.max.bytes: 15728640
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 5
  transaction.state.log.num.partitions: 3
sites:
  a: {brokers: 3}
  b: {brokers: 3}
topics:
  orders: {partitions: 3, mirror: false}
  big: {partitions: 1, mirror: false}
  accounts: {partitions: 2, cleanup: compact}
users:
  shop: {produce: [orders, big, accounts], transactions: [shop-*]}
  stock: {consume: [orders, big], groups: [stock-*]}
  app: {produce: [orders, big], consume: [orders, big], groups: [app-*]}
  old: {auth: scram-sha-256, produce: [orders], consume: [orders], groups: [old-*]}
  ledger: {auth: mtls, produce: [orders, big], consume: [orders, big], groups: [ledger-*]}
  audit: {consume: [accounts], groups: [audit-*]}
"""


@dataclass
class Bus:
    """A bus under test: its directory, and the program to work on it."""

    directory: Path

    @property
    def file(self) -> Path:
        """The bus's file."""
        return self.directory / "twinlog.yaml"

    def command(self, *args: str) -> list[str]:
        """The program with these arguments, to be run in the bus's directory."""
        return [sys.executable, "-m", "twinlog", *args]

    def environment(self, **extra: str) -> dict[str, str]:
        """The program's environment; jars and archive come from the user's own cache."""
        return program_environment(cache_directory(), **extra)

    def run(
        self, *args: str, timeout_s: float = UP_TIMEOUT_S, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `twinlog ARGS` to its end."""
        return subprocess.run(
            self.command(*args),
            cwd=self.directory,
            env=self.environment(**extra),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def done(self, *args: str, exit_code: int = 0, **extra: str) -> str:
        """Run `twinlog ARGS`, insist on its exit code, and return what it printed."""
        ended = self.run(*args, timeout_s=UP_TIMEOUT_S, **extra)
        assert ended.returncode == exit_code, f"twinlog {' '.join(args)}:\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def json(self, *args: str, exit_code: int = 0) -> Any:
        """Run `twinlog ARGS -o json` and return the document."""
        return json.loads(self.done(*args, "-o", "json", exit_code=exit_code))

    def home(self) -> Home:
        """The bus as the program sees it."""
        return Home(load(self.file, {}).bus, self.file, os.environ)


@dataclass
class Site:
    """One site of a bus under test."""

    bus: Bus
    name: str

    @property
    def broker_count(self) -> int:
        """How many brokers it has."""
        return len(self.bus.home().layout(self.name).brokers)

    def access(self, user: str | None = None) -> Access:
        """The access of a user, or of the administrator."""
        home = self.bus.home()
        return home.admin_access(self.name) if user is None else home.user_access(user, self.name)


MakeBus = Callable[..., Bus]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest row of tests on one bus, the shared one, begins first."""
    items.sort(key=lambda item: not uses_shared_bus(item))


def uses_shared_bus(item: pytest.Item) -> bool:
    """True if a test has the `bus` of this file and not one of its own module."""
    return (
        isinstance(item, pytest.Function) and "bus" in item.fixturenames and not hasattr(item.module, "bus")
    )


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The shared bus goes with the last of its tests: its eight nodes would idle beside all that follow."""
    if isinstance(item, pytest.Function) and uses_shared_bus(item) and nextitem is not None:
        shared = item.funcargs.get("bus")
        if isinstance(shared, Bus) and not uses_shared_bus(nextitem):
            shared.done("destroy", "--yes")


@contextmanager
def making(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeBus]:
    """Makes buses from the text of a file; whatever they started is gone at the end."""
    made: list[Bus] = []

    def make(text: str, *, up: bool = True) -> Bus:
        bus = Bus(tmp_path_factory.mktemp("bus"))
        bus.file.write_text(text)
        made.append(bus)
        if up:
            bus.done("up")
        return bus

    try:
        yield make
    finally:
        for bus in made:
            if (bus.directory / DIRECTORY).exists():
                bus.done("destroy", "--yes")


@pytest.fixture(scope="module")
def make_bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeBus]:
    """Makes buses for the tests of one file: nodes that idle take the processor from tests that follow."""
    with making(tmp_path_factory) as make:
        yield make


@pytest.fixture(scope="session")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bus]:
    """The bus that all tests share."""
    with making(tmp_path_factory) as make:
        yield make(SHARED_FILE)


@pytest.fixture(scope="session")
def site(bus: Bus) -> Site:
    """The active site of the shared bus."""
    return Site(bus, "a")


# The client programs; `programs` needs what stands above, so it is imported by those who use it.


@pytest.fixture
def printed(bus: Bus, tmp_path: Path) -> Printer:
    """Prints client files of the shared bus."""
    from tests.cluster.programs import Printer  # noqa: PLC0415

    return Printer(bus, tmp_path)


@pytest.fixture(scope="session")
def console() -> Console:
    """The console tools of the Kafka that Twinlog runs."""
    from tests.cluster import programs  # noqa: PLC0415

    return programs.console()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark for all tests: a process has no more than one, and its start takes long."""
    from tests.cluster.programs import spark_session  # noqa: PLC0415

    with spark_session() as session:
        yield session
