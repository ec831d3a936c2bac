"""Notes: what Twinlog writes down at a site itself, so that whoever reaches the site can read it.

A note is a topic of one partition with one key; its newest record counts. The role of a site is one,
the move that is under way another. Reading needs no group: the end is asked of the leader, and the
last record fetched if it is new. Kafka does not tell an end that a new leader is not sure of
(KIP-207), so a record that was acknowledged once is never overlooked; a fetch alone would not have
that guarantee.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from twinlog.errors import KafkaError
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

OWN = "__twinlog_"  # what the names of all topics begin with that are nobody else's
MOST_BYTES = 1 << 20
_SETTINGS = {"cleanup.policy": "compact", "segment.bytes": str(MOST_BYTES)}
_BY_NAME = Range(12, 12)
_AT_ONCE = FetchLimits(
    max_wait_ms=0, max_bytes=MOST_BYTES, partition_max_bytes=MOST_BYTES, read_committed=False
)


@dataclass(frozen=True)
class Note:
    """One kind of note, the same at every site."""

    topic: str
    key: bytes
    about: str  # "the role"

    @property
    def place(self) -> tuple[str, int]:
        """The one partition."""
        return self.topic, 0


class Reader:
    """Reads one site's note again and again; a record that was read is not fetched twice."""

    def __init__(self, cluster: Cluster, note: Note) -> None:
        self._cluster = cluster
        self._note = note
        self._end = 0
        self._last: bytes | None = None

    def read(self) -> bytes | None:
        """What the note says now; None if nobody has written it yet."""
        place = self._note.place
        end = offsets.end_offsets(self._cluster, [place])[place]
        if end != self._end:
            self._last = _newest(self._cluster, self._note, end) if end else None
            self._end = end
        return self._last


def read(cluster: Cluster, note: Note) -> bytes | None:
    """What a note says; None if nobody has written it yet, or the topic is not there."""
    if not topics.describe(cluster, [note.topic]):
        return None
    return Reader(cluster, note).read()


def write(cluster: Cluster, note: Note, value: bytes) -> None:
    """Replace what a note says; returns when the record is on all in-sync replicas."""
    ensure_topic(cluster, note)
    append(cluster, note, value)


def append(cluster: Cluster, note: Note, value: bytes) -> None:
    """The same where the note's topic is known to be there."""
    batch = encode_batch([Record(value, timestamp_ms=time.time_ns() // 1_000_000, key=note.key)])
    # The newest record counts and says the same the second time, so a lost answer does no harm.
    cluster.retry(lambda: _append(cluster, note, batch), repeatable=True)


def ensure_topic(cluster: Cluster, note: Note) -> None:
    """Have the note's topic."""
    if topics.describe(cluster, [note.topic]):
        return
    copies = min(3, len(cluster.brokers()))
    try:
        topics.create(cluster, topics.NewTopic(note.topic, 1, copies, configs=_SETTINGS))
    except KafkaError as error:
        if error.code != "TOPIC_ALREADY_EXISTS":
            raise


def _append(cluster: Cluster, note: Note, batch: bytes) -> None:
    deadline = Deadline(cluster.patience.request_s)
    appender = Appender(cluster.broker(cluster.leader(*note.place)))
    appender.send([(*note.place, batch)], deadline)
    (answer,) = appender.receive(deadline)
    codes.check(answer.code, answer.message, f"writing {note.about}", cluster.where)


def _newest(cluster: Cluster, note: Note, end: int) -> bytes | None:
    fetched = cluster.retry(lambda: _fetch(cluster, note, end - 1))
    found = None
    for batch in split(fetched.records):
        for entry in recode.entries(batch):
            content = contents.contents(bytes(entry.rest))
            if content.key == note.key and entry.offset < end:
                found = content.value
    return found


def _fetch(cluster: Cluster, note: Note, offset: int) -> Fetched:
    connection = cluster.broker(cluster.leader(*note.place))
    version = connection.agree(fetch_bytes.NAME, fetch_bytes.API_KEY, _BY_NAME)
    keys = TopicKeys()
    body = fetch_bytes.encode(version, keys, _AT_ONCE, (NO_SESSION, LAST_EPOCH), {note.place: offset})
    request = RawRequest(
        fetch_bytes.NAME,
        fetch_bytes.API_KEY,
        version,
        [body],
        lambda frame: fetch_bytes.decode(frame, keys),
    )
    deadline = Deadline(cluster.patience.request_s)
    answer = connection.receive(connection.send_raw(request, deadline), deadline)
    codes.check(answer.code, None, f"reading {note.about}", cluster.where)
    (fetched,) = answer.fetched
    codes.check(fetched.code, None, f"reading {note.about}", cluster.where)
    return fetched
