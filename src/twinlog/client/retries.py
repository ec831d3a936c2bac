"""Records that could not be dealt with: when they are tried again, and where they end. Pure.

A record that fails goes to the retry topic with a time before which nobody should try it, and after the
last attempt to the dead-letter topic. Headers of our own carry where it came from, how often it was
tried, when it is due and what went wrong; its key, value, time and other headers stay as they were.
`redriven` sends a dead letter back to where it came from, as if it had never been tried. `Worker` and
`redrive` (`worker.py`, `redriving.py`) do all this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from twinlog.errors import UsageError
from twinlog.wire.driver import Headers, Outgoing
from twinlog.wire.received import Received

ORIGIN, ATTEMPTS, DUE, REASON = "twinlog-origin", "twinlog-attempts", "twinlog-due-ms", "twinlog-reason"
_OURS = frozenset([ORIGIN, ATTEMPTS, DUE, REASON])
_LONGEST_REASON = 500


@dataclass(frozen=True)
class Retries:
    """How a topic's failures are treated: one delay for each further attempt, then the dead-letter topic."""

    topic: str
    delays_s: tuple[float, ...] = (1.0, 10.0, 60.0)

    @property
    def retry_topic(self) -> str:
        """Where records wait for their next attempt."""
        return f"{self.topic}.retry"

    @property
    def dead_topic(self) -> str:
        """Where records end."""
        return f"{self.topic}.dead"

    def failed(self, record: Received, reason: str, now_ms: int) -> Outgoing:
        """What is to be written for a record that has just failed."""
        attempts = attempts_of(record) + 1
        headers = [
            *_own(record),
            (ORIGIN, _origin(record).encode()),
            (ATTEMPTS, str(attempts).encode()),
            (REASON, reason[:_LONGEST_REASON].encode(errors="replace")),
        ]
        if attempts > len(self.delays_s):
            return _moved(record, self.dead_topic, headers)
        due_ms = now_ms + int(self.delays_s[attempts - 1] * 1000)
        return _moved(record, self.retry_topic, [*headers, (DUE, str(due_ms).encode())])


def attempts_of(record: Received) -> int:
    """How often it was tried."""
    return _number(record, ATTEMPTS)


def due_ms(record: Received) -> int:
    """When it may be tried: 0 unless it was tried before."""
    return _number(record, DUE)


def origin_topic(record: Received) -> str | None:
    """The topic that a retried record or a dead letter came from first; None if it does not say."""
    topic, _, place = (_header(record, ORIGIN) or b"").decode(errors="replace").partition("/")
    partition, _, offset = place.partition("/")
    return topic if topic and partition.isdigit() and offset.isdigit() else None


def redriven(record: Received, to: str | None = None) -> Outgoing:
    """A dead letter on its way back to the topic that it came from, or `to` if it does not say."""
    topic = origin_topic(record) or to
    if topic is None:
        raise UsageError(
            f"the record at offset {record.offset} does not say where it came from",
            where=f"{record.topic}-{record.partition}",
            hint="name the topic for such records: to='...', or --to TOPIC",
        )
    return _moved(record, topic, _own(record))


@dataclass(frozen=True)
class Letters:
    """Dead letters that came from one topic for one reason. `topic` is None where they do not say."""

    topic: str | None
    reason: str
    records: int


def sorted_out(records: Iterable[Received]) -> list[Letters]:
    """Dead letters by where they came from and why, the most frequent first."""
    counts = Counter(
        (origin_topic(one), (_header(one, REASON) or b"").decode(errors="replace")) for one in records
    )
    return [Letters(topic, reason, count) for (topic, reason), count in counts.most_common()]


def _moved(record: Received, topic: str, headers: Headers) -> Outgoing:
    return Outgoing(topic, record.value, record.key, headers, timestamp_ms=record.timestamp_ms)


def _own(record: Received) -> list[tuple[str, bytes | None]]:
    return [header for header in record.headers if header[0] not in _OURS]


def _origin(record: Received) -> str:
    """Topic, partition and offset that a record had first."""
    found = _header(record, ORIGIN)
    if found is not None:
        return found.decode(errors="replace")
    return f"{record.topic}/{record.partition}/{record.offset}"


def _number(record: Received, name: str) -> int:
    found = _header(record, name) or b"0"
    return int(found) if found.isdigit() else 0


def _header(record: Received, name: str) -> bytes | None:
    return next((value for key, value in reversed(record.headers) if key == name), None)
