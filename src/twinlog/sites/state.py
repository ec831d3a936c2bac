"""What a bus remembers between commands: identities, ports, producer-id ranges, roles.

One JSON file in the bus's directory, written atomically before the step that depends on it, so
that a command killed at any moment finds on its next run what it had decided. Nothing in it is
secret, and nothing in it says what runs: processes are looked for, not remembered.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, get_args, get_origin, get_type_hints

from twinlog.durable import make_private_directory, write_text
from twinlog.errors import SiteError, UsageError

if TYPE_CHECKING:
    from pydantic import ValidationError

VERSION = 1
DIRECTORY = ".twinlog"
# So long a command may wait for the bus: the traffic manager takes it for a moment to see what is left to do.
SHORTLY_S = 5.0
LOOK_AGAIN_S = 0.05
_EXACT = {"extra": "forbid"}  # to pydantic: what a newer Twinlog remembers must not be lost unseen


@dataclass
class NodeState:
    """What one node keeps for life."""

    __pydantic_config__ = _EXACT

    ports: dict[str, int]  # by listener: client, client_tls, link; or controller
    directory_ids: list[str]  # Kafka's id of each data directory, the first holds the metadata
    data: list[str]  # absolute data directories
    formatted: bool = False


@dataclass
class SiteState:
    """What one site keeps for life."""

    __pydantic_config__ = _EXACT

    index: int  # decides the node ids, so that those of two sites never meet
    cluster_id: str
    producer_range: int  # producer ids start at this × 2^40; a fresh one for every format
    nodes: dict[int, NodeState] = field(default_factory=dict)
    agent_port: int = 0  # where its agent is asked, unless the file says


@dataclass
class BusState:
    """The whole file."""

    __pydantic_config__ = _EXACT

    bus: str
    active: str
    term: int = 1
    next_producer_range: int = 1  # 0 is where clusters of other makers start
    sites: dict[str, SiteState] = field(default_factory=dict)
    destroying: list[str] = field(default_factory=list)
    directory: str = ""  # where it was brought up; processes and disks are known by it
    lost: list[str] = field(default_factory=list)  # sites that a failover left behind: not to be just started
    applied: dict[str, dict[str, str]] = field(default_factory=dict)  # site → user → password digest


def make_home_directory(directory: Path) -> None:
    """Make the directory of a bus, or its rights what they should be: records and keys lie in it."""
    try:
        make_private_directory(directory)
    except FileExistsError as error:
        raise _no_directory(directory) from error
    ignored = directory / ".gitignore"
    if not ignored.exists():
        with suppress(OSError):  # of a full disk: nothing fails for want of this
            write_text(ignored, "*\n")


class StateFile:
    """Reads and writes a bus's state; `locked` keeps two commands from changing it at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "state.json"

    def read(self) -> BusState | None:
        """The state, or None for a bus that was never brought up."""
        try:
            raw = json.loads(self.path.read_text())
        except FileNotFoundError:
            if self.directory.is_symlink() and not self.directory.exists():
                raise _no_directory(self.directory) from None
            return None
        except NotADirectoryError as error:
            raise _no_directory(self.directory) from error
        except ValueError as error:
            raise self._unreadable(str(error)) from error
        if not isinstance(raw, dict):
            raise self._unreadable("it is no JSON object")
        if raw.get("version") != VERSION:
            raise SiteError(
                f"the bus's state has version {raw.get('version')}; this Twinlog reads version {VERSION}",
                where=str(self.path),
                hint="twinlog version",
            )
        state = {key: value for key, value in raw.items() if key != "version"}
        try:
            known: BusState = _exactly(BusState, state)
        except (TypeError, ValueError, KeyError):
            return self._leniently(state)
        return known

    def _leniently(self, state: dict[str, Any]) -> BusState:
        """As above, for a state that is not just as `write` leaves it; says what is wrong with it."""
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  takes longer than most commands

        try:
            return TypeAdapter(BusState).validate_python(state)
        except ValidationError as error:
            raise self._unreadable(_first_problem(error)) from error

    def _unreadable(self, why: str) -> SiteError:
        return SiteError(
            f"the bus's state cannot be read: {why}", where=str(self.path), hint="twinlog recover"
        )

    def write(self, state: BusState) -> None:
        """Replace the file as one step."""
        make_home_directory(self.directory)
        write_text(self.path, json.dumps({"version": VERSION, **asdict(state)}, indent=1) + "\n")

    @contextmanager
    def locked(self, doing: str, *, wait_s: float = 0.0) -> Iterator[None]:
        """Hold the bus for one changing command; a second one is told who holds it, when it has waited."""
        make_home_directory(self.directory)
        with (self.directory / "lock").open("a+") as file:
            self._take(file, wait_s)
            file.seek(0)
            file.truncate()
            with suppress(OSError):  # of a full disk: `down` and `destroy` must work there too
                file.write(f"twinlog {doing} (pid {os.getpid()})")
                file.flush()
            yield

    def _take(self, file: TextIO, wait_s: float) -> None:
        pause, end_s = threading.Event(), time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= end_s:
                    file.seek(0)
                    holder = file.read().strip() or "another command"
                    raise UsageError(
                        f"{holder} is changing this bus", where=str(self.directory), hint="twinlog status"
                    ) from None
            pause.wait(LOOK_AGAIN_S)


def _exactly(kind: Any, raw: Any) -> Any:
    """JSON as what it is declared to be; raises for anything that is not exactly that."""
    is_object = is_dataclass(kind)
    origin, inside = get_origin(kind) or kind, get_args(kind)
    if type(raw) is not (dict if is_object else origin):
        raise TypeError
    if is_object:
        types = get_type_hints(kind)
        return origin(**{name: _exactly(types[name], value) for name, value in raw.items()})
    if origin is list:
        return [_exactly(inside[0], item) for item in raw]
    if origin is dict:  # JSON has no numbers for keys
        return {inside[0](name): _exactly(inside[1], item) for name, item in raw.items()}
    return raw


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "unexpected_keyword_argument":
        return f"this Twinlog does not know '{place}'; was it written by a newer one?"
    return f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}"


def _no_directory(directory: Path) -> SiteError:
    return SiteError(
        "the bus keeps its state in a directory of this name, and it is something else",
        where=str(directory),
        hint=f"whose is it? ls -ld {shlex.quote(str(directory))}",
    )
