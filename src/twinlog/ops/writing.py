"""Records one after the other at a rate, and a tally of how each write ended. Pure but for the waiting.

For `twinlog produce`, which hands the records to the client library. A write whose answer was lost is
unknown, never failed: somebody has to look.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from twinlog.errors import KafkaError, TwinlogError, UnknownOutcome
from twinlog.wire.driver import Outgoing


@dataclass
class Tally:
    """How many writes ended in which way, and what was said of the first that did not succeed."""

    done: int = 0
    refused: int = 0
    unknown: int = 0
    size_bytes: int = 0
    reason: str = ""
    hint: str = ""

    @property
    def total(self) -> int:
        """All that were sent."""
        return self.done + self.refused + self.unknown

    def count_refused(self, reason: str, hint: str) -> None:
        """One that is certainly not in the log."""
        self.refused += 1
        self._note(reason, hint)

    def count_unknown(self, reason: str, hint: str) -> None:
        """One that may be in the log or not."""
        self.unknown += 1
        self._note(reason, hint)

    def problem(self, topic: str) -> TwinlogError | None:
        """The error that the writes together mean; unknown ones count more than refused ones."""
        where = f"topic {topic}"
        if self.unknown:
            what = f"of {self.total} records {self.unknown} may or may not be written: {self.reason}"
            return UnknownOutcome(what, where=where, hint=self.hint)
        if self.refused:
            what = f"of {self.total} records {self.refused} were refused: {self.reason}"
            return KafkaError(what, where=where, hint=self.hint)
        return None

    def _note(self, reason: str, hint: str) -> None:
        if not self.reason:
            self.reason, self.hint = reason, hint


def paced(
    records: Iterable[Outgoing],
    rate_per_s: float,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], object] | None = None,
) -> Iterator[Outgoing]:
    """The same records, each not before its turn; a late one does not push back those behind it."""
    pause = wait if wait is not None else threading.Event().wait
    began = clock()
    for number, record in enumerate(records):
        early_s = began + number / rate_per_s - clock()
        if early_s > 0:
            pause(early_s)
        yield record
