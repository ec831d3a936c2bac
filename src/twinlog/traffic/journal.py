"""Where a move is written down: at the site that it makes active, and beside the bus's state.

The site has the last word: it outlives the machine that runs Twinlog, and it must be there for the move
to end. The copy beside the state is for those that look when no site answers. Of two that carry out one
move, on two machines perhaps, the one that wrote first finds the other's name when it comes to write
again, and stops: a step may be taken twice, but nobody undoes what another goes on with.

A switchover is called off at the old site too, because the other one may be lost: whoever goes on with it
looks there before each step. When it comes to the step from which nothing can be called off, it says so
there first, and whoever would call it off then finds that.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import uuid4

from twinlog.durable import write_text
from twinlog.errors import SiteError, TwinlogError
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import Kind, Move, Step, decode, encode
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
        self._has_written = False  # at the target
        self._readers: dict[str, notes.Reader] = {}  # by site; a move is written before each of its steps

    def write(self, move: Move) -> Move:
        """Write a move down in our name, at its target first, unless somebody else has taken it over."""
        if move.called_off:
            return self._write_call_off(move)
        mine = replace(move, by=self._name)
        self._refuse_overtaken(move)
        if move.kind is Kind.SWITCHOVER and (not move.is_open or move.step is Step.LEASE):
            told = self._told_at_source(move)
            if told is not None and told.called_off:
                raise Overtaken(f"somebody else has ended it: {told}", hint="twinlog traffic status")
            if move.step is Step.LEASE:
                self._append(move.source, mine)
                self._keep(mine)
        self._append(move.target, mine)
        self._has_written = True
        self._keep(mine)
        return mine

    def _write_call_off(self, move: Move) -> Move:
        """Write down that a switchover is called off: at the old site, and at the other one if it answers.

        The other one may be what was lost. At the old one nobody can have gone on beyond what can be undone
        without saying so there.
        """
        mine = replace(move, by=self._name)
        if self._ground.answers(move.target):
            self._refuse_overtaken(move)
            self._append(move.target, mine)
            self._has_written = True
            self._keep(mine)
        else:
            self._ground.progress.note(f"site {move.target} does not answer, and is told later: {move}")
        told = self._told_at_source(move)
        if told is not None and told.is_open and not told.called_off:
            raise Overtaken(
                f"it can be called off no more: {told}", hint=f"is site {move.target} lost? twinlog promote"
            )
        self._append(move.source, mine)
        self._keep(mine)
        return mine

    def repeat(self) -> None:
        """Tell sites of a switchover that was called off while they were away."""
        move = self.ask()
        if move is None or not move.called_off or not move.is_done:
            return
        for site in (move.source, move.target):
            found = decode(self._reader(site).read())
            if found is not None and is_same(found, move) and found != move:
                self._append(site, move)

    def _refuse_overtaken(self, move: Move) -> None:
        found = decode(self._reader(move.target).read())
        # By name: of a write whose answer was lost nobody knows what it left there.
        if self._has_written and (found is None or found.by != self._name):
            raise Overtaken(f"somebody else goes on with the {found}", hint="twinlog traffic status")

    def _told_at_source(self, move: Move) -> Move | None:
        """What the old site knows of this very move."""
        found = decode(self._reader(move.source).read())
        return found if found is not None and is_same(found, move) else None

    def _append(self, site: str, move: Move) -> None:
        notes.append(self._ground.cluster(site), NOTE, encode(move))

    def _keep(self, move: Move) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_text(self._file, encode(move).decode() + "\n")

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
                    found.append(said_by(site, notes.read(cluster, NOTE)))
            except TwinlogError:
                continue
        return newest(found)


def newest(moves: Iterable[Move | None]) -> Move | None:
    """Of several tellings of moves, the one that was begun last and has come furthest."""
    known = [move for move in moves if move is not None]
    return max(known, key=lambda move: (move.term, move.begun_at, move.rank), default=None)


def is_same(one: Move, other: Move) -> bool:
    """True for two tellings of one move."""
    return (one.term, one.begun_at, one.kind) == (other.term, other.begun_at, other.kind)


def said_by(site: str, text: bytes | None) -> Move | None:
    """The newest move as a site knows it; what it knows of one under way as its old site is for `Journal`."""
    move = decode(text)
    return None if move is not None and move.is_told_by_source(site) else move


def untold(told: Mapping[str, Move | None]) -> str:
    """A site that takes a switchover for one under way that was called off; empty if none does."""
    last = newest(told.values())
    if last is None or not last.called_off or not last.is_done:
        return ""
    same = {site: one for site, one in told.items() if one is not None and is_same(one, last)}
    return next((site for site, one in same.items() if not one.is_done), "")
