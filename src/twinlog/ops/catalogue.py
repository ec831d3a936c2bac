"""Topics of a site as commands show them: who leads and holds them; `contents` has what is in them.

For the topic commands. Beside what Kafka says each topic has what the file says of it, because that
is what the next `apply` makes true. Reads only. `topic list` must be quick, so what is imported here is
what a list needs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from twinlog.errors import KafkaError
from twinlog.wire import codes, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.operations import Operation
from twinlog.wire.topics import TopicState

# How it is said of a user, and under which word the file has it.
_WORDS = {Operation.READ: ("read", "consume"), Operation.WRITE: ("write to", "produce")}


@dataclass(frozen=True)
class TopicRow:
    """One topic in a list."""

    topic: str
    partitions: int
    replication: int
    under_replicated: int
    without_leader: int
    internal: bool
    declared: bool


def rows(found: Sequence[TopicState], declared: Collection[str], *, internal: bool) -> list[TopicRow]:
    """A list of topics; Kafka's own and Twinlog's only where they are wanted."""
    return [
        TopicRow(
            topic.name,
            len(topic.partitions),
            topic.replication,
            sum(len(part.isr) < len(part.replicas) for part in topic.partitions),
            sum(not part.has_leader for part in topic.partitions),
            is_internal(topic),
            topic.name in declared,
        )
        for topic in found
        if internal or not is_internal(topic)
    ]


def is_internal(topic: TopicState) -> bool:
    """True for topics of Kafka and of Twinlog."""
    return topic.internal or topic.name.startswith("__")


def existing(cluster: Cluster, names: Sequence[str]) -> tuple[TopicState, ...]:
    """The named topics; raises for the first one that is not there, with a name that is like it."""
    found = topics.describe(cluster, names)
    there = {topic.name for topic in found}
    for name in names:
        if name not in there:
            raise missing(name, [topic.name for topic in topics.describe(cluster)], cluster.where)
    return found


def missing(name: str, there: Sequence[str], where: str) -> KafkaError:
    """The error for a topic that a site does not have."""
    near = get_close_matches(name, there, n=1)
    hint = f"did you mean {near[0]}?" if near else "twinlog topic list"
    code = codes.name_of(codes.UNKNOWN_TOPIC_OR_PARTITION)
    return KafkaError(f"there is no topic '{name}'", code=code, where=where, hint=hint)


def insist(topic: TopicState, operation: Operation, user: str, where: str) -> None:
    """Raise if a user certainly may not do something with a topic; before anything was sent."""
    if topic.allowed is not None and operation not in topic.allowed:
        verb, key = _WORDS[operation]
        raise KafkaError(
            f"user '{user}' may not {verb} topic '{topic.name}': TOPIC_AUTHORIZATION_FAILED",
            code="TOPIC_AUTHORIZATION_FAILED",
            where=where,
            hint=f"in the file, {user}: {{{key}: [{topic.name}]}}; then: twinlog apply",
        )


def places_of(found: Sequence[TopicState], partitions: Collection[int] = ()) -> list[tuple[str, int]]:
    """Every partition of topics, or the named ones."""
    return [
        (topic.name, part.index)
        for topic in found
        for part in topic.partitions
        if not partitions or part.index in partitions
    ]
