"""The leader epochs that a site must reach before clients of the other one come to it, also if that is lost.

The traffic manager notes them at the standby while both sites answer (`Noting`), and a failover reads them
there (`leadership`): of a lost site nobody can ask any more how often it has elected. A site that is shut
down in order elects to the very end, and its last word to clients is that nobody leads, under an epoch of
which nobody else has heard; so what is noted is higher, by as many elections as such an end may hold.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
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

NOTED_EVERY_S = 60.0  # also if nothing has changed: whoever reads it wants to know whether it still holds
OLD_S = 3 * NOTED_EVERY_S

Epochs = Mapping[TopicPartition, int]


@dataclass(frozen=True)
class Noted:
    """What is noted: whose epochs, in which term, when, and what they ask of the other site."""

    site: str
    term: int
    at_s: float
    epochs: Epochs = field(default_factory=dict)


def after_end(old: Partition) -> int:
    """The highest epoch that clients can have heard of when all brokers have ended: one election for each."""
    return old.leader_epoch + len(old.replicas)


def after_restart(old: Partition) -> int:
    """The highest when they have been started again."""
    return after_end(old) + AT_START


def reached(found: Iterable[TopicState], by: Callable[[Partition], int]) -> Epochs:
    """One or the other for all partitions of some topics."""
    return {(topic.name, one.index): by(one) for topic in found for one in topic.partitions}


def encode(noted: Noted) -> bytes:
    """As it is written down; epochs of each topic's partitions in turn."""
    told: dict[str, list[int]] = defaultdict(list)
    for (topic, _), epoch in sorted(noted.epochs.items()):
        told[topic].append(epoch)
    return json.dumps({"site": noted.site, "term": noted.term, "at_s": noted.at_s, "epochs": told}).encode()


def decode(text: bytes | None) -> Noted | None:
    """What was written down; None if nothing was, or nothing that we understand."""
    try:
        told: Any = json.loads(text or b"")
        wanted = {
            (str(topic), partition): int(epoch)
            for topic, found in told["epochs"].items()
            for partition, epoch in enumerate(found)
        }
        return Noted(str(told["site"]), int(told["term"]), float(told["at_s"]), wanted)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def problem(noted: Noted | None, site: str, term: int, now_s: float) -> str:
    """Why what was noted may be less than what clients of a lost site have heard; empty if it is not."""
    if noted is None or noted.site != site:
        return f"the leader epochs of site {site} were never noted; did a traffic manager run?"
    age_s = now_s - noted.at_s
    if noted.term != term:
        return f"the leader epochs of site {site} were noted in term {noted.term}, and not since"
    if age_s > OLD_S:
        return f"the leader epochs of site {site} were noted {age_s:.0f} s ago, and not since"
    return ""


def read(cluster: Cluster) -> Noted | None:
    """What a site was told that it needs when the other one is lost."""
    return decode(notes.read(cluster, NOTE))


class Noting:
    """Notes at the standby what the active's epochs ask of it: when that has changed, and now and then."""

    def __init__(self, site: str, term: int, active: Cluster, standby: Cluster) -> None:
        self._site = site
        self._term = term
        self._active = active
        self._standby = standby
        self._noted: Epochs | None = None
        self._at_s = 0.0

    def look(self) -> None:
        """Look at the active, of all topics that clients may know, and note what is new."""
        found = [one for one in topics.describe(self._active) if not one.name.startswith(OWN_PREFIX)]
        wanted = reached(found, lambda one: after_end(one) + UNSEEN)
        now_s = time.monotonic()
        if wanted != self._noted or now_s - self._at_s > NOTED_EVERY_S:
            notes.write(self._standby, NOTE, encode(Noted(self._site, self._term, time.time(), wanted)))
            self._noted, self._at_s = wanted, now_s
