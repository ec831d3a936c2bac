"""Transactions: records that become visible together, with the positions of the consumer they came from.

`TransactionalProducer` writes them; its name (Kafka's transactional.id) must be that of one running
program at a time, because whoever prepares with it ends what the one before has left open. `Relay` is
the loop of consume, process and produce: each record that it consumes has its results in the output
exactly once, for readers who read committed records only. When a commit ends without an answer the
producer is opened anew, which settles the old transaction, and then the group is asked how it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from twinlog.client.consumer import MOST_AT_ONCE, Consumer
from twinlog.client.ways import Ways, of_user
from twinlog.wire.access import Access
from twinlog.wire.driver import LOG, NoRoom, Outgoing, Settings
from twinlog.wire.received import Received
from twinlog.wire.transactional import Transactional, TransactionFailed

SERVE_S = 0.1
Work = Callable[[Received], Iterable[Outgoing]]


class Transaction:
    """What goes into one transaction."""

    def __init__(self, producer: Transactional, deadline: float) -> None:
        self._producer = producer
        self._deadline = deadline

    def send(self, record: Outgoing) -> None:
        """Write a record; nobody who reads committed records sees it before the commit."""
        while True:
            try:
                self._producer.put(record)
                return
            except NoRoom as error:
                if time.monotonic() > self._deadline:
                    raise TransactionFailed(error, must_reopen=False) from error
                self._producer.serve(SERVE_S)

    def take_positions(self, consumer: Consumer) -> None:
        """Let the consumer's group go on behind what it was handed out, if this is committed."""
        positions = consumer.positions
        if positions:
            left_s = max(SERVE_S, self._deadline - time.monotonic())
            self._producer.take_offsets(positions, consumer.membership, left_s)


class TransactionalProducer:
    """Writes transactions, one at a time. Belongs to one thread."""

    def __init__(
        self, active: Access, name: str, *, timeout_s: float = 30.0, ways: Ways | None = None
    ) -> None:
        used = ways if ways is not None else Ways()
        self._timeout_s = timeout_s
        self._producer = Transactional(
            active, name=name, timeout_s=timeout_s, tuning=used.tuning, settings=used.settings
        )
        try:
            self._patiently(self._producer.prepare)
        except BaseException:
            self._producer.close()
            raise

    @classmethod
    def of_bus(
        cls,
        file: str | Path,
        user: str,
        name: str,
        *,
        timeout_s: float = 30.0,
        settings: Settings | None = None,
    ) -> Self:
        """A transactional producer of a user of the file; `settings` are librdkafka's own."""
        bound = of_user(file, user, settings)
        return cls(bound.active, name, timeout_s=timeout_s, ways=bound.ways)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction: committed at the end of the block, aborted if it raises.

        Raises TransactionFailed if it was not committed; with `must_reopen` this producer cannot go on,
        and after a commit without an answer only a new one can tell how it ended.
        """
        self._producer.begin()
        try:
            yield Transaction(self._producer, time.monotonic() + self._timeout_s)
            self._patiently(self._producer.commit)
        except TransactionFailed as error:
            if not error.must_reopen:
                self._abort()
            raise
        except BaseException:
            self._abort()
            raise

    def close(self) -> None:
        """End it; what is open is aborted by the site when its time is over."""
        self._producer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _abort(self) -> None:
        try:
            self._patiently(self._producer.abort)
        except TransactionFailed as error:
            raise TransactionFailed(error, must_reopen=True) from error

    def _patiently(self, step: Callable[[float], None]) -> None:
        """Take a step, again while librdkafka says that it may be repeated and there is time."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                step(max(SERVE_S, deadline - time.monotonic()))
                return
            except TransactionFailed as error:
                if not error.retriable:
                    raise
                if time.monotonic() > deadline:
                    raise TransactionFailed(error, must_reopen=True) from error


class Relay:
    """Consumes, works, produces: all that a turn does counts, or nothing."""

    def __init__(self, consumer: Consumer, opened: Callable[[], TransactionalProducer], work: Work) -> None:
        self._consumer = consumer
        self._opened = opened
        self._work = work
        self._producer: TransactionalProducer | None = None
        self._must_rewind = False  # the last turn failed; nothing is taken before that is done

    def run_once(self, timeout_s: float, most: int = MOST_AT_ONCE) -> int:
        """One turn; returns how many records were consumed for good. What the work raises comes through."""
        producer = self._ready()
        records = self._consumer.poll_many(timeout_s, most)
        if not records:
            return 0
        try:
            self._must_rewind = True
            with producer.transaction() as transaction:
                for record in records:
                    for made in self._work(record):
                        transaction.send(made)
                transaction.take_positions(self._consumer)
        except TransactionFailed as error:
            LOG.warning("a transaction failed, and its records are taken again: %s", error)
            if error.must_reopen:
                self.close()
            return 0
        self._must_rewind = False
        self._consumer.settle()
        return len(records)

    def close(self) -> None:
        """End the producer; the consumer is its owner's."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _ready(self) -> TransactionalProducer:
        """The producer, opened if need be; after a failed turn its records will come again."""
        if self._producer is None:
            self._producer = self._opened()
        if self._must_rewind:
            self._consumer.rewind()  # after the opening, which settles a commit that nobody heard the end of
            self._must_rewind = False
        return self._producer
