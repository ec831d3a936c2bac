"""Records that must get into the log, in their order, however long it takes.

A message that was checked against an older configuration is written again in its own place, and it was
acknowledged to its sender long ago. So the chain writes no block behind it before `settle` says that it
is there: after a crash it is found in the log and dealt with again. Order matters too, because all
orderers drop repetitions by the highest offset seen. Belongs to one thread at a time.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from twinlog.errors import KafkaError
from twinlog.ordering import records
from twinlog.ordering.retrying import AskedToEnd, Wait
from twinlog.wire.deadlines import Deadline
from twinlog.wire.driver import NoRoom, Receipt, Sender

LOG = logging.getLogger("twinlog.ordering")
_TURN_S = 0.1


class Steady:
    """Writes to one partition, if need be with one producer after another."""

    def __init__(self, topic: str, partition: int, new_sender: Callable[[], Sender], wait: Wait) -> None:
        self._place = (topic, partition)
        self._wait = wait
        self._new_sender = new_sender
        self._sender = new_sender()
        self._open: deque[tuple[bytes, Receipt]] = deque()  # not known to be in the log

    def post(self, value: bytes) -> None:
        """Write a record behind those before."""
        topic, partition = self._place
        while True:
            receipt = Receipt(self._sender)
            try:
                self._sender.queue(topic, value, records.KEY, (), partition, None, receipt)
                break
            except NoRoom:
                self._sender.serve(_TURN_S)
                if self._wait(0.0):
                    raise AskedToEnd("asked to end") from None
            except KafkaError:
                if not self._sender.has_given_up:
                    raise
                self._begin_again()
        self._open.append((value, receipt))

    def settle(self, timeout_s: float) -> bool:
        """Wait until all records are in the log; True if they are."""
        deadline = Deadline(timeout_s)
        while self._open:
            self._sender.flush(min(deadline.remaining_s(), _TURN_S))
            self._forget_answered()
            if self._open and (self._sender.has_given_up or self._open[0][1].failed is not None):
                self._wait(min(deadline.remaining_s(), _TURN_S))  # it may be refused at once, again and again
                self._begin_again()
            if deadline.passed:
                break
        return not self._open

    def close(self) -> None:
        """End it, also without answers."""
        self._sender.close()

    def _forget_answered(self) -> None:
        while self._open:
            _, receipt = self._open[0]
            # Of a producer that has given up it is no word on the record: the next one may be let in.
            failed = None if self._sender.has_given_up else receipt.failed
            if failed is not None and failed.is_certain:
                LOG.error("a record that was to be sent again is lost: %s", failed.reason)
            elif receipt.offset < 0:
                return
            self._open.popleft()

    def _begin_again(self) -> None:
        """Write all that is open once more: what gets there twice is dropped by everybody as a repetition."""
        self._sender.close()
        self._sender = self._new_sender()
        again, self._open = self._open, deque()
        for value, _ in again:
            self.post(value)
