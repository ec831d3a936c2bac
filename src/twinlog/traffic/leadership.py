"""Who leads at a site whose role changes: the epochs where it is about to open, the leaders after its start.

A consumer remembers under which leader epoch its last record was written and, when it finds another leader,
asks that one where the epoch ended (KIP-320). Epochs count elections, and each site counts its own: one that
is behind does not know the epoch, and the consumer begins by `auto.offset.reset`; one that passed it
earlier in its log sends the consumer back to there. So a switchover has its last step before the opening
raise the other site's epochs, by elections at the ends that are final: whatever epoch a consumer brings,
it ended there where the logs do. They are raised so far that the old site, which is started again next,
does not catch up; else the way back would lead consumers back in the log. A failover does the same by what
was noted of the lost site (`epochs`), and for one more reason: a site that was shut down in order tells
clients under a higher epoch that nobody leads, and librdkafka pays no heed to leaders of a lower one.

An election needs a second replica in sync, and one that has all that the leader has: who is elected cuts
off what it lacks. A partition without such a one keeps its epoch.

After a start the broker that was there first leads nearly all partitions, until Kafka looks again, which it
does every five minutes. The link has most to copy just then, so `spread` has leaders elected at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice

from twinlog.errors import TwinlogError
from twinlog.traffic import epochs, replicated
from twinlog.traffic.epochs import Epochs
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import Move
from twinlog.wire import elections, reassignments, topics
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.deadlines import Deadline
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.topics import Partition

RAISE_S = 3.0  # clients wait meanwhile, and an epoch that is too low costs them less than a longer wait
# So that each question ends in that time too.
PATIENCE = Patience(connect_s=1.0, request_s=RAISE_S, total_s=RAISE_S)
MOST_ELECTIONS = 100  # of a partition: more than there is time for
HEARD_S = 0.5
IN_SYNC_S = 3.0  # so long the brokers of a site that was started may take; who is late is not elected
LOOK_AGAIN_S = 0.1

Order = tuple[int, ...]  # of a partition's replicas; the first is preferred as leader


def ballots(partition: Partition, epoch: int) -> list[Order]:
    """The orders in which replicas are to stand, with an election after each, until an epoch is reached.

    Two replicas in sync lead in turn, the one that stood first in the end; where there is only one, none are.
    """
    missing = min(epoch - partition.leader_epoch, MOST_ELECTIONS)
    able = [one for one in partition.replicas if one in partition.isr]
    if missing <= 0 or len(able) < 2:
        return []
    backwards = list(islice(cycle(able[:2]), missing))
    if backwards[-1] == partition.leader:  # it leads already, and would win nothing
        backwards.append(able[missing % 2])
    return [_led_by(one, partition.replicas) for one in reversed(backwards)]


def in_round(
    due: Mapping[TopicPartition, Sequence[Order]], number: int, *, is_last: bool
) -> dict[TopicPartition, Order]:
    """The orders of one round; in one that is the last for want of time, each partition's own last."""
    return {place: turns[-1 if is_last else number] for place, turns in due.items() if number < len(turns)}


def _led_by(first: int, replicas: Order) -> Order:
    return (first, *(one for one in replicas if one != first))


def raise_epochs(ground: Ground, move: Move) -> Move:
    """Have the other site's partitions count on above the old site's; what cannot be raised is told."""
    source = ground.cluster(move.source)
    names = sorted({topic for topic, _ in ground.mirrored(source)})

    def wanted(_: Cluster) -> Epochs:
        return epochs.reached(topics.describe(source, names), epochs.after_restart)

    return _raise_to(ground, move, wanted)


def raise_noted(ground: Ground, move: Move) -> Move:
    """The same where the old site is lost: by what was noted of it while it was there."""

    def wanted(target: Cluster) -> Epochs:
        noted = epochs.read(target)
        if problem := epochs.problem(noted, move.source, ground.home.state().term, time.time()):
            ground.progress.note(f"consumers may read records again: {problem}")
        return noted.epochs if noted is not None and noted.site == move.source else {}

    return _raise_to(ground, move, wanted)


def _raise_to(ground: Ground, move: Move, wanted_of: Callable[[Cluster], Epochs]) -> Move:
    try:
        with Cluster(ground.home.admin_access(move.target), patience=PATIENCE) as target:
            wanted = wanted_of(target)
            _raise(target, wanted)
            behind = _behind(target, wanted)
    except TwinlogError as error:
        # No reason to leave clients where they are: they go on, some of them with records that they had.
        ground.progress.note(f"the leader epochs of site {move.target} were not raised: {error}")
        return move
    finally:
        ground.cluster(move.target).forget()  # it takes others for leaders
    if behind:
        (topic, partition), first = next(iter(behind.items()))
        able = len(first.isr)
        ground.progress.note(
            f"consumers may read records of {len(behind)} partitions again: the leader epoch of"
            f" {topic}-{partition} could not be raised in {RAISE_S:g} s, with {able} replicas in sync"
        )
    return move


def _partitions(cluster: Cluster, names: Sequence[str]) -> dict[TopicPartition, Partition]:
    found = topics.describe(cluster, names)
    return {(topic.name, one.index): one for topic in found for one in topic.partitions}


def _behind(cluster: Cluster, wanted: Epochs) -> dict[TopicPartition, Partition]:
    """The partitions whose epochs are too low; brokers hear of elections a little after they were held."""
    pause, deadline, names = threading.Event(), Deadline(HEARD_S), _names(wanted)
    while True:
        now = _partitions(cluster, names)
        behind = {place: one for place, one in now.items() if one.leader_epoch < wanted.get(place, 0)}
        if deadline.passed or all(len(one.isr) < 2 for one in behind.values()):
            return behind
        pause.wait(LOOK_AGAIN_S / 2)


def _names(wanted: Epochs) -> list[str]:
    return sorted({topic for topic, _ in wanted})


def _raise(cluster: Cluster, wanted: Epochs) -> None:
    """Hold the elections, all partitions side by side; who is being moved to other brokers is left alone."""
    moving = reassignments.under_way(cluster)
    due = {
        place: turns
        for place, one in _partitions(cluster, _names(wanted)).items()
        if place in wanted and place not in moving and (turns := ballots(one, wanted[place]))
    }
    for place in replicated.late(cluster, due):
        del due[place]
    deadline = Deadline(RAISE_S)
    for number in range(max(map(len, due.values()), default=0)):
        is_last = deadline.passed
        orders = in_round(due, number, is_last=is_last)
        reassignments.begin(cluster, orders)
        elections.elect_preferred(cluster, orders)
        if is_last:
            break


def spread(ground: Ground, site: str) -> None:
    """Have the partitions of a site that was started led by the replicas that stand first, if in sync."""
    cluster = ground.cluster(site)
    pause, deadline = threading.Event(), Deadline(IN_SYNC_S)
    try:
        names = sorted({topic for topic, _ in ground.mirrored(cluster)})
        while (late := _led_by_others(cluster, names)) and not deadline.passed:
            able = [place for place, one in late.items() if one.replicas[0] in one.isr]
            elections.elect_preferred(cluster, able)
            pause.wait(LOOK_AGAIN_S)
    except TwinlogError as error:
        ground.progress.note(f"the leaders of site {site} stay as they are for now: {error}")


def _led_by_others(cluster: Cluster, names: Sequence[str]) -> dict[TopicPartition, Partition]:
    found = _partitions(cluster, names)
    return {place: one for place, one in found.items() if one.leader != one.replicas[0]}
