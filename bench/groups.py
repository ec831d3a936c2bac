"""How far the offsets of consumer groups at the standby are from where the groups are at the active.

Groups commit at several distances from the end of a topic that is mirrored. When their offsets have
come to rest at the standby, the record at which a group would go on there is compared with the one at
which it would go on at the active: the difference, counted in records, is the error. A group without
an offset would begin at the beginning, so its error is all that it had read.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from bench import load
from bench.crash import START_TIMEOUT_S, Numbers, numbers_at, wait_until_quiet
from bench.ground import ACTIVE, STANDBY, Ground, records_at, say, wait_for
from bench.peers import LOOK_AT_GROUPS_S, Peer
from twinlog.wire import codes
from twinlog.wire import groups as wire_groups
from twinlog.wire.groups import Committed
from twinlog.wire.offsets import TopicPartition

PARTITIONS = 2
RECORDS = 40_000
BEHIND = (0, 1, 50, 500, 5000, 15_000)  # records between a group and the end of each partition
REST_S = LOOK_AT_GROUPS_S * 6


def measure(ground: Ground, both: Sequence[Peer]) -> dict[str, Any]:
    """Both mirrors, by their names."""
    return {peer.name: _one(ground, peer) for peer in both}


def errors(
    here: dict[TopicPartition, int], there: dict[TopicPartition, int], numbers: Numbers
) -> dict[TopicPartition, int]:
    """By how many records a group at the standby is off, in each partition."""
    found = {}
    for place, position in here.items():
        goes_on = there.get(place, 0)
        known = numbers[place]
        # Behind the last record a group waits for the next number.
        number = known.get(goes_on, max(known.values(), default=-1) + 1)
        found[place] = abs(position - number)
    return found


def _one(ground: Ground, peer: Peer) -> dict[str, Any]:
    name = f"groups-{peer.name}"
    with ground.topics({name: {"partitions": PARTITIONS, "mirror": peer.mirrors}}) as partitions:
        wanted = {
            f"{peer.name}-{behind}": {place: RECORDS // PARTITIONS - behind for place in partitions}
            for behind in BEHIND
        }
        peer.start([name])
        try:
            _write(ground, partitions)
            with ground.cluster(STANDBY) as standby, ground.cluster(ACTIVE) as active:
                wait_for("all records", lambda: records_at(standby, partitions) >= RECORDS, START_TIMEOUT_S)
                commits = {
                    group: {place: Committed(offset) for place, offset in found.items()}
                    for group, found in wanted.items()
                }
                for told in wire_groups.commit(active, commits).values():
                    for code in told.values():
                        codes.check(code, None, "committing offsets", active.where)
                wait_until_quiet(standby, partitions)
                threading.Event().wait(REST_S)
                found = wire_groups.committed(standby, wanted)
                numbers = numbers_at(standby, partitions)
        finally:
            peer.stop()
    off = {
        group: errors(here, {place: one.offset for place, one in found.get(group, {}).items()}, numbers)
        for group, here in wanted.items()
    }
    by_behind = {str(behind): max(off[f"{peer.name}-{behind}"].values()) for behind in BEHIND}
    worst = max(by_behind.values())
    say(f"groups, {peer.name}: at most {worst} records off ({by_behind} by records behind the end)")
    return {
        "offset_error": worst,
        "by_records_behind": by_behind,
        "without_offset": sum(1 for group in wanted if not found.get(group)),
    }


def _write(ground: Ground, partitions: Sequence[TopicPartition]) -> None:
    writer = load.producer(ground)
    for number in range(RECORDS // PARTITIONS):
        for topic, partition in partitions:
            writer.produce(topic, load.numbered(number), partition=partition)
        writer.poll(0)
    writer.flush(START_TIMEOUT_S)
