"""A short measurement of what one partition of a site takes and gives, in a topic of its own.

For `twinlog topic advise`. The topic has one partition, as many copies as the real one will have, and is gone
afterwards, also when the measurement fails. It is written with acks=all: that is what the bus is for.
"""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_hex

from twinlog.errors import KafkaError, SiteError
from twinlog.perf import clients, consuming, payloads, producing
from twinlog.perf.advice import Measured
from twinlog.perf.figures import Read, Written
from twinlog.wire import topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.driver import Settings

MOST_RECORDS = 1_000_000_000  # time ends it
PREFIX = "twinlog-advise-"
_FETCH_BYTES, _SOCKET_BYTES = 1024 * 1024, 2 * 1024 * 1024


def measure(
    cluster: Cluster,
    base: Callable[[str], Settings],
    *,
    record_bytes: int,
    replication: int,
    seconds: float,
) -> Measured:
    """Write for so long, read it all, and say how fast each went; `base` gives settings for a role."""
    topic = PREFIX + token_hex(4)
    configs = {"retention.bytes": "-1", "max.message.bytes": str(max(1_048_588, 2 * record_bytes))}
    # Kafka itself may choose a broker that is down, for the sake of its rack, and nobody could write then.
    copies = tuple(broker.id for broker in cluster.brokers()[:replication])
    topics.create(cluster, topics.NewTopic(topic, assignment=(copies,), configs=configs))
    try:
        written = _write(base("producer"), topic, record_bytes, seconds)
        read = _read(base("consumer"), topic, written)
    finally:
        topics.delete(cluster, topic)
    return Measured(written.total.records_per_s, read.fetching.records_per_s)


def _write(base: Settings, topic: str, record_bytes: int, seconds: float) -> Written:
    options = producing.WriteOptions(
        topic,
        MOST_RECORDS,
        payloads.pieces(payloads.random_values(record_bytes)),
        record_bytes,
        longest_s=seconds,
    )
    written = producing.write(clients.producer(base, {}), options)
    if written.failed or not written.total.records:
        raise KafkaError(
            f"nothing could be measured: {written.reason or 'no record was acknowledged'}",
            where=f"topic {topic}",
            hint=written.hint or "twinlog status",
        )
    return written


def _read(base: Settings, topic: str, written: Written) -> Read:
    settings = clients.consumer(
        base, {}, group=topic, from_latest=False, fetch_bytes=_FETCH_BYTES, socket_bytes=_SOCKET_BYTES
    )
    read = consuming.read(settings, consuming.ReadOptions((topic,), written.total.records))
    if not read.total.records:
        raise SiteError("nothing could be read back", where=f"topic {topic}", hint="twinlog status")
    return read
