"""A worker on a topic: each record is dealt with, tried again later, or put aside as a dead letter.

A program makes one of a consumer of the topic and its retry topic, a producer, and the function that
does the work. What fails is written to the retry or dead-letter topic before it is committed, so a
record is never lost; one whose worker died before the commit is dealt with again. What ended as a
dead letter can be sent back (`redriving.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from twinlog.client.consumer import MOST_AT_ONCE, Consumer
from twinlog.client.outcomes import Done
from twinlog.client.producer import Producer
from twinlog.client.retries import Retries, due_ms
from twinlog.errors import UnknownOutcome
from twinlog.wire.driver import Outgoing
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.received import Received

Clock = Callable[[], int]


def _wall_clock_ms() -> int:
    return int(time.time() * 1000)


class Worker:
    """Deals with records; belongs to the thread of its consumer."""

    def __init__(
        self,
        consumer: Consumer,
        producer: Producer,
        work: Callable[[Received], object],
        retries: Retries,
        *,
        now_ms: Clock = _wall_clock_ms,
    ) -> None:
        self._consumer = consumer
        self._producer = producer
        self._work = work
        self._retries = retries
        self._now_ms = now_ms
        self._waiting: dict[TopicPartition, int] = {}  # partitions whose next record is not due, until when

    def run_once(self, timeout_s: float) -> int:
        """Deal with what is there, commit it, and return how many records that was."""
        self._resume()
        dealt_with = 0
        record = self._consumer.poll(self._wait_s(timeout_s))
        while record is not None:
            dealt_with += self._take(record)
            record = self._consumer.poll(0.0) if dealt_with < MOST_AT_ONCE else None
        self._consumer.commit()
        return dealt_with

    def _take(self, record: Received) -> bool:
        """Deal with a record, if it is due."""
        due = due_ms(record) if record.topic == self._retries.retry_topic else 0
        if due > self._now_ms():
            place = (record.topic, record.partition)
            self._consumer.pause({place: record.offset})
            self._waiting[place] = due
            return False
        try:
            self._work(record)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            again = self._retries.failed(record, reason, self._now_ms())
            replace(self._consumer, self._producer, [record], [again])
        return True

    def _resume(self) -> None:
        now_ms = self._now_ms()
        ready = [place for place, due in self._waiting.items() if due <= now_ms]
        mine = set(self._consumer.assigned(0.0)) if ready else set()
        for place in ready:
            del self._waiting[place]
        self._consumer.resume([place for place in ready if place in mine])

    def _wait_s(self, timeout_s: float) -> float:
        """No longer than until the next record is due."""
        if not self._waiting:
            return timeout_s
        return max(0.0, min(timeout_s, (min(self._waiting.values()) - self._now_ms()) / 1000))


def replace(
    consumer: Consumer, producer: Producer, taken: Sequence[Received], written: Sequence[Outgoing]
) -> None:
    """Write records in the place of others, which are committed next; if that fails they come again."""
    for outcome in producer.send_many(written):
        if not isinstance(outcome, Done):
            consumer.seek(firsts(taken))
            raise UnknownOutcome(
                f"a record for '{written[0].topic}' may not have been written: {outcome.reason}",
                hint="what it replaces was not committed, and will be taken again",
            )


def firsts(records: Sequence[Received]) -> dict[TopicPartition, int]:
    """The first offset of each partition."""
    return {record[:2]: record.offset for record in reversed(records)}
