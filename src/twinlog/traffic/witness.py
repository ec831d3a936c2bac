"""A voter at work: its memory on disk, its lock, its polling station. The witness is this and nothing else.

`run_witness` is the whole of `twinlog witness`; an agent opens a `Voting` for its own site's voter. What
must stay true: an answer leaves only when what it promises is on disk; one process alone speaks for a
voter. A voter whose file is missing is a new witness or one that lost its memory; both first ask the two
others what they know (`votes`). The voters beside the sites are enrolled when the bus is brought up.
"""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TextIO

from twinlog.durable import make_private_directory, write_secret
from twinlog.errors import SiteError, UsageError
from twinlog.traffic.clock import clock_s
from twinlog.traffic.poll import Papers, PollingStation, collect
from twinlog.traffic.timing import Timing
from twinlog.traffic.votes import WITNESS, Answer, Memory, Request, Voter, Wish
from twinlog.wire.addresses import HostPort

ASK_OTHERS_S = 1.0


def enrol(path: Path, memory: Memory) -> None:
    """Give a new voter its first memory; one that has a memory keeps it."""
    make_private_directory(path.parent)
    if read_memory(path) is None:
        write_memory(path, memory)


def read_memory(path: Path) -> Memory | None:
    """What a voter remembers; None if there is nothing."""
    try:
        return Memory.from_json(json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise SiteError(
            f"the memory of a voter cannot be read: {error!r}",
            where=str(path),
            hint="was it edited by hand? Without it the voter asks both others what they know",
        ) from error


def write_memory(path: Path, memory: Memory) -> None:
    """Replace what a voter remembers, as one step."""
    write_secret(path, json.dumps(memory.to_json()) + "\n")


class Keeper:
    """A voter and its file: answers one question at a time, and writes before it speaks."""

    def __init__(self, name: str, timing: Timing, path: Path, clock: Callable[[], float] = clock_s) -> None:
        self._path = path
        self._clock = clock
        self._alone = threading.Lock()
        make_private_directory(path.parent)
        self._lock_file = _locked(path)
        try:
            self._voter = Voter.started(name, timing, read_memory(path), clock())
        except BaseException:
            self._lock_file.close()
            raise

    def close(self) -> None:
        """Speak for this voter no longer."""
        with self._alone:
            self._lock_file.close()

    def answer(self, request: Request) -> Answer:
        """Answer a question."""
        with self._alone:
            before = self._voter
            after, answer = before.consider(request, self._clock())
            try:
                self._become(after)
            except OSError as error:
                _, known = before.consider(Request(Wish.TELL), self._clock())
                return Answer(
                    before.name,
                    False,
                    f"{before.name} cannot write its memory: {error.strerror}",
                    known.term,
                    known.holder,
                    wait_s=known.wait_s,
                    blank=known.blank,
                )
            return answer

    @property
    def wants_to_learn(self) -> bool:
        """True when a voter without memory should ask the others now."""
        return self._voter.wants_to_learn(self._clock())

    @property
    def is_blank(self) -> bool:
        """True while the voter has no memory."""
        return self._voter.memory is None

    def learn(self, told: Mapping[str, Answer]) -> None:
        """Take over what both others told, asked after `wants_to_learn` was true."""
        with self._alone:
            self._become(self._voter.learned(told, self._clock()))

    def _become(self, after: Voter) -> None:
        if self._lock_file.closed:
            raise OSError(None, "it was closed")
        if after.memory is not None and after.memory != self._voter.memory:
            write_memory(self._path, after.memory)
        self._voter = after


@dataclass(frozen=True)
class Seat:
    """Which voter it is, where it is asked, and where the others are."""

    name: str
    address: HostPort
    path: Path  # of its memory
    papers: Papers
    others: Mapping[str, HostPort]


class Voting:
    """One voter being asked, from `with` until its end."""

    def __init__(self, seat: Seat, timing: Timing, clock: Callable[[], float] = clock_s) -> None:
        self._seat = seat
        self._timing = timing
        self._clock = clock
        self._stop = threading.Event()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self.keeper = Keeper(self._seat.name, self._timing, self._seat.path, self._clock)
            opened.callback(self.keeper.close)
            station = PollingStation(self._seat.address, self._seat.papers, self.keeper.answer)
            opened.callback(station.close)
            self.address = station.address
            if self.keeper.is_blank:
                learner = threading.Thread(target=self._learn, name="learn", daemon=True)
                learner.start()
                opened.callback(learner.join)
                opened.callback(self._stop.set)
            self._open = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _learn(self) -> None:
        while self.keeper.is_blank and not self._stop.is_set():
            if self.keeper.wants_to_learn:
                with suppress(OSError):  # a full disk, say; it is tried again
                    self.keeper.learn(self._told_by_others())
            if self.keeper.is_blank:
                self._stop.wait(min(ASK_OTHERS_S, self._timing.retry_s))

    def _told_by_others(self) -> dict[str, Answer]:
        seat = self._seat
        return collect(seat.others, Request(Wish.TELL), seat.papers, self._timing.answer_s)


def run_witness(seat: Seat, timing: Timing, stop: threading.Event, log: Callable[[str], None]) -> None:
    """Be the witness until told to stop."""
    assert seat.name == WITNESS, "the others are beside their sites"
    with Voting(seat, timing) as voting:
        log(f"the witness answers at {voting.address}")
        if voting.keeper.is_blank:
            log("it has no memory yet: it votes when both sites' voters have told what they know")
        stop.wait()


def _locked(path: Path) -> TextIO:
    file = path.with_name(f"{path.name}.lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(
            "this voter runs already", where=str(path), hint=f"lsof {path}.lock shows which process it is"
        ) from None
    return file
