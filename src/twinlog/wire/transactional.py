"""librdkafka's transactional producer behind a few typed calls: records that become visible together.

For load in drills, as `driver` is for the client library. An error says what to do next: end the
transaction, or open a new producer; nobody but the caller knows whether it may be tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka as confluent

from twinlog.errors import KafkaError
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.driver import Outgoing, Sender, Settings, Told, explained


class TransactionFailed(KafkaError):
    """A step of a transaction failed. `must_reopen`: with this producer nothing works any more."""

    def __init__(self, error: KafkaError, *, must_reopen: bool) -> None:
        super().__init__(
            error.what, code=error.code, retriable=error.retriable, where=error.where, hint=error.hint
        )
        self.must_reopen = must_reopen


class Transactional(Sender):
    """A producer with one transaction at a time."""

    def __init__(self, access: Access, *, name: str, timeout_s: float, tuning: Tuning) -> None:
        settings: Settings = {
            "transactional.id": name,
            "transaction.timeout.ms": int(2000 * timeout_s),  # at least the time that a record has
        }
        super().__init__(access, timeout_s=timeout_s, tuning=tuning, settings=settings)

    def prepare(self, timeout_s: float) -> None:
        """Take the name over: what its last producer left open is aborted."""
        self._step("preparing transactions", lambda producer: producer.init_transactions(timeout_s))

    def begin(self) -> None:
        """Open a transaction."""
        self._step("opening a transaction", lambda producer: producer.begin_transaction())

    def send(self, record: Outgoing, told: Told) -> None:
        """Queue a record in the open transaction."""
        try:
            super().send(record, told)
        except KafkaError as error:
            raise TransactionFailed(error, must_reopen=error.code == "FATAL") from error

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
