"""Logs of many nodes as one stream in the order of time.

Each node writes its own files with times in UTC (`properties.log_configuration`). Lines without a
time (stack traces, handshake dumps) belong to the entry before them. Entries of different nodes
are merged lazily, so a long history costs no memory.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from twinlog.sites.layout import Node
from twinlog.sites.processes import CONSOLE_LOG

SERVER_LOG = "server.log"
_ENTRY = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z (\w+) +(.*)$")
# What the JVM itself prints about TLS: |level|thread|time|where|what
_HANDSHAKE = re.compile(
    r"^javax\.net\.ssl\|(\w+)\|[^|]*\|[^|]*\|(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC\|(.*)$"
)
LOOK_AGAIN_S = 0.2
WINDOW = 100


@dataclass(order=True)
class Entry:
    """One event in one node's log; `text` may have several lines."""

    time: datetime
    node: str
    level: str = field(compare=False)
    text: str = field(compare=False)


def parse(node: str, lines: Iterable[str]) -> Iterator[Entry]:
    """Entries of one node's lines; lines before the first time are dropped."""
    current: Entry | None = None
    for line in lines:
        started = _start_of_entry(node, line.rstrip("\n"))
        if started is None:
            if current is not None:
                current.text += "\n" + line.rstrip("\n")
            continue
        if current is not None:
            yield current
        current = started
    if current is not None:
        yield current


def _start_of_entry(node: str, line: str) -> Entry | None:
    match = _ENTRY.match(line)
    if match:
        return Entry(_time(match[1]), node, match[2], match[3])
    match = _HANDSHAKE.match(line)
    if match:
        # The hours of a day are 1 to 24 there: the one behind midnight is the 24th of the day that begins.
        return Entry(_time(match[2].replace(" 24:", " 00:")), node, "TLS", match[3])
    return None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def files_of(node: Node) -> list[Path]:
    """A node's log files, oldest first."""
    log = node.directory / "log"
    rolled = sorted(log.glob(f"{SERVER_LOG}.*"), key=lambda path: int(path.suffix[1:]))
    return [path for path in (*rolled, log / SERVER_LOG) if path.exists()]


def _lines(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        with path.open(errors="replace") as file:
            yield from file


def history(
    nodes: Iterable[Node], *, since: datetime | None = None, wanted: re.Pattern[str] | None = None
) -> Iterator[Entry]:
    """All entries of all nodes, merged by time."""
    streams = []
    for node in nodes:
        streams.append(in_order(parse(node.name, _lines(files_of(node)))))
        streams.append(parse(node.name, _lines(_existing(node.directory / "log" / CONSOLE_LOG))))
    return (entry for entry in heapq.merge(*streams) if matches(entry, since, wanted))


def in_order(entries: Iterable[Entry], window: int = WINDOW) -> Iterator[Entry]:
    """Entries sorted by time, as far as none is more than a window out of place.

    Threads of a node write its log in an order that is a few lines from that of their clocks.
    """
    waiting: list[tuple[Entry, int]] = []
    for number, entry in enumerate(entries):
        heapq.heappush(waiting, (entry, number))  # the number keeps equal times in the file's order
        if len(waiting) > window:
            yield heapq.heappop(waiting)[0]
    while waiting:
        yield heapq.heappop(waiting)[0]


def _existing(path: Path) -> list[Path]:
    return [path] if path.exists() else []


def matches(entry: Entry, since: datetime | None, wanted: re.Pattern[str] | None) -> bool:
    """True when an entry is new enough and contains what is looked for."""
    if since is not None and entry.time < since:
        return False
    return wanted is None or wanted.search(entry.text) is not None


def follow(
    nodes: Iterable[Node],
    *,
    wanted: re.Pattern[str] | None,
    wait: Callable[[float], object],
) -> Iterator[Entry]:
    """New entries as they are written, for ever; `wait` pauses between looks and may raise to stop."""
    tails = [
        _Tail(node.name, node.directory / "log" / name)
        for node in nodes
        for name in (SERVER_LOG, CONSOLE_LOG)
    ]
    while True:
        fresh = [entry for tail in tails for entry in tail.read()]
        yield from (entry for entry in sorted(fresh) if matches(entry, None, wanted))
        if not fresh:
            wait(LOOK_AGAIN_S)


class _Tail:
    """Reads what was added to a file since the last look; starts at its end, survives a roll."""

    def __init__(self, node: str, path: Path) -> None:
        self._node = node
        self._path = path
        self._inode, self._position = self._stat()

    def _stat(self) -> tuple[int, int]:
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return 0, 0
        return stat.st_ino, stat.st_size

    def read(self) -> list[Entry]:
        inode, size = self._stat()
        if inode != self._inode or size < self._position:
            self._inode, self._position = inode, 0
        if size == self._position:
            return []
        with self._path.open("rb") as file:
            file.seek(self._position)
            added = file.read(size - self._position)
        whole = added.rfind(b"\n") + 1  # a half-written line waits for the next look
        self._position += whole
        return list(parse(self._node, added[:whole].decode(errors="replace").splitlines()))
