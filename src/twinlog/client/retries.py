"""Records that could not be dealt with: when they are tried again, and where they end. Pure.

A record that fails goes to the retry topic with a time before which nobody should try it, and after the
last attempt to the dead-letter topic. Headers of our own carry where it came from, how often it was
tried, when it is due and what went wrong; its key, value, time and other headers stay as they were.
`redriven` sends a dead letter back to where it came from, as if it had never been tried. `Worker`
(`worker.py`) does all this.
"""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.wire.driver import Headers, Outgoing
from twinlog.wire.receiver import Received

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


def redriven(record: Received) -> Outgoing:
    """A dead letter on its way back to the topic that it came from."""
    topic = _origin(record).rpartition("/")[0].rpartition("/")[0]
    return _moved(record, topic, _own(record))


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
