"""librdkafka's transactional producer behind a few typed calls: records that become visible together.

For the client library's transactions and for load in drills. An error says what to do next: end the
transaction, or open a new producer; nobody but the caller knows whether it may be tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import confluent_kafka as confluent

from twinlog.errors import KafkaError
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.driver import NoRoom, Outgoing, Sender, Settings, Told, explained
from twinlog.wire.offsets import TopicPartition


class TransactionFailed(KafkaError):
    """A step of a transaction failed. `must_reopen`: with this producer nothing works any more."""

    def __init__(self, error: KafkaError, *, must_reopen: bool) -> None:
        super().__init__(
            error.what, code=error.code, retriable=error.retriable, where=error.where, hint=error.hint
        )
        self.must_reopen = must_reopen


class Transactional(Sender):
    """A producer with one transaction at a time."""

    def __init__(
        self,
        access: Access,
        *,
        name: str,
        timeout_s: float,
        tuning: Tuning,
        settings: Settings | None = None,
    ) -> None:
        used: Settings = {
            "transactional.id": name,
            "transaction.timeout.ms": int(2000 * timeout_s),  # at least the time that a record has
            **(settings or {}),
        }
        super().__init__(access, timeout_s=timeout_s, tuning=tuning, settings=used)

    def prepare(self, timeout_s: float) -> None:
        """Take the name over: what its last producer left open is aborted."""
        self._step("preparing transactions", lambda producer: producer.init_transactions(timeout_s))

    def begin(self) -> None:
        """Open a transaction."""
        self._step("opening a transaction", lambda producer: producer.begin_transaction())

    def put(self, record: Outgoing) -> None:
        """Queue a record in the open transaction; the commit tells whether all were written."""
        try:
            self.queue(*record, None)
        except NoRoom:
            raise
        except KafkaError as error:
            raise TransactionFailed(error, must_reopen=error.code == "FATAL") from error

    def send(self, record: Outgoing, told: Told) -> None:
        """Queue a record in the open transaction, and hear of it alone."""
        try:
            super().send(record, told)
        except KafkaError as error:
            raise TransactionFailed(error, must_reopen=error.code == "FATAL") from error

    def take_offsets(
        self, positions: Mapping[TopicPartition, int], membership: object, timeout_s: float
    ) -> None:
        """Let a group go on at these offsets, if and when the transaction is committed."""
        places = [confluent.TopicPartition(*place, offset) for place, offset in positions.items()]
        self._step(
            "committing offsets in a transaction",
            lambda producer: producer.send_offsets_to_transaction(places, membership, timeout_s),
        )

    def commit(self, timeout_s: float) -> None:
        """Make its records visible; they are answered before."""
        self._step("committing a transaction", lambda producer: producer.commit_transaction(timeout_s))

    def abort(self, timeout_s: float) -> None:
        """Throw its records away."""
        self._step("aborting a transaction", lambda producer: producer.abort_transaction(timeout_s))

    def _step(self, what: str, take: Callable[[Any], object]) -> None:
        try:
            take(self._open())
        except confluent.KafkaException as failure:
            error = failure.args[0]
            told = explained(error, what, self._where)
            raise TransactionFailed(told, must_reopen=error.fatal()) from failure
