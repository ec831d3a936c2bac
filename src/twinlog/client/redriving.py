"""Dead letters on their way back, up to the ends that their topic has when that begins.

For programs, and for `twinlog redrive`. Each letter is written before it is committed: one that is under
way when this ends is sent again the next time, and none is lost. What becomes a dead letter meanwhile
stays, so that a record which fails at once does not go round for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from twinlog.client.consumer import Consumer
from twinlog.client.producer import Producer
from twinlog.client.retries import origin_topic, redriven
from twinlog.client.worker import firsts, replace
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.received import Received

IDLE_S = 5.0


def redrive(consumer: Consumer, producer: Producer, *, to: str | None = None, idle_s: float = IDLE_S) -> int:
    """Send the dead letters that are there now back to where they came from; how many it were.

    The consumer reads the dead-letter topic in a group of its own, which remembers how far this came.
    Letters that do not say where they came from go to `to`; without it the first of them ends this.
    """
    left = consumer.unread()
    count = 0
    while left:
        records = consumer.poll_many(idle_s)
        if not records:  # what is left to the ends are no records: markers, or compacted away
            return count
        due, later = parted(records, left)
        ready = due if to is not None else list(takewhile(origin_topic, due))
        consumer.pause(firsts(later))
        consumer.seek(firsts(due[len(ready) :]))
        replace(consumer, producer, ready, [redriven(record, to) for record in ready])
        consumer.commit()
        count += len(ready)
        for record in due[len(ready) :]:
            redriven(record)  # raises, and says which one it is
        for record in records:
            if record.offset + 1 >= left.get(record[:2], 0):
                left.pop(record[:2], None)
    return count


def parted(
    records: Sequence[Received], ends: Mapping[TopicPartition, int]
) -> tuple[list[Received], list[Received]]:
    """Records before the ends of their partitions, and those that came later or of other partitions."""
    due = [record for record in records if record.offset < ends.get(record[:2], 0)]
    return due, [record for record in records if record.offset >= ends.get(record[:2], 0)]
