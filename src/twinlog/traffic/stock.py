"""The salvage topics of a site: made, read, listed and shown.

`salvage` fills them, `reapply` takes from them, and commands show what is in them. A salvage topic keeps
everything for ever and is for administrators only: its records may hold anything that the topic
they come from does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twinlog.errors import KafkaError, SiteError, UsageError
from twinlog.ops.plan import SALVAGE_SUFFIX
from twinlog.ops.rights import EVERYBODY
from twinlog.traffic.salvaged import Note, Salvaged, Word, decode, salvage_topic
from twinlog.traffic.shelf import Shelf
from twinlog.wire import acls, configs, topics
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.cluster import Cluster
from twinlog.wire.configs import Kind
from twinlog.wire.recode import entries

LIMIT = "max.message.bytes"
HEADERS_BYTES = 1 << 16  # what our headers add to a message, and more
LEAST_LIMIT_BYTES = 1 << 20  # room for a batch of small ones
KEEP_ALL = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
_OTHERS_FIRST = "TOPIC_ALREADY_EXISTS"
_NO_RULES = "SECURITY_DISABLED"


@dataclass
class Stock:
    """What was salvaged of one topic in one term."""

    topic: str
    term: int
    records: int = 0
    open: int = 0
    applied: int = 0
    bytes: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None

    def count(self, one: Salvaged, is_applied: bool) -> None:
        """Take a record in."""
        self.records += 1
        self.open += one.is_open
        self.applied += is_applied
        self.bytes += len(one.rest)
        times = [time for time in (self.oldest_ms, self.newest_ms, one.timestamp_ms) if time is not None]
        self.oldest_ms, self.newest_ms = min(times), max(times)


def ensure_topic(cluster: Cluster, topic: str, partitions: int, *, deny_others: bool) -> None:
    """Have the salvage topic of a topic, kept from everybody but super users."""
    name = salvage_topic(topic)
    if deny_others:
        _deny(cluster, name)
    found = topics.describe(cluster, [name])
    if found and len(found[0].partitions) < partitions:
        topics.add_partitions(cluster, name, partitions)
    if found:
        return
    limit = configs.describe(cluster, Kind.TOPIC, topic, [LIMIT])[LIMIT].value
    settings = {**KEEP_ALL, LIMIT: str(max(LEAST_LIMIT_BYTES, int(limit or 0) + HEADERS_BYTES))}
    copies = min(3, len(cluster.brokers()))
    try:
        topics.create(cluster, topics.NewTopic(name, partitions, copies, configs=settings))
    except KafkaError as error:
        if error.code != _OTHERS_FIRST:
            raise


def _deny(cluster: Cluster, name: str) -> None:
    rule = Acl(Resource.TOPIC, name, EVERYBODY, Operation.ALL, allow=False)
    try:
        acls.add(cluster, [rule])
        acls.wait_until_everywhere(cluster, present=[rule])
    except KafkaError as error:
        if error.code != _NO_RULES:  # else there is nobody who could be kept out
            raise


def read(shelf: Shelf, name: str, where: str) -> Iterator[Salvaged | Note]:
    """Everything in a partition of a salvage topic."""
    for batch in shelf.read():
        for entry in entries(batch) if not batch.header.is_control else ():
            found = decode(bytes(entry.rest), entry.offset)
            if found is None:
                raise SiteError(
                    f"topic '{name}' has records that are no salvage",
                    where=where,
                    hint="whose are they? salvage needs that name: move them to another topic",
                )
            yield found


def partitions_of(cluster: Cluster, topic: str) -> int:
    """How many partitions the salvage topic of a topic has; an error if nothing was ever salvaged."""
    found = topics.describe(cluster, [salvage_topic(topic)])
    if not found:
        raise UsageError(
            f"nothing of topic '{topic}' was salvaged", where=cluster.where, hint="twinlog salvage list"
        )
    return len(found[0].partitions)


def show(cluster: Cluster, topic: str, partition: int | None = None) -> Iterator[tuple[Salvaged, bool]]:
    """The salvaged records of a topic, each with whether it was applied."""
    name = salvage_topic(topic)
    for number in range(partitions_of(cluster, topic)):
        if partition is not None and number != partition:
            continue
        shelf = Shelf(cluster, (name, number))
        applied = applied_places(read(shelf, name, cluster.where))
        for one in read(shelf, name, cluster.where):
            if isinstance(one, Salvaged):
                yield one, one.place in applied


def applied_places(found: Iterator[Salvaged | Note]) -> frozenset[int]:
    """The offsets, in a salvage topic, of the records that were applied."""
    return frozenset(
        place for one in found if isinstance(one, Note) and one.word is Word.APPLIED for place in one.places
    )


def list_salvage(cluster: Cluster) -> list[Stock]:
    """What is in salvage at a site, by topic and term."""
    stocks: dict[tuple[str, int], Stock] = {}
    for topic in topics.describe(cluster):
        if not topic.name.endswith(SALVAGE_SUFFIX):
            continue
        for one, is_applied in show(cluster, topic.name.removesuffix(SALVAGE_SUFFIX)):
            stock = stocks.setdefault((one.topic, one.term), Stock(one.topic, one.term))
            stock.count(one, is_applied)
    return [stocks[key] for key in sorted(stocks)]
