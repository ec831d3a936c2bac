"""What stands twice at the standby after a mirror was killed in the middle of its work.

A steady stream of numbered records; half-way all processes of the mirror are killed and it is started
again. When the stream has ended and the standby stands still, its log is read: every number must be
there, and each one that is there more than once was repeated.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from bench import load
from bench.ground import ACTIVE, STANDBY, Ground, records_at, say, wait_for
from bench.peers import Peer
from twinlog.mirror import stretch
from twinlog.wire import offsets, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.contents import contents
from twinlog.wire.offsets import TopicPartition

PARTITIONS = 6
PER_SECOND = 1000.0
START_TIMEOUT_S = 420.0  # a killed worker of Connect is replaced after up to five minutes
QUIET_S = 10.0  # so long the standby's ends must not have moved

Numbers = dict[TopicPartition, dict[int, int]]  # offset → number


def measure(ground: Ground, both: Sequence[Peer], seconds: int) -> dict[str, Any]:
    """Both mirrors, by their names."""
    return {peer.name: _one(ground, peer, seconds) for peer in both}


def numbers_at(cluster: Cluster, partitions: Sequence[TopicPartition]) -> Numbers:
    """The numbers in all records, by offset."""
    ids = {
        topic.name: topic.id for topic in topics.describe(cluster, sorted({name for name, _ in partitions}))
    }
    starts, ends = offsets.start_offsets(cluster, partitions), offsets.end_offsets(cluster, partitions)
    return {
        place: {
            offset: load.number_in(contents(record.content).value or b"")
            for offset, record in stretch.records(cluster, ids, *place, starts[place], ends[place]).items()
        }
        for place in partitions
    }


def _one(ground: Ground, peer: Peer, seconds: int) -> dict[str, Any]:
    name = f"crash-{peer.name}"
    with ground.topics({name: {"partitions": PARTITIONS, "mirror": peer.mirrors}}) as partitions:
        peer.start([name])
        stream = load.Stream(ground, partitions, PER_SECOND, load.numbered)
        try:
            stream.start()
            with ground.cluster(STANDBY) as standby:
                arrived = partial(records_at, standby, partitions)
                wait_for("the first records", lambda: arrived() > 0, START_TIMEOUT_S)
                threading.Event().wait(seconds / 2)
                peer.kill()
                before = arrived()
                killed = time.monotonic()
                peer.start([name])
                wait_for("records after the crash", lambda: arrived() > before, START_TIMEOUT_S)
                back_after_s = time.monotonic() - killed
                threading.Event().wait(seconds / 2)
                total = stream.end()
                wait_for("the last records", lambda: arrived() >= total, START_TIMEOUT_S)
                wait_until_quiet(standby, partitions)
                there = numbers_at(standby, partitions)
        finally:
            stream.halt()
            peer.stop()
        with ground.cluster(ACTIVE) as active:
            here = numbers_at(active, partitions)
    counted = {place: Counter(numbers.values()) for place, numbers in there.items()}
    found = {
        "records": total,
        "repeated": sum(count - 1 for counts in counted.values() for count in counts.values()),
        "missing": total - sum(len(counts) for counts in counted.values()),
        "same_offsets": here == there,
        "back_after_s": back_after_s,
    }
    say(
        f"crash, {peer.name}: {found['repeated']} of {total} records repeated, {found['missing']} missing,"
        f" records again after {back_after_s:.1f} s"
    )
    return found


def wait_until_quiet(standby: Cluster, partitions: list[TopicPartition]) -> None:
    """Return when the standby's ends have not moved for a while."""
    seen_at, count = time.monotonic(), -1

    def is_quiet() -> bool:
        nonlocal seen_at, count
        now = records_at(standby, partitions)
        if now != count:
            seen_at, count = time.monotonic(), now
        return time.monotonic() - seen_at > QUIET_S

    wait_for("the standby stands still", is_quiet, START_TIMEOUT_S)
