"""Programs that are killed with SIGKILL at ten moments each; in the end each record counts once."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.conftest import Bus
from tests.cluster.library.conftest import USER, WAIT_S, MakeTopic, take
from tests.conftest import REPOSITORY
from twinlog import Consumer, Done, Outgoing, Producer

pytestmark = pytest.mark.cluster

RECORDS = 1000
KILLS = 10
LOOK_AGAIN_S = 0.002
# A member that died is missed after six seconds, the shortest that brokers allow, and not after 45.
SESSION = {"session.timeout.ms": 6000}


@contextmanager
def running(work: Bus, name: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    """An example at work; killed at the end."""
    command = [sys.executable, str(REPOSITORY / "examples" / name), work.file.name, USER, *args]
    with subprocess.Popen(
        command, cwd=work.directory, env=work.environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def kill_while_it_counts(
    work: Bus, count: Callable[[], int], name: str, *args: str, total: int = RECORDS
) -> None:
    """Run an example again and again, and kill it each time when its work has come a little further."""
    dice, pause = random.Random(), threading.Event()
    for number in range(1, KILLS + 1):
        wanted = total * number // (KILLS + 1)
        with running(work, name, *args) as process:
            wait_until(process, lambda wanted=wanted: count() >= wanted, f"{wanted} records")  # type: ignore[misc]
            pause.wait(dice.random() * 0.05)  # anywhere in a turn
    with running(work, name, *args) as process:
        wait_until(process, lambda: count() >= total, "all records")


def wait_until(process: subprocess.Popen[str], condition: Callable[[], bool], what: str) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        if process.poll() is not None:
            assert process.stderr is not None
            raise AssertionError(f"it ended by itself:\n{process.stderr.read()}")
        assert time.monotonic() < end, f"{what}: not after {WAIT_S:g} s"
        pause.wait(LOOK_AGAIN_S)


def write(producer: Producer, topic: str, count: int = RECORDS) -> list[str]:
    values = [f"order {number}" for number in range(count)]
    outcomes = producer.send_many(Outgoing(topic, value.encode(), value[-2:].encode()) for value in values)
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    return values


def test_offsets_in_the_database_of_the_results_count_each_record_once(
    work: Bus, topic: str, producer: Producer, tmp_path: Path
) -> None:
    values = write(producer, topic)
    path = tmp_path / "results.db"

    def query(question: str) -> list[tuple[str]]:
        with sqlite3.connect(path, timeout=WAIT_S) as database:
            try:
                return database.execute(question).fetchall()
            except sqlite3.OperationalError:  # the program has not made its tables yet
                return []

    def count() -> int:
        found = query("SELECT COUNT(*) FROM results")
        return int(found[0][0]) if found else 0

    kill_while_it_counts(work, count, "offsets_in_sqlite.py", topic, "counting", str(path))
    assert Counter(value for (value,) in query("SELECT value FROM results")) == Counter(values)


def test_a_relay_in_transactions_writes_each_result_once(
    work: Bus, topic: str, producer: Producer, make_topic: MakeTopic
) -> None:
    invoices = make_topic("invoices")
    values = write(producer, topic)
    with Consumer.of_bus(work.file, USER, "auditor", [invoices]) as auditor:
        seen: list[bytes | None] = []

        def count() -> int:
            seen.extend(record.value for record in auditor.poll_many(0.0))
            return len(seen)

        kill_while_it_counts(work, count, "relay.py", topic, invoices, "relay")
        assert auditor.poll(2.0) is None
    assert Counter(seen) == Counter(f"invoice of {value}".encode() for value in values)


def test_what_a_member_had_not_committed_when_it_died_goes_to_another(
    work: Bus, topic: str, producer: Producer
) -> None:
    write(producer, topic, 90)
    program = (
        "import sys; from twinlog import Consumer\n"
        f"consumer = Consumer.of_bus(sys.argv[1], {USER!r}, 'heirs', [sys.argv[2]], settings={SESSION!r})\n"
        "for number, record in enumerate(consumer):\n"
        "    print(record.partition, record.offset, flush=True)\n"
        "    if number == 29: consumer.commit()\n"
        "    if number == 59: sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, work.file.name, topic]
    with subprocess.Popen(
        command, cwd=work.directory, env=work.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        handed = [tuple(map(int, process.stdout.readline().split())) for _ in range(60)]
        process.kill()
    with Consumer.of_bus(work.file, USER, "heirs", [topic], settings=SESSION) as heir:
        got = [(record.partition, record.offset) for record in take(heir, 60)]
        assert heir.poll(1.0) is None
    assert set(handed[30:]) < set(got)
    assert not set(handed[:30]) & set(got)
    assert len(set(got)) == 60
