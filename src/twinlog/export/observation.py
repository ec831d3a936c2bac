"""One look at a site for its metrics: brokers, topics, ends of partitions, groups and how far they are.

A look is made of parts, and one that fails does not take the others with it: what is not known is left out
of the page, and a metric says which part it was. Reads only. `Watch` bounds a look in time, so that a scrape
is answered also when a site hangs; looks that come together share one.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from dataclasses import dataclass, field, replace

from twinlog.errors import TwinlogError
from twinlog.ops import group_lag
from twinlog.wire import excerpts, groups, topics
from twinlog.wire.access import Access
from twinlog.wire.cluster import BrokerAddress, Cluster, Patience
from twinlog.wire.members import Membership
from twinlog.wire.offsets import End, TopicPartition
from twinlog.wire.topics import TopicState
from twinlog.wire.watermarks import watermarks

FRESH_S = 1.0  # scrapes that follow each other sooner get the same look
TOPICS, OFFSETS, GROUPS, LAGS = "topics", "offsets", "groups", "lag_seconds"
PARTS = (TOPICS, OFFSETS, GROUPS, LAGS)


@dataclass(frozen=True)
class Filters:
    """Which topics and groups are looked at: names that match the first and not the second."""

    topics: re.Pattern[str] = re.compile(".*")
    no_topics: re.Pattern[str] = re.compile("^$")
    groups: re.Pattern[str] = re.compile(".*")
    no_groups: re.Pattern[str] = re.compile("^$")

    def wants_topic(self, name: str) -> bool:
        """True if a topic is looked at."""
        return self.topics.search(name) is not None and self.no_topics.search(name) is None

    def wants_group(self, name: str) -> bool:
        """True if a group is looked at."""
        return self.groups.search(name) is not None and self.no_groups.search(name) is None


@dataclass(frozen=True)
class GroupSeen:
    """A group: how many members, where it stands, and how old the next unread record of a partition is.

    `assigned` are topics that its members were given, whether or not they committed anything.
    """

    name: str
    members: int
    committed: dict[TopicPartition, int]
    lag_s: dict[TopicPartition, float] = field(default_factory=dict)
    assigned: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Seen:
    """One look. `problems` has the parts that failed, each with its reason."""

    brokers: tuple[BrokerAddress, ...] = ()
    topics: tuple[TopicState, ...] = ()
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    groups: tuple[GroupSeen, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_up(self) -> bool:
        """True if the site answered at all."""
        return TOPICS not in self.problems


def look(cluster: Cluster, filters: Filters) -> Seen:
    """Look at a site now."""
    began_s = time.monotonic()
    problems: dict[str, str] = {}

    def part(name: str, ask: Callable[[], None]) -> None:
        if TOPICS in problems:  # nobody answers: asking on would only take time
            return
        try:
            ask()
        except TwinlogError as error:
            problems[name] = str(error)

    found = _Found()
    part(TOPICS, lambda: found.read_topics(cluster, filters))
    part(OFFSETS, lambda: found.read_offsets(cluster))
    part(GROUPS, lambda: found.read_groups(cluster, filters))
    part(LAGS, lambda: found.read_lags(cluster))
    return Seen(
        brokers=found.brokers,
        topics=found.topics,
        starts=found.starts,
        ends=found.ends,
        groups=tuple(found.groups),
        problems=problems,
        seconds=time.monotonic() - began_s,
    )


class _Found:
    """What a look has found so far."""

    def __init__(self) -> None:
        self.brokers: tuple[BrokerAddress, ...] = ()
        self.topics: tuple[TopicState, ...] = ()
        self.starts: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.groups: list[GroupSeen] = []

    def read_topics(self, cluster: Cluster, filters: Filters) -> None:
        """Who is there, and what."""
        cluster.forget()  # who is there may have changed since the last look
        self.topics = tuple(topic for topic in topics.describe(cluster) if filters.wants_topic(topic.name))
        self.brokers = cluster.brokers()

    def read_offsets(self, cluster: Cluster) -> None:
        """Where partitions begin and end."""
        led = {
            (topic.name, part.index): part.leader
            for topic in self.topics
            for part in topic.partitions
            if part.has_leader
        }
        cluster.believe(led)
        self.ends = _known(watermarks(cluster, led))
        self.starts = _known(watermarks(cluster, led, End.START))

    def read_groups(self, cluster: Cluster, filters: Filters) -> None:
        """Groups, their members and what they committed."""
        listed = [group for group in groups.list_groups(cluster) if filters.wants_group(group.name)]
        members = groups.describe(cluster, [group.name for group in listed if group.has_members])
        committed = group_lag.positions(cluster, listed)
        wanted = {topic.name for topic in self.topics}
        self.groups = [
            GroupSeen(
                group.name,
                len(members[group.name].members) if group.name in members else 0,
                {
                    place: offset
                    for place, offset in committed.get(group.name, {}).items()
                    if place[0] in wanted
                },
                assigned=_topics_of(members[group.name]) & wanted if group.name in members else frozenset(),
            )
            for group in listed
        ]

    def read_lags(self, cluster: Cluster) -> None:
        """How old what groups have not read is."""
        places = {(group.name, place): at for group in self.groups for place, at in group.committed.items()}
        unread = {place: at for place, at in places.items() if at < self.ends.get(place[1], 0)}
        written_ms = group_lag.in_rounds(unread, lambda asked: excerpts.times_ms(cluster, asked))
        now_ms = time.time_ns() // 1_000_000
        for number, group in enumerate(self.groups):
            lags = {
                place: max(0.0, (now_ms - written_ms[(group.name, place)]) / 1000)
                for place in group.committed
                if (group.name, place) in written_ms
            }
            read = {place: 0.0 for place in self._all_read(group)}
            self.groups[number] = replace(group, lag_s=read | lags)

    def _all_read(self, group: GroupSeen) -> Collection[TopicPartition]:
        return [
            place for place, at in group.committed.items() if place in self.ends and at >= self.ends[place]
        ]


def _topics_of(membership: Membership) -> frozenset[str]:
    return frozenset(topic for member in membership.members for topic, _ in member.assigned)


def _known(answers: dict[TopicPartition, int | TwinlogError]) -> dict[TopicPartition, int]:
    return {place: offset for place, offset in answers.items() if not isinstance(offset, TwinlogError)}


class Watch:
    """Looks at one site when asked, never longer than a scrape may take."""

    def __init__(self, access: Callable[[], Access], filters: Filters, timeout_s: float) -> None:
        self._access = access
        self._filters = filters
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._look: Future[Seen] | None = None
        self._looked_s = 0.0
        self._cluster: Cluster | None = None

    def seen(self) -> Seen:
        """A fresh look; one that is not done in time counts as a site that is down."""
        with self._lock:
            if self._look is None or (self._look.done() and time.monotonic() - self._looked_s > FRESH_S):
                self._look = Future()
                threading.Thread(target=self._run, args=(self._look,), daemon=True).start()
            under_way = self._look
        try:
            return under_way.result(self._timeout_s)
        except Late:
            return _down(f"no answer within {self._timeout_s:g} s", self._timeout_s)

    def _run(self, told: Future[Seen]) -> None:
        began_s = time.monotonic()
        try:
            if self._cluster is None:
                # Half of the time for one question: who asks twice in vain still answers in time.
                half_s = self._timeout_s / 2
                patience = Patience(connect_s=half_s, request_s=half_s, total_s=half_s)
                self._cluster = Cluster(self._access(), patience=patience, client_id="twinlog-exporter")
            seen = look(self._cluster, self._filters)
        except TwinlogError as error:  # the site was never brought up, say
            seen = _down(str(error), time.monotonic() - began_s)
        except BaseException as error:
            told.set_exception(error)
            raise
        if not seen.is_up and self._cluster is not None:
            with suppress(OSError):
                self._cluster.close()
            self._cluster = None  # addresses and certificates may be others when it is back
        self._looked_s = time.monotonic()
        told.set_result(seen)


def _down(reason: str, seconds: float) -> Seen:
    return Seen(problems={TOPICS: reason}, seconds=seconds)
