"""Transactions as their coordinators know them: which are open, and ending one from outside.

Used when clients are fenced out of a site: nobody is left who could end its open transactions, and the
mirror copies nothing behind them. Asking for the producer id of a transactional id again makes its
coordinator abort what is open and raise the epoch; the producer that began it is told so when it comes
back, as after any take-over of its id.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka.protocol.admin import ListTransactionsRequest, ListTransactionsResponse
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster

ONGOING = "Ongoing"
_UNSETTLED = (ONGOING, "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_TRANSACTION_KEY = 1
_MANY_KEYS = 4
_ANY_PRODUCER, _ANY_EPOCH = -1, -1
_TIMEOUT_MS = 60_000  # of transactions that nobody will begin


@dataclass(frozen=True, order=True)
class Transaction:
    """One transaction that is not settled yet."""

    id: str
    producer_id: int
    state: str


def unsettled(cluster: Cluster) -> tuple[Transaction, ...]:
    """All transactions that are open or being ended, in the order of their ids."""
    return cluster.retry(lambda: _list(cluster))


def abort(cluster: Cluster, transaction: Transaction) -> None:
    """Have an open transaction aborted; returns when its coordinator has done so."""
    cluster.retry(lambda: _take_id(cluster, transaction.id), repeatable=True)


def _list(cluster: Cluster) -> tuple[Transaction, ...]:
    found = set()
    for broker in cluster.brokers():
        request = ListTransactionsRequest(state_filters=list(_UNSETTLED), producer_id_filters=[])
        answer = cluster.once(request, ListTransactionsResponse, broker_id=broker.id)
        codes.check(answer.error_code, None, "listing transactions", cluster.where)
        for state in answer.transaction_states:
            found.add(Transaction(state.transactional_id, state.producer_id, state.transaction_state))
    return tuple(sorted(found))


def _take_id(cluster: Cluster, name: str) -> None:
    what = f"aborting the transaction of '{name}'"
    found = cluster.once(
        FindCoordinatorRequest(key_type=_TRANSACTION_KEY, coordinator_keys=[name]),
        FindCoordinatorResponse,
        min_version=_MANY_KEYS,
    ).coordinators[0]
    codes.check(found.error_code, found.error_message, what, cluster.where)
    request = InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=_TIMEOUT_MS,
        producer_id=_ANY_PRODUCER,
        producer_epoch=_ANY_EPOCH,
    )
    answer = cluster.once(request, InitProducerIdResponse, broker_id=found.node_id)
    codes.check(answer.error_code, None, what, cluster.where)  # CONCURRENT_TRANSACTIONS: asked again
