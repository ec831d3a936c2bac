"""Up to where both logs were found equal, remembered between runs of `link verify`.

One small JSON file. A position counts only for the two topics that it was found for: a topic that was
deleted and made again has another id, and is compared from its beginning.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

from twinlog.durable import write_text
from twinlog.errors import SiteError
from twinlog.mirror.memory import Twins
from twinlog.mirror.track import TopicPartition

VERSION = 1


class VerifyState:
    """The positions of all partitions; nothing is on disk before `save`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._topics: dict[str, tuple[Twins, dict[int, int]]] = {}
        for name, topic in _read(path).items():
            twins = Twins(UUID(topic["active"]), UUID(topic["standby"]))
            positions = {int(number): offset for number, offset in topic["equal_to"].items()}
            self._topics[name] = (twins, positions)

    def equal_to(self, place: TopicPartition, twins: Twins) -> int:
        """Below this offset a partition was found equal; 0 if nothing is known of these two topics."""
        known, positions = self._topics.get(place[0], (None, {}))
        return positions.get(place[1], 0) if known == twins else 0

    def found_equal(self, place: TopicPartition, twins: Twins, offset: int) -> None:
        """Remember it."""
        topic, partition = place
        if self._topics.get(topic, (None,))[0] != twins:
            self._topics[topic] = (twins, {})
        self._topics[topic][1][partition] = offset

    def save(self) -> None:
        """Write it down."""
        topics = {
            name: {
                "active": str(twins.active),
                "standby": str(twins.standby),
                "equal_to": {str(number): offset for number, offset in sorted(positions.items())},
            }
            for name, (twins, positions) in sorted(self._topics.items())
        }
        write_text(self._path, json.dumps({"version": VERSION, "topics": topics}, indent=1) + "\n")


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise SiteError(
            f"what was compared before cannot be read: {error}",
            where=str(path),
            hint="was it edited by hand? Without it everything is compared again",
        ) from error
    topics: dict[str, Any] = raw["topics"] if raw.get("version") == VERSION else {}
    return topics
