"""The bus of a fault run: two sites, one link, and the processes that can be hit.

Brought up by the program in a directory of its own. Nothing that the run started outlives it: whatever
is left of any mirror that was ever seen is ended at the end. After a failure the directory stays, with
the logs of both sites.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tests.faults.lines import Place
from twinlog.errors import TwinlogError
from twinlog.mirror import link
from twinlog.mirror.board import Board, read_board
from twinlog.progress import Silent
from twinlog.sites import local, processes
from twinlog.sites.background import Background
from twinlog.sites.home import Home
from twinlog.sites.state import DIRECTORY
from twinlog.spec.load import load
from twinlog.wire import offsets
from twinlog.wire.cluster import Cluster

ACTIVE, STANDBY = "a", "b"
USER = "app"
CROWD, SPREAD, PROMISED = "crowd", "spread", "promised"
PARTITIONS = {CROWD: 1, SPREAD: 3, PROMISED: 2}
PLACES = [Place(topic, number) for topic, count in PARTITIONS.items() for number in range(count)]
LARGEST_BYTES = 65536  # of a batch in the crowded partition; some writers try more, and are refused
# The crowded partition needs all its copies: while a broker is away, batches are refused in between. Nothing
# is acknowledged by one broker of several alone: all are killed at once here, and Kafka may then elect one
# that lacks what another took in the moments of its start (it calls that election unclean).
FILE = """\
bus: faults
kafka:
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 3
  transaction.state.log.min.isr: {safe}
  broker.session.timeout.ms: 5s
  broker.heartbeat.interval.ms: 500ms
sites:
  a: {{brokers: {brokers}, jvm: [{jvm}]}}
  b: {{brokers: {brokers}, jvm: [{jvm}]}}
topics:
  crowd: {{partitions: 1, min_insync: {brokers}, max_message: 64KiB}}
  spread: {{partitions: 3, min_insync: {safe}}}
  promised: {{partitions: 2, min_insync: {safe}}}
users:
  app: {{produce: ["*"], consume: ["*"], groups: ["*"], transactions: ["*"]}}
link: {{epoch: {epoch_s}s}}
pipeline: {{master: "{master}", settings: {{spark.executor.memory: 512m}}}}
"""
JVM = "-XX:TieredStopAtLevel=1"  # most brokers are killed before a better compiler has paid
EPOCH_S = 20  # so that hand-overs are hit too
RUN_TIMEOUT_S = 600.0
SOON_S = 600.0  # what takes seconds; the rest is a busy machine
LOOK_AGAIN_S = 0.1
KILL_TIMEOUT_S = 20.0
WORKER, EXECUTOR = "pyspark.daemon", "CoarseGrainedExecutorBackend"


def say(text: str) -> None:
    """Progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def wait_for(
    what: str, condition: Callable[[], bool], timeout_s: float = SOON_S, *, every_s: float = 0.1
) -> None:
    """Return when a condition holds; too long is an error."""
    pause, end = threading.Event(), time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not after {timeout_s:g} s")
        pause.wait(every_s)


class World:
    """Everything that a fault can be done to."""

    def __init__(self, brokers: int, master: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="twinlog-faults-"))
        self.kafka = local.ensure_kafka(Silent())
        self.settings = {"brokers": brokers, "master": master}
        self._seen: dict[int, psutil.Process] = {}  # of every mirror there was
        self._file = self.directory / "twinlog.yaml"
        self._file.write_text(
            FILE.format(brokers=brokers, safe=min(2, brokers), jvm=JVM, master=master, epoch_s=EPOCH_S)
        )

    # The bus

    @property
    def home(self) -> Home:
        """The bus as the program sees it."""
        return Home(load(self._file, {}).bus, self._file, os.environ)

    def run(self, *args: str, exit_codes: Sequence[int] = (0,)) -> str:
        """Run the program to its end."""
        ended = subprocess.run(
            [sys.executable, "-m", "twinlog", *args],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        if ended.returncode not in exit_codes:
            raise RuntimeError(f"twinlog {' '.join(args)} failed:\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def cluster(self, site: str) -> Cluster:
        """A site, as its administrator."""
        return Cluster(self.home.admin_access(site))

    def bring_up(self) -> None:
        """Both sites and the link."""
        self.run("up")
        self.run("link", "up")
        self.family()

    def mend(self, site: str) -> None:
        """Start what does not run of a site; returns when it is ready."""
        local.up(self.home, [site], Silent(), kafka={site: self.kafka})

    def take_down(self, *, keep: bool) -> None:
        """End everything, and delete the bus unless it is still needed."""
        with suppress(RuntimeError, TwinlogError, psutil.Error):
            self.family()
        for process in self._seen.values():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if (self.directory / DIRECTORY).exists():
            self.run("down" if keep else "destroy", *(() if keep else ("--yes",)))
        if not keep:
            shutil.rmtree(self.directory)

    # Brokers

    def brokers(self, site: str) -> dict[int, psutil.Process]:
        """The brokers of a site that run, by id."""
        return processes.find(self.home.layout(site).brokers)

    def leader(self, site: str, place: Place) -> int:
        """The broker that leads a partition."""
        with self.cluster(site) as cluster:
            return cluster.leader(*place)

    def kill(self, found: Iterable[psutil.Process], how: signal.Signals = signal.SIGKILL) -> None:
        """End processes; those that take too long over a polite signal get the other one."""
        ending = list(found)
        processes.end(ending, how)
        left = processes.wait(ending, KILL_TIMEOUT_S)
        processes.end(left, signal.SIGKILL)
        if processes.wait(left, KILL_TIMEOUT_S):
            raise TimeoutError(f"processes do not end: {[one.pid for one in left]}")

    # The mirror

    @property
    def background(self) -> Background:
        """The mirror as a process."""
        return link.background(self.home)

    def driver(self) -> psutil.Process:
        """The mirror's driver, which must run."""
        found = self.background.find()
        if found is None:
            raise RuntimeError(f"the mirror has ended by itself; see {self.background.log}")
        return found

    def family(self) -> list[psutil.Process]:
        """The driver and all that come from it."""
        driver = self.driver()
        found = [driver, *driver.children(recursive=True)]
        self._seen.update({one.pid: one for one in found})
        return found

    def workers(self) -> list[psutil.Process]:
        """The Python processes in which tasks run; the daemon that makes them is none."""
        return [one for one in self._of(WORKER) if not _has_children(one)]

    def executors(self) -> list[psutil.Process]:
        """Spark's executors, where they are processes of their own."""
        return self._of(EXECUTOR)

    def _of(self, word: str) -> list[psutil.Process]:
        return [one for one in self.family() if processes.mentions(one, word)]

    def start_mirror(self) -> None:
        """Have a mirror that copies; one that runs stays."""
        self.background.launch()
        wait_for("the mirror copies", self.is_copying, every_s=0.5)
        self.family()

    def start_second_mirror(self) -> None:
        """Start a mirror beside the one that runs, as if nobody knew of that."""
        lock = link.directory(self.home) / f"{link.NAME}.lock"
        lock.unlink()
        self.start_mirror()

    def board(self) -> Board | None:
        """What the mirror says of itself."""
        return read_board(self.background.report)

    def is_copying(self) -> bool:
        """True if the mirror that runs says that its tasks hold partitions."""
        board, driver = self.board(), self.background.find()
        return (
            board is not None
            and driver is not None
            and board.pid == driver.pid
            and board.state == "running"
            and board.holders > 0
        )

    def trouble(self, place: Place) -> str:
        """What the mirror says about a partition, if it does not move."""
        board = self.board()
        return (
            next((one.trouble for one in board.partitions if (one.topic, one.partition) == place), "")
            if board
            else ""
        )

    def ends(self, site: str) -> dict[Place, int]:
        """Where the logs of a site end."""
        with self.cluster(site) as cluster:
            return {Place(*place): end for place, end in offsets.log_ends(cluster, PLACES).items()}

    def is_drained(self) -> bool:
        """True if no transaction is open and the standby has all."""
        try:
            with self.cluster(ACTIVE) as active:
                stable, ends = offsets.last_stable_offsets(active, PLACES), offsets.log_ends(active, PLACES)
            return stable == ends == self.ends(STANDBY)
        except TwinlogError:
            return False


def _has_children(process: psutil.Process) -> bool:
    try:
        return bool(process.children())
    except psutil.Error:
        return False
