"""Partitions read as they lie in their logs, and appended to so that nothing gets in twice.

For salvage, which may be killed at any moment and is then begun again. Who appends has a producer id of
its own, reads first where its chain of sequences stands, then where the log ends, and expects its batch
at just that offset. A batch of a run that was killed and is still on its way then bears the sequence
of ours: the broker takes one of the two, and whatever is not as expected means to begin again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from twinlog.errors import KafkaError, SiteError, TwinlogError
from twinlog.wire import codes, offsets, producers
from twinlog.wire.appending import Appender
from twinlog.wire.batches import Batch, Codec, Header, next_sequence, split
from twinlog.wire.cluster import Cluster, is_worth_retrying
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetching import Fetched, FetchLimits, FetchSession
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.recode import Entry, encode

SALVAGE_ID = 1 << 61  # no broker gives out such an id, and no link has it
MOST_EMPTY = 20  # fetches in a row that brought nothing
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
_LIMITS = FetchLimits(max_wait_ms=200, max_bytes=8 << 20, partition_max_bytes=8 << 20, read_committed=False)
_EPOCH = 0
# A chain that does not go on as it was read: somebody else's batch of it has come in between.
_CHAIN_MOVED = ("OUT_OF_ORDER_SEQUENCE_NUMBER", "DUPLICATE_SEQUENCE_NUMBER")
Result = TypeVar("Result")


class Item(NamedTuple):
    """A record to append: its time, and key, value and headers as they are encoded."""

    timestamp_ms: int
    rest: bytes


def again_until_settled(clusters: Sequence[Cluster], attempt: Callable[[], Result]) -> Result:
    """Run a piece of work from its beginning again while what stopped it may be gone the next time."""
    # Not the cluster's own retry: that has one deadline for all, and this work has no length.
    for pause_s in PAUSES_S:
        try:
            return attempt()
        except TwinlogError as error:
            if not is_worth_retrying(error, repeatable=True):
                raise
        for cluster in clusters:
            cluster.forget()
        threading.Event().wait(pause_s)
    return attempt()


def batches(cluster: Cluster, place: TopicPartition, first: int, end: int) -> Iterator[Batch]:
    """Every batch from an offset to another, markers and records of open transactions too."""
    session: FetchSession | None = None
    position = first

    def fetch() -> list[Fetched]:
        nonlocal session
        try:
            if session is None or not session.connection.is_open:
                session = FetchSession(cluster.broker(cluster.leader(*place)), _LIMITS)
            session.want(place, position)
            deadline = Deadline(cluster.patience.request_s)
            session.send(deadline)
            found = session.receive(deadline)
            for one in found:
                what = f"reading {place[0]}-{place[1]} at offset {position}"
                codes.check(one.code, None, what, cluster.where)
        except TwinlogError:
            session = None
            raise
        return found

    empty = 0
    while position < end:
        before = position
        for fetched in cluster.retry(fetch):
            for batch in split(fetched.records):
                if position < batch.header.next_offset and batch.header.base_offset < end:
                    yield batch
                    position = batch.header.next_offset
        empty = empty + 1 if position == before else 0
        if empty > MOST_EMPTY:
            raise SiteError(
                f"{place[0]}-{place[1]} ends at offset {position} for readers, not at {end}",
                where=cluster.where,
                hint="are all replicas there? twinlog status",
            )
    if session is not None:
        session.end(Deadline(cluster.patience.request_s))


def make_batch(items: Sequence[Item], producer_id: int, sequence: int) -> bytearray:
    """One compressed batch of these records under a producer's name."""
    header = Header(
        attributes=Codec.ZSTD,
        base_timestamp_ms=items[0].timestamp_ms,
        producer_id=producer_id,
        producer_epoch=_EPOCH,
        base_sequence=sequence,
    )
    run = [Entry(number, item.timestamp_ms, 0, memoryview(item.rest)) for number, item in enumerate(items)]
    return encode(run, header)


def next_in_chain(cluster: Cluster, place: TopicPartition, producer_id: int) -> int:
    """The sequence with which a producer of ours goes on at a partition."""
    state = producers.describe(cluster, [place])[place].get(producer_id)
    return 0 if state is None else next_sequence(state.last_sequence, 1)


def append(cluster: Cluster, place: TopicPartition, batch: bytearray) -> int:
    """Append a batch, a single time, and say at which offset it is."""
    what = f"writing to {place[0]}-{place[1]}"
    deadline = Deadline(cluster.patience.request_s)
    appender = Appender(cluster.broker(cluster.leader(*place)))
    appender.send([(*place, batch)], deadline)
    (answer,) = appender.receive(deadline)
    if codes.name_of(answer.code) in _CHAIN_MOVED:
        raise _moved(f"{what}: its chain of batches has moved on", codes.name_of(answer.code), cluster)
    codes.check(answer.code, answer.message, what, cluster.where)
    return answer.base_offset


class Shelf:
    """One partition to which nobody but us appends, as it is when this is made."""

    def __init__(self, cluster: Cluster, place: TopicPartition) -> None:
        self._cluster = cluster
        self._place = place
        self._sequence = next_in_chain(cluster, place, SALVAGE_ID)  # first the chain ...
        self._end = offsets.log_ends(cluster, [place])[place]  # ... then the log's end
        self._start = offsets.start_offsets(cluster, [place])[place]

    def read(self) -> Iterator[Batch]:
        """Everything that lies there."""
        return batches(self._cluster, self._place, self._start, self._end)

    def append(self, contents: Sequence[bytes]) -> int:
        """Put records there, now; gives the offset of the first."""
        now_ms = time.time_ns() // 1_000_000  # brokers forget a chain by the time that its records bear
        batch = make_batch([Item(now_ms, rest) for rest in contents], SALVAGE_ID, self._sequence)
        offset = append(self._cluster, self._place, batch)
        if offset != self._end:
            what = (
                f"writing to {self._place[0]}-{self._place[1]}: it came to offset {offset}, not {self._end}"
            )
            raise _moved(what, "DUPLICATE_SEQUENCE_NUMBER", self._cluster)
        self._end += len(contents)
        self._sequence = next_sequence(self._sequence, len(contents))
        return offset


def _moved(what: str, code: str, cluster: Cluster) -> KafkaError:
    hint = "does another run of the same go on? ps -ef | grep twinlog"
    return KafkaError(what, code=code, retriable=True, where=cluster.where, hint=hint)
