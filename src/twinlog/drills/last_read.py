"""The last read of a drill: everything that both sites hold, and what is in salvage.

The runner calls it when the load has ended and all is healed. It reads as readers of committed records
do, straight from each partition's leader: no client's settings and no group stand between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping

from twinlog.drills.cast import USER, Names
from twinlog.drills.history import Extent, Final, Salvaged
from twinlog.drills.reach import tuning_of
from twinlog.mirror import stretch
from twinlog.sites.home import Home
from twinlog.traffic import stock
from twinlog.traffic.salvaged import salvage_topic
from twinlog.wire import offsets, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.contents import contents
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.receiver import Receiver
from twinlog.wire.recode import entries

LOOK_AGAIN_S = 0.2
MOST_AT_ONCE = 500
NO_MORE_S = 5.0  # so long nothing comes when all is read
STILL_S = 1.0  # so long both ends must be alike: what a client sent last may be on its way


def mirrored(home: Home) -> list[TopicPartition]:
    """The partitions that both sites should hold alike."""
    return [
        (name, number)
        for name, topic in home.bus.topics.items()
        if topic.mirror
        for number in range(topic.partitions)
    ]


def wait_until_equal(home: Home, timeout_s: float) -> str:
    """Wait until both logs end alike and stand still; returns what they lack, if they still do."""
    places, pause = mirrored(home), threading.Event()
    accesses = [home.admin_access(site) for site in home.bus.sites]
    end = time.monotonic() + timeout_s
    with Cluster(accesses[0]) as one, Cluster(accesses[1]) as other:
        stood, since = None, time.monotonic()
        while time.monotonic() < end:
            ends = offsets.log_ends(one, places), offsets.log_ends(other, places)
            if ends != stood or ends[0] != ends[1]:
                stood, since = ends, time.monotonic()
            elif time.monotonic() - since >= STILL_S:
                return ""
            pause.wait(LOOK_AGAIN_S)
    return f"the logs do not end alike after {timeout_s:g} s: {ends}"


def finals(home: Home, site: str, names: Names) -> Iterator[Extent | Final]:
    """From where to where each partition was read at a site, and every record that a reader finds there."""
    places = mirrored(home)
    with Cluster(home.admin_access(site)) as cluster:
        ids = {topic.name: topic.id for topic in topics.describe(cluster, sorted({one for one, _ in places}))}
        firsts = offsets.start_offsets(cluster, places)
        ends = offsets.last_stable_offsets(cluster, places)
        for topic, partition in places:
            place = (topic, partition)
            yield Extent(site, topic, partition, firsts[place], ends[place], time.time())
            if firsts[place] >= ends[place]:
                continue
            for batch in stretch.batches(cluster, ids, topic, partition, firsts[place], ends[place]):
                for entry in entries(batch):
                    value = names.value(contents(bytes(entry.rest)).value)
                    now_s = time.time()
                    yield Final(site, topic, partition, entry.offset, value, entry.timestamp_ms, now_s)


def readable(home: Home, site: str) -> int:
    """How many records a consumer finds at a site now.

    Without asking where partitions end: a leader whose followers are all gone cannot say so.
    """
    receiver = Receiver(
        home.user_access(USER, site), group=f"{USER}-looks", start="earliest", tuning=tuning_of(home)
    )
    count = 0
    try:
        receiver.assign(dict.fromkeys(mirrored(home), 0))
        while taken := receiver.take(MOST_AT_ONCE, NO_MORE_S):
            count += len(taken)
    finally:
        receiver.close()
    return count


def salvaged(home: Home, lost: Mapping[int, str], names: Names) -> Iterator[Salvaged]:
    """Every record in salvage, at whichever site; `lost` says which one each term left behind.

    Salvage stays at the site that was active when the lost one returned, also when roles have moved since.
    """
    declared = [name for name, topic in home.bus.topics.items() if topic.mirror]
    for site in home.bus.sites:
        with Cluster(home.admin_access(site)) as cluster:
            for name in declared:
                if not topics.describe(cluster, [salvage_topic(name)]):
                    continue
                for one, _ in stock.show(cluster, name):
                    place = (one.topic, one.partition, one.offset)
                    yield Salvaged(lost.get(one.term, ""), *place, names.value(one.value), time.time())
