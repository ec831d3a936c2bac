"""A task of the mirror: what Spark runs. It asks its driver for partitions and holds them.

The heart-beat thread reports to the driver and hears whether to go on. Without an answer for a
while nothing is written any more: a task that was stopped and continued must not go on from what it
remembers. A farewell says whether all that was sent was answered, and which
partitions were in trouble: whoever copies those next has to look at them first.
While another task still holds its partitions, a task connects, so that little is left to do behind it.
"""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from typing import Any

from twinlog.mirror.holder import Holder, Terms
from twinlog.mirror.track import Counts, Track
from twinlog.pipeline.exchange import Conversation, Lost, Ticket
from twinlog.pipeline.ledger import Task
from twinlog.wire.access import Access, Mechanism, Protocol

BEAT_S = 0.5
ANSWER_TIMEOUT_S = 5.0
LEASE_S = 3.0  # so long after the driver's last answer a task may write
WAIT_TIMEOUT_S = 60.0  # the driver says every second that it has not forgotten us


def terms_as_json(terms: Terms) -> dict[str, Any]:
    """Terms as they travel to a task."""
    return asdict(terms)


def terms_of(message: dict[str, Any]) -> Terms:
    """Terms as a task reads them."""
    return Terms(**{**message, "active": _access(message["active"]), "standby": _access(message["standby"])})


def _access(message: dict[str, Any]) -> Access:
    return Access(
        **{
            **message,
            "bootstrap": tuple(message["bootstrap"]),
            "protocol": Protocol(message["protocol"]),
            "mechanism": Mechanism(message["mechanism"]) if message["mechanism"] else None,
        }
    )


def run_task(ticket: Ticket, task: Task) -> None:
    """Hold what the driver gives us, until it tells us to end."""
    conversation = Conversation.with_driver(ticket)
    prepared: Prepared | None = None
    try:
        conversation.say({"hello": list(task)})
        message = conversation.hear(WAIT_TIMEOUT_S)
        if "prepare" in message:
            prepared = Prepared(conversation, message["prepare"])
            prepared.holder.prepare()
            conversation.say({"ready": True})
            message = conversation.hear(WAIT_TIMEOUT_S)
        while "wait" in message:
            message = conversation.hear(WAIT_TIMEOUT_S)
        if "over" in message:
            return
        if prepared is None or not prepared.fits(message):
            if prepared is not None:
                prepared.holder.close()
            prepared = Prepared(conversation, message)
        prepared.hold(message)
    finally:
        if prepared is not None:
            prepared.holder.close()
        conversation.close()


class Prepared:
    """A holder that may begin when the driver says so, on the terms that it was told."""

    def __init__(self, conversation: Conversation, message: dict[str, Any]) -> None:
        self._conversation = conversation
        self._terms = message["terms"]
        self._tracks = {
            (topic, partition): Track(topic, partition, compacted)
            for topic, partition, compacted, _ in message["tracks"]
        }
        self._beat = HeartBeat(conversation)
        self.holder = Holder(terms_of(self._terms), self._tracks.values(), self._beat.may_write)

    def fits(self, message: dict[str, Any]) -> bool:
        """True if the driver gives what it had announced."""
        given = {(topic, partition): compacted for topic, partition, compacted, _ in message["tracks"]}
        announced = {key: track.compacted for key, track in self._tracks.items()}
        return bool(message["terms"] == self._terms) and given == announced

    def hold(self, message: dict[str, Any]) -> None:
        """Copy from now on, and say farewell in the end."""
        for topic, partition, _, orderly in message["tracks"]:
            track = self._tracks[topic, partition]
            track.orderly, track.raise_epoch = orderly, not orderly
        self._beat.watch(self.holder)
        is_clear = self.holder.run()
        self._beat.end()
        if self._beat.lost:
            raise Lost("the driver does not answer")
        self._conversation.say(
            {
                "farewell": is_clear,
                "doubtful": [key for key, track in self._tracks.items() if not track.is_orderly],
                "deposed": self.holder.deposed,
                "report": self._beat.report(self.holder),
            }
        )
        self._conversation.hear(ANSWER_TIMEOUT_S)


class HeartBeat:
    """Tells the driver how its task is, and hears whether to go on."""

    def __init__(self, conversation: Conversation) -> None:
        self.lost = False
        self._conversation = conversation
        self._answered_at = time.monotonic()
        self._ended = threading.Event()
        self._told: dict[tuple[str, int], tuple[Any, ...]] = {}
        self._thread = threading.Thread(name="heart-beat", daemon=True)

    def may_write(self) -> bool:
        """True while the driver has answered lately."""
        return time.monotonic() - self._answered_at < LEASE_S

    def watch(self, holder: Holder) -> None:
        """Report for a holder from now on; the driver has just told us to begin."""
        self._answered_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, args=(holder,), name="heart-beat", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Report no more."""
        self._ended.set()
        self._thread.join(ANSWER_TIMEOUT_S * 2)

    def report(self, holder: Holder) -> dict[str, Any]:
        """How the partitions are, those alone that have changed, and what was done in all."""
        news = []
        total = Counts()
        for track in list(holder.tracks.values()):
            told = (track.position, track.active_end, track.trouble, track.stopped, len(track.holes))
            if self._told.get(track.key) != told:
                self._told[track.key] = told
                news.append([*track.key, *told, track.counts.bytes, track.age_ms])
            for name, count in vars(track.counts).items():
                setattr(total, name, getattr(total, name) + count)
        return {"partitions": news, "counts": vars(total)}

    def _run(self, holder: Holder) -> None:
        while not self._ended.wait(BEAT_S):
            try:
                self._conversation.say({"report": self.report(holder)})
                answer = self._conversation.hear(ANSWER_TIMEOUT_S)
            except (OSError, ValueError):
                self.lost = True
                holder.end()
                return
            self._answered_at = time.monotonic()
            if answer.get("end"):
                holder.end()
