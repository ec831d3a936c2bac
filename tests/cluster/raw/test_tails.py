"""The start check on a live site: what the end of one log shows is compared with another one.

Both logs lie at one site. Topics go by their ids, so another topic's log can be read as the active's.
"""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.cluster.raw.talk import LINK_ID, a_batch, append, fill, topic_ids
from twinlog.mirror import tails
from twinlog.mirror.tails import Log, Tail, Verdict
from twinlog.wire import offsets, topics
from twinlog.wire.appending import Appender
from twinlog.wire.cluster import Cluster
from twinlog.wire.connection import Connection
from twinlog.wire.markers import Fill

pytestmark = pytest.mark.cluster


class Twins:
    """Two topics of which one is taken for the other's twin."""

    def __init__(self, cluster: Cluster, name: str, partitions: int) -> None:
        self.name = name
        self._cluster = cluster
        self._partitions = partitions
        self._names = (f"{name}-active", f"{name}-standby")
        for topic in self._names:
            topics.create(cluster, topics.NewTopic(topic, partitions, 1))
            offsets.log_ends(cluster, [(topic, number) for number in range(partitions)])
        cluster.believe(
            {(name, number): cluster.leader(self._names[0], number) for number in range(partitions)}
        )
        self._leader: Connection = cluster.broker(cluster.leader(self._names[0], 0))

    def write(self, active: bytes | None, standby: bytes | None, *partitions: int) -> None:
        """A record in each log, or in one; the same one if both are alike."""
        same = a_batch(0, active or b"", producer_id=-1)
        other = same if standby == active else a_batch(0, standby or b"", producer_id=-1)
        for topic, value, batch in zip(self._names, (active, standby), (same, other), strict=True):
            for number in partitions if value is not None else ():
                assert append(Appender(self._leader), topic, batch, number)[0] == "NONE"

    def mark(self, count: int, *partitions: int, standby: int | None = None) -> None:
        """Markers in both logs, at the standby maybe another number of them."""
        for topic, number in zip(self._names, (count, count if standby is None else standby), strict=True):
            if number:
                fill(self._leader, *(Fill(topic, one, number, LINK_ID, 0) for one in partitions))

    def check(self, *, compacted: bool = False) -> dict[int, Verdict]:
        """The verdict on each partition."""
        places = [(self._names[1], number) for number in range(self._partitions)]
        ends = offsets.log_ends(self._cluster, places)
        looked_at = [Tail((self.name, place[1]), 0, ends[place], compacted) for place in places]
        active, standby = (
            Log(self._cluster, {self.name: topic_ids(self._cluster, topic)[topic]}) for topic in self._names
        )
        found = tails.check(active, standby, looked_at)
        return {number: verdict for (_, number), verdict in found.items()}


def test_tails_that_show_the_same_agree_and_one_that_does_not_is_named(cluster: Cluster) -> None:
    twins = Twins(cluster, "tails", 3)
    twins.write(b"one", b"one", 0, 1)
    twins.write(b"two", b"other", 1)
    found = twins.check()
    assert (found[0], found[2]) == (Verdict(), Verdict())
    assert "at offset 1" in found[1].differs


def test_the_last_record_is_found_behind_many_markers(cluster: Cluster) -> None:
    twins = Twins(cluster, "marked", 3)
    twins.write(b"one", b"one", 0)
    twins.write(b"one", b"other", 1)
    twins.mark(200, 0, 1, 2)
    found = twins.check()
    assert (found[0], found[2]) == (Verdict(), Verdict())
    assert "at offset 0" in found[1].differs


def test_a_record_at_the_active_where_the_standby_was_filled_is_named(cluster: Cluster) -> None:
    twins = Twins(cluster, "filled", 1)
    twins.write(b"one", b"one", 0)
    twins.mark(40, 0, standby=100)
    twins.write(b"two", None, 0)
    twins.mark(60, 0, standby=0)
    assert "at offset 41 the standby lacks a record" in twins.check()[0].differs
    assert twins.check(compacted=True)[0] == Verdict()


def test_of_many_partitions_each_has_its_own_verdict(cluster: Cluster) -> None:
    count = 2 * tails.LOOKS[1].together + 5
    twins = Twins(cluster, "many", count)
    twins.write(b"one", b"one", *(number for number in range(count) if number % 50))
    twins.write(b"one", b"other", *range(0, count, 50))
    twins.mark(1, *range(count))
    found = twins.check()
    assert [number for number, verdict in found.items() if verdict.differs] == list(range(0, count, 50))
    assert not any(verdict.trouble for verdict in found.values())


def test_a_tail_that_cannot_be_read_is_a_trouble_and_no_difference(cluster: Cluster, topic: str) -> None:
    append(Appender(cluster.broker(cluster.leader(topic, 0))), topic, a_batch(0, b"one"))
    here, nowhere = Log(cluster, topic_ids(cluster, topic)), Log(cluster, {topic: uuid4()})
    tail = Tail((topic, 0), 0, 1, compacted=False)
    for active, standby in ((here, nowhere), (nowhere, here)):
        (verdict,) = tails.check(active, standby, [tail]).values()
        assert "UNKNOWN_TOPIC_ID" in verdict.trouble
        assert not verdict.differs
