"""Records on their way to a channel's partition: one goes at once, what comes meanwhile goes together.

`topic` writes with it. While records are under way, others wait for their answers and then go in one
request. So a lone message waits for nobody, and at full speed a request carries what came within one round
trip: a request costs orderer and broker several times what a record in it does. An idempotent producer
keeps the order. When the log does not take records, those that wait behind them fail too. Any thread may
post; one thread listens for answers, and tells them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from twinlog.errors import KafkaError
from twinlog.ordering import records
from twinlog.ordering.support import Unavailable
from twinlog.wire.driver import Receipt, Sender

MOST_WAITING_BYTES = 256 * 1024 * 1024
_LISTEN_S = 0.1

Tell = Callable[[Unavailable | None], None]  # how a record ended: None if the log has it


class Posted(Receipt):
    """A record whose end somebody is told; no future, which would cost as much as all the rest here."""

    __slots__ = ("posting", "tell", "value")

    def __init__(self, posting: Posting, value: bytes, tell: Tell) -> None:
        super().__init__(posting.sender)
        self.posting = posting
        self.value = value
        self.tell = tell

    def told(self, error: Any, message: Any) -> None:
        """What librdkafka says of the record."""
        super().told(error, message)
        failed = self.failed
        if failed is None:
            self.posting.answered()
            self.tell(None)
        else:
            why = Unavailable(f"cannot enqueue: {failed.reason}", hint=failed.hint)
            # What is wrong with this record alone is no reason to fail those behind it.
            self.posting.answered(None if failed.is_certain else why)
            self.tell(why)


class Posting:
    """Writes to one partition, one load of records after the other."""

    def __init__(self, topic: str, partition: int, new_sender: Callable[[], Sender]) -> None:
        self.sender = new_sender()
        self._place = (topic, partition)
        self._new_sender = new_sender
        self._lock = threading.RLock()  # a driver that refuses may tell answers from within that call
        self._waiting: list[Posted] = []
        self._waiting_bytes = 0
        self._under_way = 0
        self._is_closing = threading.Event()
        self._listener = threading.Thread(target=self._listen, name=f"answers-{topic}", daemon=True)
        self._listener.start()

    def post(self, value: bytes) -> Future[int]:
        """Write a record; the future gives its offset, or `Unavailable` if nobody knows that it is there."""
        future: Future[int] = Future()
        future.set_running_or_notify_cancel()  # what was sent cannot be called back

        def ended(failure: Unavailable | None) -> None:
            if failure is None:
                future.set_result(posted.offset)
            else:
                future.set_exception(failure)

        posted = Posted(self, value, ended)
        self._take([posted])
        return future

    def post_together(self, values: Sequence[bytes], tells: Sequence[Tell]) -> None:
        """Write records that came together; each one's function is told of its end."""
        self._take([Posted(self, value, tell) for value, tell in zip(values, tells, strict=True)])

    def answered(self, failure: Unavailable | None = None) -> None:
        """A record was answered; after the last one those that wait go, or fail as this one did."""
        with self._lock:
            self._under_way -= 1
            if failure is None and self._under_way:
                return
            posted = self._taken()
            refused = self._send(posted) if failure is None else [(one, failure) for one in posted]
        _refuse(refused)

    def close(self) -> None:
        """Stop writing; what was not answered is told as unavailable."""
        self._is_closing.set()
        self._listener.join()
        self._fail_waiting()
        self.sender.close()

    def _take(self, posted: list[Posted]) -> None:
        with self._lock:
            if self._is_closing.is_set() or self._waiting_bytes > MOST_WAITING_BYTES:
                raise Unavailable("cannot enqueue: too much waits for the log", where=self._place[0])
            if self._under_way:
                self._waiting += posted
                self._waiting_bytes += sum(len(one.value) for one in posted)
                return
            refused = self._send(posted)
        _refuse(refused)

    def _taken(self) -> list[Posted]:
        taken, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return taken

    def _send(self, posted: list[Posted]) -> list[tuple[Posted, Unavailable]]:
        """Queue records in the driver; gives those that it did not take."""
        if not posted:
            return []
        topic, partition = self._place
        for one in posted:
            one.sender = self.sender  # it may be another than when they came
        try:
            values = [one.value for one in posted]
            left = self.sender.queue_together(topic, partition, records.KEY, values, posted)
        except KafkaError as error:
            why = Unavailable(f"cannot enqueue: {error.what}", where=topic, hint=error.hint)
            return [(one, why) for one in posted]
        self._under_way += len(posted) - len(left)
        too_much = Unavailable("cannot enqueue: there is no room for it, or it is too large", where=topic)
        return [(one, too_much) for one in posted if one in left] if left else []

    def _listen(self) -> None:
        while not self._is_closing.is_set():
            self.sender.serve(_LISTEN_S)
            if self.sender.has_given_up:
                # First what waits, else the answers that closing brings would have it sent in vain.
                self._fail_waiting()
                self.sender.close()
                with self._lock:
                    self.sender = self._new_sender()
                    self._under_way = 0  # nobody tells of the old one's any more
                    refused = self._send(self._taken())  # what came while it was closed
                _refuse(refused)

    def _fail_waiting(self) -> None:
        with self._lock:
            taken = self._taken()
        ended = Unavailable("cannot enqueue: the producer has ended", where=self._place[0])
        _refuse([(one, ended) for one in taken])


def _refuse(refused: list[tuple[Posted, Unavailable]]) -> None:
    for posted, why in refused:
        posted.tell(why)
