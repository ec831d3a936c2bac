"""The client programs that tests run as a user would: Kafka's console tools, kcat, Spark.

Each gets a client file that `twinlog client` printed and nothing else about the bus. Java programs
come from the jars of a lock; a program that is missing fails the test with what to do about it.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.conftest import Bus
from twinlog import streams
from twinlog.machine import cache_directory
from twinlog.progress import Silent
from twinlog.sites.jars import ensure_jars, parse_lock
from twinlog.sites.java import find_java
from twinlog.sites.local import ensure_kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
SPARK_JARS = Path(streams.__file__).with_name("jars.lock")
SITES = ("a", "b")
RUN_TIMEOUT_S = 120  # a JVM that sends or reads takes three seconds; the rest is a busy machine
INSTALL_TIMEOUT_S = 300
HEAP = "-Xmx512m"  # the console tools hold a record of 15 MB several times

Ended = subprocess.CompletedProcess[bytes]
Enough = Callable[[Sequence[bytes]], bool]


@dataclass(frozen=True)
class Printer:
    """Prints client files and keeps what was printed, as a user does with `>`."""

    bus: Bus
    directory: Path

    def __call__(self, user: str, site: str, form: str, store: str = "pem") -> Path:
        """The printed file."""
        text = self.bus.done("client", user, "--site", site, "--format", form, "--store", store)
        path = self.directory / f"{user}-{site}-{form}-{store}"
        path.write_text(text)
        return path


@dataclass(frozen=True)
class Names:
    """How one version calls its console tools and their options."""

    producer: str
    consumer: str
    producer_address: str
    producer_file: str
    consumer_file: str


SINCE_4_2 = Names(
    "org.apache.kafka.tools.ConsoleProducer",
    "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "--bootstrap-server",
    "--command-config",
    "--command-config",
)
OF_2_3 = Names(
    "kafka.tools.ConsoleProducer",
    "kafka.tools.ConsoleConsumer",
    "--broker-list",
    "--producer.config",
    "--consumer.config",
)


@dataclass(frozen=True)
class Console:
    """Kafka's console producer and consumer of one version."""

    java: tuple[str, ...]  # the command up to the main class
    names: Names

    def produce(self, file: Path, topic: str, lines: Sequence[bytes]) -> Ended:
        """Send a record for each line, to the end."""
        names = self.names
        command = [*self.java, names.producer, names.producer_address, bootstrap(file)]
        return run([*command, "--topic", topic, names.producer_file, str(file)], b"\n".join(lines) + b"\n")

    def consume(self, file: Path, topic: str, group: str, enough: Enough) -> list[bytes]:
        """Read a topic from its beginning in a group, until that is enough."""
        return read_until([*self._consumer(file, topic), "--group", group, "--from-beginning"], enough)

    def read_one(self, file: Path, topic: str, offset: int) -> bytes:
        """The record at an offset of partition 0."""
        place = ["--partition", "0", "--offset", str(offset), "--max-messages", "1"]
        return succeeded(run([*self._consumer(file, topic), *place])).stdout.removesuffix(b"\n")

    def _consumer(self, file: Path, topic: str) -> list[str]:
        names = self.names
        command = [*self.java, names.consumer, "--bootstrap-server", bootstrap(file)]
        return [*command, "--topic", topic, names.consumer_file, str(file)]


def console() -> Console:
    """The console tools of the Kafka that Twinlog runs."""
    return Console((*ensure_kafka(Silent()).command(), HEAP), SINCE_4_2)


def console_2_3_0() -> Console:
    """The console tools of Kafka 2.3.0, on its own jars."""
    java = [str(find_java().binary), HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    class_path = ":".join(map(str, locked(HERE / "jars-2.3.0.lock")))
    return Console((*java, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", class_path), OF_2_3)


@dataclass(frozen=True)
class Kcat:
    """kcat, on the librdkafka of this machine or on another one."""

    binary: str
    library: Path | None = None

    def run(self, file: Path, *args: str, text: bytes = b"") -> bytes:
        """What it prints, run to its end."""
        return succeeded(run(self._command(file, args), text, self._environment)).stdout

    def read_until(self, enough: Enough, file: Path, *args: str) -> list[bytes]:
        """The lines that it prints, until there are enough."""
        return read_until(self._command(file, args), enough, self._environment)

    def _command(self, file: Path, args: Sequence[str]) -> list[str]:
        return [self.binary, "-F", str(file), *args]

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, **({"LD_PRELOAD": str(self.library)} if self.library else {})}


def newer_librdkafka() -> Path:
    """The librdkafka that confluent-kafka brings along."""
    import confluent_kafka  # noqa: PLC0415  only to see where it lies

    (found,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka-*.so*")
    return found


def kcat() -> str:
    """The kcat of this machine; as root on Debian and its kin it is installed where it is missing."""
    found = shutil.which("kcat")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update"], ["install", "--yes", "--no-install-recommends", "kcat"]):
            subprocess.run(
                ["apt-get", "--quiet", "--quiet", *step],
                env=environment,
                capture_output=True,
                timeout=INSTALL_TIMEOUT_S,
                check=False,
            )
        found = shutil.which("kcat")
    if found is None:
        pytest.fail("this test runs kcat and the machine has none; hint: apt-get install kcat")
    return found


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """A Spark on this machine with its Kafka source and sink, on the Java that Kafka runs on."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  only Spark's tests need it

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(find_java().binary.resolve().parent.parent))
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.jars", ",".join(map(str, locked(SPARK_JARS))))
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "1g")
            .config("spark.log.level", "ERROR")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
    try:
        yield session
    finally:
        session.stop()


def locked(lock: Path) -> tuple[Path, ...]:
    """The jars of a lock, fetched and checked."""
    return ensure_jars(cache_directory(), Silent(), parse_lock(lock.read_text()))


def bootstrap(file: Path) -> str:
    """The address in a client file: the console tools want it on their command line as well."""
    key = "bootstrap.servers="
    lines = file.read_text().splitlines()
    return next(line.removeprefix(key) for line in lines if line.startswith(key))


def lines_of(file: Path) -> dict[str, str]:
    """The settings in a file of librdkafka's form."""
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return {key: value for key, _, value in (line.partition("=") for line in lines)}


def spark_options(file: Path) -> dict[str, str]:
    """The options in a printed module."""
    options: dict[str, str] = runpy.run_path(str(file))["OPTIONS"]
    return options


def at_both_sites(check: Callable[[str], None]) -> None:
    """Run a check for each site, side by side."""
    with ThreadPoolExecutor(len(SITES)) as pool:
        for _ in pool.map(check, SITES):
            pass


def run(command: Sequence[str], text: bytes = b"", environment: Mapping[str, str] = os.environ) -> Ended:
    """Run a program to its end."""
    return subprocess.run(
        command, input=text, env=environment, capture_output=True, timeout=RUN_TIMEOUT_S, check=False
    )


def succeeded(ended: Ended) -> Ended:
    """The same, if it ended well; otherwise what it said."""
    said = (ended.stdout[-2000:] + ended.stderr[-4000:]).decode(errors="replace")
    assert ended.returncode == 0, said
    return ended


def read_until(
    command: Sequence[str], enough: Enough, environment: Mapping[str, str] = os.environ
) -> list[bytes]:
    """The lines that a program prints, until there are enough of them; then it is asked to end."""
    lines: list[bytes] = []
    over = threading.Event()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as program:
        said: list[bytes] = []

        def read() -> None:
            assert program.stdout is not None
            for line in program.stdout:
                lines.append(line.rstrip(b"\n"))
                if enough(lines):
                    over.set()
            over.set()

        def listen() -> None:
            assert program.stderr is not None
            said.extend(program.stderr)

        readers = [threading.Thread(target=target, daemon=True) for target in (read, listen)]
        for reader in readers:
            reader.start()
        in_time = over.wait(RUN_TIMEOUT_S)
        program.terminate()
        for reader in readers:
            reader.join(RUN_TIMEOUT_S)
    last = b"\n".join([*lines[-20:], *said[-20:]]).decode(errors="replace")
    assert in_time and enough(lines), f"too little was printed:\n{last}"
    return lines
