"""The load of a drill: its clients as processes, each with a history of its own.

The runner starts it before anything is broken and stops it when all is healed. How a client gets on is
read from its history, which is all that is known about it. A client that does not end when asked is
killed, and so are all of them when the drill is given up.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from twinlog.drills import java_clients
from twinlog.drills.cast import Client, Names, Part, Program
from twinlog.drills.history import Happening
from twinlog.drills.reach import gate_access
from twinlog.drills.recording import Recorder
from twinlog.durable import make_private_directory, write_secret, write_text
from twinlog.errors import SiteError
from twinlog.sites.home import Home
from twinlog.sites.local import Kafka

STOP_TIMEOUT_S = {True: 90.0, False: 20.0}  # writers wait for what they have sent
KILL_TIMEOUT_S = 10.0
LOOK_AGAIN_S = 0.1
# In the world clients have machines of their own; here those that are always busy give way to the bus that
# they share one with. They stay in the drill's session, because Linux shares processors out by sessions
# first, so together they count as one; in groups of their own, because Ctrl-C is for the runner, which then
# stops its clients. Clients in Java have sessions of their own: idle but for the moments after a move.
GIVES_WAY = ("nice", "-n", "10")
APART = 0
SUCCESSES = (b'"outcome":"ok"', b'"op":"read"')


class Successes:
    """Counts what went well in a history that is being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_to = 0
        self._count = 0

    def count(self) -> int:
        """Acknowledged writes and records read, until now."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_to)
                whole, end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return 0
        self._read_to += len(whole) + len(end)
        self._count += sum(whole.count(word) for word in SUCCESSES)
        return self._count


@dataclass
class Performer:
    """One client at work."""

    client: Client
    process: subprocess.Popen[str]
    successes: Successes
    log: IO[str]
    listener: threading.Thread | None = None


class Load:
    """All clients of a drill."""

    def __init__(
        self,
        home: Home,
        clients: Sequence[Client],
        directory: Path,
        rate: float,
        place: Callable[[Client], Sequence[str]] = lambda client: (),  # what stands before its command
    ) -> None:
        self._home = home
        self._directory = directory
        self._rate = rate
        self._place = place
        self.clients = tuple(clients)
        self.names = Names.of(clients)
        self._performers: list[Performer] = []

    def start(self, kafka: Kafka) -> None:
        """Bring every client on."""
        make_private_directory(self._home.directory / "drill")
        self._directory.mkdir(parents=True, exist_ok=True)
        for client in self.clients:
            begin = self._java if client.program is Program.JAVA else self._python
            self._performers.append(begin(client, kafka))

    def counts(self) -> dict[str, int]:
        """What went well, by client."""
        return {one.client.name: one.successes.count() for one in self._performers}

    def not_going_on(self, since: dict[str, int], clients: Iterable[Client]) -> list[str]:
        """The clients that have not succeeded since some counts were taken."""
        now = self.counts()
        return [client.name for client in clients if now[client.name] <= since.get(client.name, 0)]

    def wait_until_going_on(
        self, timeout_s: float, clients: Iterable[Client] | None = None, more: int = 5
    ) -> list[str]:
        """Wait until every client has succeeded some more times; returns those that have not."""
        chosen = self.clients if clients is None else tuple(clients)
        since = {name: count + more for name, count in self.counts().items()}
        pause, end = threading.Event(), time.monotonic() + timeout_s
        while (waiting := self.not_going_on(since, chosen)) and time.monotonic() < end:
            pause.wait(LOOK_AGAIN_S)
        return waiting

    def stop(self, recorder: Recorder) -> list[str]:
        """Let every client end in order, writers first; returns those that had to be killed."""
        killed = []
        for writes in (True, False):
            ending = [one for one in self._performers if one.client.writes is writes]
            for one in ending:
                name = one.client.figure
                if one.process.poll() is None:
                    recorder.event(Happening.STOPPED, f"{name} stopped", client=name)
                    one.process.send_signal(signal.SIGTERM)
                else:
                    recorder.event(Happening.NOTE, f"{name} had ended by itself")
            end = time.monotonic() + STOP_TIMEOUT_S[writes]
            for one in ending:
                if not _ended(one, end - time.monotonic()):
                    killed.append(one.client.name)
        self.kill()
        return killed

    def kill(self) -> None:
        """End what is left."""
        for one in self._performers:
            if one.process.poll() is None:
                one.process.kill()
        for one in self._performers:
            _ended(one, KILL_TIMEOUT_S)
            if one.listener is not None:
                one.listener.join(KILL_TIMEOUT_S)
            one.log.close()
        self._performers = []

    @property
    def histories(self) -> list[Path]:
        """The files that the clients have written."""
        return [path for client in self.clients if (path := self._history(client)).exists()]

    def _history(self, client: Client) -> Path:
        return self._directory / f"{client.name}.jsonl"

    def _log(self, client: Client) -> IO[str]:
        return (self._directory / f"{client.name}.log").open("a", encoding="utf-8")

    def _python(self, client: Client, _: Kafka) -> Performer:
        part = Part(client, self.names, self._home.file, self._history(client), self._rate)
        file = self._directory / f"{client.name}.json"
        write_text(file, part.encode() + "\n")
        log = self._log(client)
        process = subprocess.Popen(
            [*GIVES_WAY, *self._place(client), sys.executable, "-m", "twinlog.drills.performer", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
            process_group=APART,
        )
        return Performer(client, process, Successes(part.history), log)

    def _java(self, client: Client, kafka: Kafka) -> Performer:
        directory = self._home.directory / "drill"
        file = directory / f"{client.name}.properties"
        write_secret(file, java_clients.client_file(self._home, client, directory))
        bootstrap = ",".join(gate_access(self._home).bootstrap)
        log = self._log(client)
        words = java_clients.command(client, self.names, file, bootstrap, self._rate)
        process = subprocess.Popen(
            [*self._place(client), *kafka.command(), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        performer = Performer(client, process, Successes(self._history(client)), log)
        recorder = Recorder(self._history(client))
        performer.listener = threading.Thread(
            target=self._listen, args=(performer, recorder), name=client.name, daemon=True
        )
        performer.listener.start()
        return performer

    def _listen(self, performer: Performer, recorder: Recorder) -> None:
        """Make a history of what a program in Java prints; what is none of it goes to its log."""
        assert performer.process.stdout is not None
        with recorder:
            for line in performer.process.stdout:
                told = False
                for operation in java_clients.operations(performer.client, self.names, line):
                    recorder.add(operation)
                    told = True
                if not told and not line.startswith("{"):
                    performer.log.write(line)


def _ended(performer: Performer, timeout_s: float) -> bool:
    try:
        performer.process.wait(max(0.0, timeout_s))
    except subprocess.TimeoutExpired:
        return False
    return True


def must_go_on(load: Load, timeout_s: float, directory: Path) -> None:
    """Insist that every client works: a drill without its load shows nothing."""
    if waiting := load.wait_until_going_on(timeout_s):
        raise SiteError(
            f"the load did not begin: {', '.join(waiting)} did nothing for {timeout_s:g} s",
            where=str(directory),
            hint=f"tail {directory}/{waiting[0]}.log",
        )
