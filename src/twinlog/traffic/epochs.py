"""The leader epochs that a site must reach before clients of the other one come to it, also if that is lost.

The traffic manager notes them at the standby while both sites answer (`Noting`), and a failover reads them
there (`leadership`): of a lost site nobody can ask any more how often it has elected. A site that is shut
down in order elects to the very end, and its last word to clients is that nobody leads, under an epoch of
which nobody else has heard; so what is noted is higher, by as many elections as such an end may hold.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from twinlog.wire import notes, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.notes import Note
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.topics import Partition, TopicState

NOTE = Note("__twinlog_epochs", b"epochs", "the leader epochs")
AT_START = (
    2  # elections of a partition whose brokers start: when the first is there, and when the preferred is
)
UNSEEN = 1  # election that may have been held since somebody looked
OWN_PREFIX = "__"

Epochs = Mapping[TopicPartition, int]


def after_end(old: Partition) -> int:
    """The highest epoch that clients can have heard of when all brokers have ended: one election for each."""
    return old.leader_epoch + len(old.replicas)


def after_restart(old: Partition) -> int:
    """The highest when they have been started again."""
    return after_end(old) + AT_START


def reached(found: Iterable[TopicState], by: Callable[[Partition], int]) -> Epochs:
    """One or the other for all partitions of some topics."""
    return {(topic.name, one.index): by(one) for topic in found for one in topic.partitions}


def encode(site: str, wanted: Epochs) -> bytes:
    """As it is noted: whose epochs ask for it, and what for each partition of each topic in turn."""
    told: dict[str, list[int]] = defaultdict(list)
    for (topic, _), epoch in sorted(wanted.items()):
        told[topic].append(epoch)
    return json.dumps({"site": site, "epochs": told}).encode()


def decode(text: bytes | None, site: str) -> Epochs:
    """What was noted of a site; empty if nothing was, or nothing that we understand."""
    try:
        told: Any = json.loads(text or b"")
        if told["site"] != site:
            return {}
        return {
            (str(topic), partition): int(epoch)
            for topic, epochs in told["epochs"].items()
            for partition, epoch in enumerate(epochs)
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def read(cluster: Cluster, site: str) -> Epochs:
    """What a site was told that it needs when the other one is lost."""
    return decode(notes.read(cluster, NOTE), site)


class Noting:
    """Notes at the standby what the active's epochs ask of it; only when that has changed."""

    def __init__(self, site: str, active: Cluster, standby: Cluster) -> None:
        self._site = site
        self._active = active
        self._standby = standby
        self._noted: bytes | None = None

    def look(self) -> None:
        """Look at the active, of all topics that clients may know, and note what is new."""
        found = [one for one in topics.describe(self._active) if not one.name.startswith(OWN_PREFIX)]
        wanted = encode(self._site, reached(found, lambda one: after_end(one) + UNSEEN))
        if wanted != self._noted:
            notes.write(self._standby, NOTE, wanted)
            self._noted = wanted
