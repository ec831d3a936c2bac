"""How the tests of this folder talk to their site: batches of the link, one request and its answer."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from kafka.record.default_records import DefaultRecordBatch

from twinlog.wire import codes, markers, topics
from twinlog.wire.appending import Appender
from twinlog.wire.cluster import Cluster
from twinlog.wire.connection import Connection
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetching import Fetched, FetchSession
from twinlog.wire.markers import Fill
from twinlog.wire.records import Record, encode_batch

LINK_ID = 2**62 + 1
WAIT_S = 30.0  # an answer takes milliseconds; the rest is a busy machine


def soon() -> Deadline:
    """A deadline that only a broken test meets."""
    return Deadline(WAIT_S)


def a_batch(sequence: int, *values: bytes, epoch: int = 0, producer_id: int = LINK_ID) -> bytes:
    """A batch of one producer, as a client sends it."""
    now_ms = time.time_ns() // 1_000_000
    return encode_batch(
        [Record(value, now_ms) for value in values],
        producer_id=producer_id,
        producer_epoch=epoch,
        first_sequence=sequence,
    )


def append(appender: Appender, topic: str, batch: bytes, partition: int = 0) -> tuple[str, int]:
    """Append one batch; gives the code's name and the offset."""
    appender.send([(topic, partition, batch)], soon())
    (answer,) = appender.receive(soon())
    assert (answer.topic, answer.partition) == (topic, partition)
    return codes.name_of(answer.code), answer.base_offset


def fill(leader: Connection, *fills: Fill) -> dict[tuple[str, int], markers.Filled]:
    """Send a fill and wait for what became of it."""
    return markers.receive_fill(leader, markers.send_fill(leader, fills, soon()), soon())


def fetch(session: FetchSession) -> dict[int, Fetched]:
    """Fetch once; what came, by partition."""
    session.send(soon())
    return {one.partition: one for one in session.receive(soon())}


def values_in(records: memoryview) -> list[tuple[int, bytes]]:
    """Offsets and values of all data records, read by a reader that is not ours."""
    reader: Any = DefaultRecordBatch
    found: list[tuple[int, bytes]] = []
    at = 0
    while at < len(records):
        end = at + 12 + int.from_bytes(records[at + 8 : at + 12], "big")
        batch = reader(bytes(records[at:end]))
        assert batch.validate_crc()
        if not batch.is_control_batch:
            found += ((record.offset, record.value) for record in batch)
        at = end
    return found


def topic_ids(cluster: Cluster, topic: str) -> dict[str, UUID]:
    """The topic's id, by its name."""
    (state,) = topics.describe(cluster, [topic])
    return {topic: state.id}
