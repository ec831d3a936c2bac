"""Where a move is written down: at the site that it makes active, and beside the bus's state.

The site has the last word: it outlives the machine that runs Twinlog, and it must be there for the move
to end. The copy beside the state is for those that look when no site answers. Of two that carry out one
move, on two machines perhaps, the one that wrote first finds the other's name when it comes to write
again, and stops: a step may be taken twice, but nobody undoes what another goes on with.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

from twinlog.durable import write_text
from twinlog.errors import SiteError, TwinlogError
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import Move, decode, encode
from twinlog.wire import notes
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.notes import Note

NOTE = Note("__twinlog_move", b"move", "the move")
DIRECTORY = "traffic"
FILE = "move.json"
PATIENCE = Patience(connect_s=2.0, request_s=5.0, total_s=5.0)


class Overtaken(SiteError):
    """Somebody else goes on with the move."""


class Journal:
    """The newest move of one bus."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._file = ground.home.directory / DIRECTORY / FILE
        self._name = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex}"
        self._last: Move | None = None
        self._readers: dict[str, notes.Reader] = {}  # by site; a move is written before each of its steps

    def write(self, move: Move) -> Move:
        """Write a move down in our name, at its target first, unless somebody else has taken it over."""
        cluster = self._ground.cluster(move.target)
        found = decode(self._reader(move.target).read())
        if self._last is not None and found != self._last:
            raise Overtaken(f"somebody else goes on with the {found}", hint="twinlog traffic status")
        self._last = replace(move, by=self._name)
        notes.append(cluster, NOTE, encode(self._last))
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_text(self._file, encode(self._last).decode() + "\n")
        return self._last

    def _reader(self, site: str) -> notes.Reader:
        if site not in self._readers:
            cluster = self._ground.cluster(site)
            notes.ensure_topic(cluster, NOTE)
            self._readers[site] = notes.Reader(cluster, NOTE)
        return self._readers[site]

    def read(self) -> Move | None:
        """The newest move as this machine knows it."""
        try:
            return decode(self._file.read_bytes())
        except FileNotFoundError:
            return None

    def ask(self) -> Move | None:
        """The newest move as the sites that answer, and this machine, know it."""
        found = [self.read()]
        home = self._ground.home
        for site in home.bus.sites:
            try:
                with Cluster(home.admin_access(site), patience=PATIENCE) as cluster:
                    found.append(decode(notes.read(cluster, NOTE)))
            except TwinlogError:
                continue
        return newest(found)


def newest(moves: Iterable[Move | None]) -> Move | None:
    """Of several tellings of moves, the one that was begun last and has come furthest."""
    known = [move for move in moves if move is not None]
    return max(known, key=lambda move: (move.term, move.begun_at, move.progress), default=None)
