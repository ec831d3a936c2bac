"""The role record: what a site is to its bus, written where every client of the site can read it.

`ops` writes it, clients with acks=twin read it after they saw the standby's end, gates follow it. It
is written at a site before clients may write there and, when the site becomes a standby, after they
may not; a site is called standby only while its mirrored logs are beginnings of the active's. Terms
never go back.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from twinlog.spec.model import Role
from twinlog.wire import notes
from twinlog.wire.cluster import Cluster
from twinlog.wire.notes import Note

TOPIC = "__twinlog_role"
NOTE = Note(TOPIC, b"role", "the role")


@dataclass(frozen=True)
class Standing:
    """What a site is to its bus, and in which term."""

    bus: str
    site: str
    role: Role
    term: int

    def __str__(self) -> str:
        return f"{self.role} of term {self.term}"


def encode(standing: Standing) -> bytes:
    """The record's value."""
    return json.dumps(asdict(standing)).encode()


def decode(value: bytes | None) -> Standing | None:
    """What a record's value says; None if it says nothing that we understand."""
    try:
        told: Any = json.loads(value or b"")
        return Standing(str(told["bus"]), str(told["site"]), Role(told["role"]), int(told["term"]))
    except (ValueError, KeyError, TypeError):
        return None


class Reader:
    """Reads one site's role again and again; a record that was read is not fetched twice."""

    def __init__(self, cluster: Cluster) -> None:
        self._note = notes.Reader(cluster, NOTE)

    def read(self) -> Standing | None:
        """What the site is now; None if nobody has said so yet."""
        return decode(self._note.read())


def read(cluster: Cluster) -> Standing | None:
    """What a site is; None if nobody has said so yet, or the topic is not there."""
    return decode(notes.read(cluster, NOTE))


def write(cluster: Cluster, standing: Standing) -> None:
    """Say what a site is; returns when the record is on all in-sync replicas."""
    notes.write(cluster, NOTE, encode(standing))
