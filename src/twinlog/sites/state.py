"""What a bus remembers between commands: identities, ports, producer-id ranges, roles.

One JSON file in the bus's directory, written atomically before the step that depends on it, so
that a command killed at any moment finds on its next run what it had decided. Nothing in it is
secret, and nothing in it says what runs: processes are looked for, not remembered.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from twinlog.durable import write_text
from twinlog.errors import SiteError, UsageError

VERSION = 1
DIRECTORY = ".twinlog"


@dataclass
class NodeState:
    """What one node keeps for life."""

    ports: dict[str, int]  # by listener: client, client_tls, link; or controller
    directory_ids: list[str]  # Kafka's id of each data directory, the first holds the metadata
    data: list[str]  # absolute data directories
    formatted: bool = False


@dataclass
class SiteState:
    """What one site keeps for life."""

    index: int  # decides the node ids, so that those of two sites never meet
    cluster_id: str
    producer_range: int  # producer ids start at this × 2^40; a fresh one for every format
    nodes: dict[int, NodeState] = field(default_factory=dict)
    agent_port: int = 0  # where its agent is asked, unless the file says


@dataclass
class BusState:
    """The whole file."""

    bus: str
    active: str
    term: int = 1
    next_producer_range: int = 1  # 0 is where clusters of other makers start
    sites: dict[str, SiteState] = field(default_factory=dict)
    destroying: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)  # sites that a failover left behind: not to be just started
    applied: dict[str, dict[str, str]] = field(default_factory=dict)  # site → user → password digest


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
            return None
        except ValueError as error:
            raise SiteError(
                f"the bus's state cannot be read: {error}",
                where=str(self.path),
                hint="was it edited by hand? It is plain JSON",
            ) from error
        if raw.get("version") != VERSION:
            raise SiteError(
                f"the bus's state has version {raw.get('version')}; this Twinlog reads version {VERSION}",
                where=str(self.path),
                hint="twinlog version",
            )
        return _from_json(raw)

    def write(self, state: BusState) -> None:
        """Replace the file as one step."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_text(self.path, json.dumps({"version": VERSION, **asdict(state)}, indent=1) + "\n")

    @contextmanager
    def locked(self, doing: str) -> Iterator[None]:
        """Hold the bus for one changing command; a second one is told who holds it."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.directory / "lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "another command"
                raise UsageError(
                    f"{holder} is changing this bus", where=str(self.directory), hint="twinlog status"
                ) from None
            file.seek(0)
            file.truncate()
            file.write(f"twinlog {doing} (pid {os.getpid()})")
            file.flush()
            yield


def _from_json(raw: dict[str, Any]) -> BusState:
    sites = {}
    for name, site in raw["sites"].items():
        nodes = {int(number): NodeState(**node) for number, node in site["nodes"].items()}
        sites[name] = SiteState(**{**site, "nodes": nodes})
    rest = {key: value for key, value in raw.items() if key not in ("version", "sites")}
    return BusState(sites=sites, **rest)
