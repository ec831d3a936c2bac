"""Transactions that hang: open in a partition, and no coordinator will ever end them.

For the transaction commands. A partition remembers a producer with an open transaction; its coordinator
either has that transaction open too, or has long finished it and forgotten this partition. In the
second case consumers with read_committed wait for ever, and the mirror with them. It happens with old clients
and after broken disks (KIP-664). Ending one writes an abort marker in the coordinator's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from twinlog.errors import KafkaError
from twinlog.wire import codes, producers, transactions
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.markers import Fill, receive_fill, send_fill
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.producers import ProducerState
from twinlog.wire.transactions import Described

_NONE_OPEN = -1


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that a partition holds open."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int
    transactional_id: str | None  # None if no coordinator knows the producer
    hangs: bool


def opened(states: Mapping[TopicPartition, Mapping[int, ProducerState]]) -> list[tuple[TopicPartition, int]]:
    """Partitions and producers with an open transaction."""
    return [
        (place, producer_id)
        for place, theirs in sorted(states.items())
        for producer_id, state in sorted(theirs.items())
        if state.current_txn_start_offset != _NONE_OPEN
    ]


def judge(
    states: Mapping[TopicPartition, Mapping[int, ProducerState]], known: Sequence[Described]
) -> list[OpenTransaction]:
    """Every open transaction with the one that its coordinator knows; it hangs if that one is another."""
    by_producer = {one.producer_id: one for one in known}
    found = []
    for place, producer_id in opened(states):
        state = states[place][producer_id]
        one = by_producer.get(producer_id)
        is_known = one is not None and place in one.partitions
        found.append(
            OpenTransaction(
                *place,
                producer_id=producer_id,
                producer_epoch=state.epoch,
                coordinator_epoch=max(0, state.coordinator_epoch),
                start_offset=state.current_txn_start_offset,
                last_timestamp_ms=state.last_timestamp_ms,
                transactional_id=one.id if one is not None else None,
                hangs=not is_known,
            )
        )
    return found


def find(cluster: Cluster, places: Iterable[TopicPartition]) -> list[OpenTransaction]:
    """All open transactions of partitions."""
    states = producers.describe(cluster, places)
    wanted = {producer_id for _, producer_id in opened(states)}
    if not wanted:
        return []
    # Coordinators after the partitions: a transaction that began in between is known to them.
    ids = [one.id for one in transactions.every(cluster) if one.producer_id in wanted]
    known = [found for name in ids if (found := transactions.describe(cluster, name)) is not None]
    return judge(states, known)


def end(cluster: Cluster, one: OpenTransaction) -> None:
    """Write the abort marker that never came; not repeated when its answer is lost."""
    deadline = Deadline(cluster.patience.request_s)
    connection = cluster.retry(lambda: cluster.broker(cluster.leader(one.topic, one.partition)))
    fill = Fill(one.topic, one.partition, 1, one.producer_id, one.producer_epoch, one.coordinator_epoch)
    (told,) = receive_fill(connection, send_fill(connection, [fill], deadline), deadline).values()
    what = f"ending the transaction of producer {one.producer_id} in {one.topic}-{one.partition}"
    codes.check(told.code, None, what, cluster.where)


def the_one(found: Sequence[OpenTransaction], producer_id: int | None, where: str) -> OpenTransaction:
    """The transaction to end, if it is clear which one and if it hangs."""
    hanging = [one for one in found if one.hangs and producer_id in (None, one.producer_id)]
    if len(hanging) != 1:
        named = ", ".join(str(one.producer_id) for one in hanging)
        raise KafkaError(
            f"{len(hanging)} transactions hang there{': producers ' + named if named else ''}",
            code="INVALID_TXN_STATE",
            where=where,
            hint="name one with --producer-id" if hanging else "twinlog transactions list --open",
        )
    return hanging[0]
