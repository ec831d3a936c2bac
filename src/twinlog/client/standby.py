"""The standby as a client asks it: how far its copies have come, and whether it still is the standby.

A Producer's watch and a Consumer with read="twin" each have one. May be used by several threads; one
asks at a time. What it said that it was is remembered with the time, because a write must know the
term before it is sent; so are the ends of its copies. A standby that has not been heard for a while
is asked again first, and one that did not answer a moment ago is not asked for every write.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from twinlog.errors import SiteError, TwinlogError
from twinlog.spec.model import Role
from twinlog.wire import topics
from twinlog.wire.access import Access
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.deadlines import Clock
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.roles import Reader, Standing
from twinlog.wire.watermarks import Answers, watermarks

# Short: whoever asks comes back, and a write has a deadline of its own.
PATIENCE = Patience(connect_s=2.0, request_s=2.0, total_s=2.0)
FRESH_S = 5.0
ASK_AGAIN_S = 1.0
_ITSELF = ""  # among topics: the site


class Standby:
    """One site, seen from outside."""

    def __init__(self, access: Access, *, clock: Clock = time.monotonic) -> None:
        self._cluster = Cluster(access, patience=PATIENCE, client_id="twinlog-client")
        self._role = Reader(self._cluster)
        self._clock = clock
        self._lock = threading.Lock()
        self._last: Standing | None = None
        self._heard_at = -FRESH_S
        self._topics: set[str] = set()
        self._ends: Mapping[TopicPartition, int] = {}
        self._failures: dict[str, tuple[TwinlogError, float]] = {}

    def watermarks(self, places: Iterable[TopicPartition]) -> Answers:
        """The high watermark of each partition, or why it is not known."""
        with self._lock, self._noticing():
            return self._look(places)

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """The watermarks that were seen last; a mapping that does not change any more."""
        return self._ends

    def standing(self) -> Standing | None:
        """What the site says that it is, asked now."""
        with self._lock, self._noticing():
            return self._ask()

    def admit(self, topic: str) -> Standing:
        """What the site said lately that it is: the standby, with this topic; raises if it is not."""
        last = self._lately()
        if last is not None and topic in self._topics:
            return last
        with self._lock:
            with self._remembering(_ITSELF):
                found = self._lately() or self._check(self._ask())
            with self._remembering(topic):
                self._find(topic)
            return found

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            self._cluster.close()

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """After a question that nobody answered, the next write asks first."""
        try:
            yield
        except TwinlogError:
            self._last = None
            raise

    @contextmanager
    def _remembering(self, subject: str) -> Iterator[None]:
        """What failed a moment ago fails again without a question."""
        error, at = self._failures.get(subject, (None, 0.0))
        if error is not None and self._clock() - at < ASK_AGAIN_S:
            raise error
        try:
            yield
        except TwinlogError as failure:
            self._failures[subject] = (failure, self._clock())
            raise
        self._failures.pop(subject, None)

    def _lately(self) -> Standing | None:
        """What the site was when it was heard last, if that is not long ago and it was the standby."""
        last = self._last
        is_fresh = self._clock() - self._heard_at < FRESH_S
        return last if last is not None and is_fresh and last.role is Role.STANDBY else None

    def _ask(self) -> Standing | None:
        asked_at = self._clock()
        self._last = self._role.read()
        self._heard_at = asked_at
        return self._last

    def _look(self, places: Iterable[TopicPartition]) -> Answers:
        answers = watermarks(self._cluster, places)
        news = {place: end for place, end in answers.items() if isinstance(end, int)}
        self._ends = {**self._ends, **news}
        return answers

    def _find(self, topic: str) -> None:
        """Have the ends of a topic's partitions; raises if it is not there, or does not tell them all."""
        if topic in self._topics:
            return
        for state in topics.describe(self._cluster, [topic]):
            places = [(topic, partition.index) for partition in state.partitions]
            for answer in self._look(places).values():
                if isinstance(answer, TwinlogError):
                    raise answer
            self._topics.add(topic)
            return
        raise SiteError(
            f"the standby has no topic '{topic}'",
            where=self._cluster.where,
            hint="is it mirrored? twinlog link status",
        )

    def _check(self, found: Standing | None) -> Standing:
        if found is None:
            raise SiteError(
                "the site does not say what it is to its bus",
                where=self._cluster.where,
                hint="was the file applied there? twinlog apply",
            )
        if found.role is not Role.STANDBY:
            raise SiteError(
                f"site {found.site} is the {found}, not the standby",
                where=self._cluster.where,
                hint="have the sites changed roles? open a new client",
            )
        return found
