"""The role record: what a site is to its bus, written where every client of the site can read it.

Each site has one internal topic for it; the newest record there counts. `ops` writes it, clients
with acks=twin read it after they saw the standby's end. It is written at a site before clients may
write there and, when the site becomes a standby, after they may not; a site is called standby only
while its mirrored logs are beginnings of the active's. Terms never go back.
Reading needs no group: the end is asked of the leader, and the last record fetched if it is new.
Kafka does not tell an end that a new leader is not sure of (KIP-207), so a record that was
acknowledged once is never overlooked; a fetch alone would not have that guarantee.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import Any

from twinlog.errors import KafkaError
from twinlog.spec.model import Role
from twinlog.wire import codes, contents, fetch_bytes, offsets, recode, topics
from twinlog.wire.appending import Appender
from twinlog.wire.batches import split
from twinlog.wire.cluster import Cluster
from twinlog.wire.connection import RawRequest
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetch_bytes import LAST_EPOCH, NO_SESSION, Fetched, FetchLimits
from twinlog.wire.records import Record, encode_batch
from twinlog.wire.topic_keys import TopicKeys
from twinlog.wire.versions import Range

TOPIC = "__twinlog_role"
KEY = b"role"
_PLACE = (TOPIC, 0)
_SETTINGS = {"cleanup.policy": "compact", "segment.bytes": "1048576"}
_BY_NAME = Range(12, 12)
_AT_ONCE = FetchLimits(max_wait_ms=0, max_bytes=65536, partition_max_bytes=65536, read_committed=False)


@dataclass(frozen=True)
class Standing:
    """What a site is to its bus, and in which term."""

    bus: str
    site: str
    role: Role
    term: int

    def __str__(self) -> str:
        return f"{self.role} of term {self.term}"


def encode(standing: Standing) -> bytes:
    """The record's value."""
    return json.dumps(asdict(standing)).encode()


def decode(value: bytes | None) -> Standing | None:
    """What a record's value says; None if it says nothing that we understand."""
    try:
        told: Any = json.loads(value or b"")
        return Standing(str(told["bus"]), str(told["site"]), Role(told["role"]), int(told["term"]))
    except (ValueError, KeyError, TypeError):
        return None


class Reader:
    """Reads one site's role again and again; a record that was read is not fetched twice."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._end = 0
        self._last: Standing | None = None

    def read(self) -> Standing | None:
        """What the site is now; None if nobody has said so yet."""
        end = offsets.end_offsets(self._cluster, [_PLACE])[_PLACE]
        if end != self._end:
            self._last = _newest(self._cluster, end) if end else None
            self._end = end
        return self._last


def read(cluster: Cluster) -> Standing | None:
    """What a site is; None if nobody has said so yet, or the topic is not there."""
    if not topics.describe(cluster, [TOPIC]):
        return None
    return Reader(cluster).read()


def write(cluster: Cluster, standing: Standing) -> None:
    """Say what a site is; returns when the record is on all in-sync replicas."""
    _ensure_topic(cluster)
    record = Record(encode(standing), timestamp_ms=time.time_ns() // 1_000_000, key=KEY)
    batch = encode_batch([record])
    # The newest record counts and says the same the second time, so a lost answer does no harm.
    cluster.retry(lambda: _append(cluster, batch), repeatable=True)


def _append(cluster: Cluster, batch: bytes) -> None:
    deadline = Deadline(cluster.patience.request_s)
    appender = Appender(cluster.broker(cluster.leader(*_PLACE)))
    appender.send([(*_PLACE, batch)], deadline)
    (answer,) = appender.receive(deadline)
    codes.check(answer.code, answer.message, "writing the role", cluster.where)


def _newest(cluster: Cluster, end: int) -> Standing | None:
    fetched = cluster.retry(lambda: _fetch(cluster, end - 1))
    found = None
    for batch in split(fetched.records):
        for entry in recode.entries(batch):
            content = contents.contents(bytes(entry.rest))
            if content.key == KEY and entry.offset < end:
                found = decode(content.value)
    return found


def _fetch(cluster: Cluster, offset: int) -> Fetched:
    connection = cluster.broker(cluster.leader(*_PLACE))
    version = connection.agree(fetch_bytes.NAME, fetch_bytes.API_KEY, _BY_NAME)
    keys = TopicKeys()
    body = fetch_bytes.encode(version, keys, _AT_ONCE, (NO_SESSION, LAST_EPOCH), {_PLACE: offset})
    request = RawRequest(
        fetch_bytes.NAME,
        fetch_bytes.API_KEY,
        version,
        [body],
        lambda frame: fetch_bytes.decode(frame, keys),
    )
    deadline = Deadline(cluster.patience.request_s)
    answer = connection.receive(connection.send_raw(request, deadline), deadline)
    codes.check(answer.code, None, "reading the role", cluster.where)
    (fetched,) = answer.fetched
    codes.check(fetched.code, None, "reading the role", cluster.where)
    return fetched


def _ensure_topic(cluster: Cluster) -> None:
    if topics.describe(cluster, [TOPIC]):
        return
    copies = min(3, len(cluster.brokers()))
    try:
        topics.create(cluster, topics.NewTopic(TOPIC, 1, copies, configs=_SETTINGS))
    except KafkaError as error:
        if error.code != "TOPIC_ALREADY_EXISTS":
            raise
