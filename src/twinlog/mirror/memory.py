"""Which topics the link has mirrored, by Kafka's own ids, remembered between runs.

A topic that was deleted and made again has its old name and another id; copying it over the twin of
the old one would mix two logs. Ids are kept by cluster, not by role, because roles change. One small
JSON file in the link's directory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from twinlog.durable import write_text
from twinlog.errors import SiteError

VERSION = 1


class Twins(NamedTuple):
    """The ids of a topic at both sites."""

    active: UUID
    standby: UUID


class TopicMemory:
    """The topics that were mirrored between two clusters, given by their cluster ids."""

    def __init__(self, path: Path, active: str, standby: str) -> None:
        self._path = path
        self._clusters = (active, standby)
        self._ids = {name: dict(ids) for name, ids in _read(path).items()}

    def topics(self) -> dict[str, Twins]:
        """What is remembered of these two clusters."""
        return {
            name: Twins(*(UUID(ids[cluster]) for cluster in self._clusters))
            for name, ids in self._ids.items()
            if all(cluster in ids for cluster in self._clusters)
        }

    def learn(self, mirrored: Mapping[str, Twins]) -> None:
        """Remember topics that are mirrored now; written down at once if something is new."""
        news = {
            name: dict(zip(self._clusters, map(str, twins), strict=True)) for name, twins in mirrored.items()
        }
        changed = {
            name: ids for name, ids in news.items() if not ids.items() <= self._ids.get(name, {}).items()
        }
        if changed:
            for name, ids in changed.items():
                self._ids.setdefault(name, {}).update(ids)
            self._write()

    def forget(self, topic: str) -> None:
        """Let a topic be mirrored as if it had never been."""
        if self._ids.pop(topic, None) is not None:
            self._write()

    def _write(self) -> None:
        write_text(self._path, json.dumps({"version": VERSION, "topics": self._ids}, indent=1) + "\n")


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        raw: Any = json.loads(path.read_text())
        found: dict[str, dict[str, str]] = raw["topics"] if raw["version"] == VERSION else {}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError) as error:
        raise SiteError(
            f"what is remembered of mirrored topics cannot be read: {error}",
            where=str(path),
            hint="was it edited by hand? Without it, a topic that was made again is not noticed",
        ) from error
    return found
