"""Transactions as their coordinators know them: which there are, and ending one from outside.

Used by the transaction commands, and when clients are fenced out of a site: nobody is left who could end
its open transactions, and the mirror copies nothing behind them. Asking for the producer id of a
transactional id again makes its coordinator abort what is open and raise the epoch; the producer that
began it is told so when it comes back, as after any take-over of its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka.protocol.admin.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer.transaction import InitProducerIdRequest, InitProducerIdResponse

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster
from twinlog.wire.offsets import TopicPartition

ONGOING = "Ongoing"
_UNSETTLED = (ONGOING, "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_TRANSACTION_KEY = 1
_MANY_KEYS = 4
_NOT_FOUND = "TRANSACTIONAL_ID_NOT_FOUND"
_ANY_PRODUCER, _ANY_EPOCH = -1, -1
_TIMEOUT_MS = 60_000  # of transactions that nobody will begin


@dataclass(frozen=True, order=True)
class Transaction:
    """One transaction that is not settled yet."""

    id: str
    producer_id: int
    state: str


@dataclass(frozen=True)
class Described:
    """All that its coordinator knows of one transactional id."""

    id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None  # None if none is open
    partitions: tuple[TopicPartition, ...]


def unsettled(cluster: Cluster) -> tuple[Transaction, ...]:
    """All transactions that are open or being ended, in the order of their ids."""
    return cluster.retry(lambda: _list(cluster, _UNSETTLED))


def every(cluster: Cluster) -> tuple[Transaction, ...]:
    """All transactional ids that coordinators remember, whatever their state."""
    return cluster.retry(lambda: _list(cluster, ()))


def describe(cluster: Cluster, name: str) -> Described | None:
    """All about one transactional id; None if no coordinator knows it."""
    return cluster.retry(lambda: _describe(cluster, name))


def abort(cluster: Cluster, transaction: Transaction) -> None:
    """Have an open transaction aborted; returns when its coordinator has done so."""
    cluster.retry(lambda: _take_id(cluster, transaction.id), repeatable=True)


def coordinator(cluster: Cluster, name: str) -> int:
    """The broker that coordinates a transactional id; one attempt, on which Kafka makes its own topic."""
    return _coordinator(cluster, name, f"finding the coordinator of '{name}'")


def _list(cluster: Cluster, states: Sequence[str]) -> tuple[Transaction, ...]:
    found = set()
    for broker in cluster.brokers():
        request = ListTransactionsRequest(state_filters=list(states), producer_id_filters=[])
        answer = cluster.once(request, ListTransactionsResponse, broker_id=broker.id)
        codes.check(answer.error_code, None, "listing transactions", cluster.where)
        for state in answer.transaction_states:
            found.add(Transaction(state.transactional_id, state.producer_id, state.transaction_state))
    return tuple(sorted(found))


def _describe(cluster: Cluster, name: str) -> Described | None:
    what = f"describing the transactions of '{name}'"
    coordinator = _coordinator(cluster, name, what)
    request = DescribeTransactionsRequest(transactional_ids=[name])
    answer = cluster.once(request, DescribeTransactionsResponse, broker_id=coordinator)
    (state,) = answer.transaction_states
    if codes.name_of(state.error_code) == _NOT_FOUND:
        return None
    codes.check(state.error_code, None, what, cluster.where)
    started_ms = state.transaction_start_time_ms
    return Described(
        state.transactional_id,
        coordinator,
        state.producer_id,
        state.producer_epoch,
        state.transaction_state,
        state.transaction_timeout_ms,
        started_ms if started_ms >= 0 else None,
        tuple((topic.topic, index) for topic in state.topics for index in topic.partitions),
    )


def _coordinator(cluster: Cluster, name: str, what: str) -> int:
    found = cluster.once(
        FindCoordinatorRequest(key_type=_TRANSACTION_KEY, coordinator_keys=[name]),
        FindCoordinatorResponse,
        min_version=_MANY_KEYS,
    ).coordinators[0]
    codes.check(found.error_code, found.error_message, what, cluster.where)
    return found.node_id


def _take_id(cluster: Cluster, name: str) -> None:
    what = f"aborting the transaction of '{name}'"
    coordinator = _coordinator(cluster, name, what)
    request = InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=_TIMEOUT_MS,
        producer_id=_ANY_PRODUCER,
        producer_epoch=_ANY_EPOCH,
    )
    answer = cluster.once(request, InitProducerIdResponse, broker_id=coordinator)
    codes.check(answer.error_code, None, what, cluster.where)  # CONCURRENT_TRANSACTIONS: asked again
