"""The steps of a planned switchover: nothing is lost, nothing is written twice.

Clients are fenced out of the old site for all levels of acks, and lose their rights there, before its
ends are taken for final; the standby catches up over LINK, which the fence leaves open; only then is
the other site opened. The fenced brokers are stopped meanwhile so that waiting clients leave at once, and
come back as the standby's.
"""

from __future__ import annotations

import signal
import time
from dataclasses import replace

from twinlog.errors import SiteError
from twinlog.mirror import link, rights
from twinlog.mirror.groups import GroupCopier, Turn, is_copied
from twinlog.ops import apply
from twinlog.ops.rights import rights as rights_in
from twinlog.sites import fencing, holds, local, processes
from twinlog.sites.layout import Node
from twinlog.spec.model import Bus, Role
from twinlog.traffic import electorate, leadership, newcomers
from twinlog.traffic.ground import Ground, wait
from twinlog.traffic.moves import Move
from twinlog.wire import acls, departures, offsets, transactions
from twinlog.wire.cluster import Cluster
from twinlog.wire.offsets import TopicPartition

FENCE_TIMEOUT_S = 15.0
TRANSACTIONS_TIMEOUT_S = 30.0
DRAIN_TIMEOUT_S = 60.0
STILL_S = 0.2  # so long ends must stand still: what a broker had read before the fence it still appends
LEAVE_TIMEOUT_S = 5.0  # for brokers to end in order; nobody is connected to them any more
OFFSETS_TURNS = 5
LEASE_ROUNDS = 5  # of the time that voters keep the lease for the other site


def fence(ground: Ground, move: Move) -> Move:
    """Close every client connection of the old site and let no new one in."""
    site = move.source
    cluster = ground.cluster(site)
    # Before the fence, so that clients do not wait for it; of who carries the move on, the first saw most.
    move = replace(move, members=newcomers.most(move.members, newcomers.members(cluster)))
    if not ground.is_ours(site):
        if why_not := fencing.harm_at(cluster):
            ground.progress.note(f"site {site} is not fenced, its users lose their right to write: {why_not}")
        else:
            fencing.fence(cluster)
        return move
    _held(ground, move)  # one that dies now must not come back while the fence is the brokers' own memory
    layout = ground.home.layout(site)
    running = fencing.brokers(layout)
    # Taken for the second time, the fence stands already: whoever is there now has come since.
    stands = fencing.is_fenced(cluster)
    before = frozenset() if stands else fencing.clients(layout, running)

    def served() -> str:
        left = fencing.still_served(fencing.clients(layout, running), before)
        return f"{left} clients are served" if left else ""

    with fencing.stirred(layout):
        fencing.fence(cluster, () if stands else fencing.thin(cluster, layout, running))
        wait(
            served,
            FENCE_TIMEOUT_S,
            f"fencing site {site}",
            f"twinlog status --site {site}",
        )
    return move


def revoke(ground: Ground, move: Move) -> Move:
    """Take from users what only an active site lets them do; every broker of the old site knows it then."""
    gone = of_an_active(ground.home.bus)
    cluster = ground.cluster(move.source)
    acls.remove(cluster, gone)
    acls.wait_until_everywhere(cluster, absent=gone)
    return move


def of_an_active(bus: Bus) -> frozenset[acls.Acl]:
    """The rights that users have at an active site alone."""
    return rights_in(bus, Role.ACTIVE) - rights_in(bus, Role.STANDBY)


def end_transactions(ground: Ground, move: Move) -> Move:
    """Abort what fenced clients had open: the mirror copies nothing behind an open transaction."""
    cluster = ground.cluster(move.source)
    for one in transactions.unsettled(cluster):
        if one.state == transactions.ONGOING:
            transactions.abort(cluster, one)
    wait(
        lambda: _unsettled(cluster),
        TRANSACTIONS_TIMEOUT_S,
        f"ending the transactions at site {move.source}",
        "twinlog link status",
    )
    return move


def _unsettled(cluster: Cluster) -> str:
    left = transactions.unsettled(cluster)
    return f"'{left[0].id}' is {left[0].state}" if left else ""


def drain(ground: Ground, move: Move) -> Move:
    """Wait until the standby's logs end where the old site's do, and those stand still."""
    source, target = ground.cluster(move.source), ground.cluster(move.target)
    partitions = ground.mirrored(source)
    stood: dict[TopicPartition, int] = {}
    since = 0.0

    def missing() -> str:
        nonlocal stood, since
        ends = offsets.log_ends(source, partitions)
        if ends != stood:
            stood, since = ends, time.monotonic()
        behind = _behind(ends, offsets.log_ends(target, partitions))
        # And so do all replicas there: any of them may lead before clients write.
        behind = behind or _behind(ends, offsets.end_offsets(target, partitions))
        if behind:
            return behind
        return "" if time.monotonic() - since >= STILL_S else "the old site has only just gone quiet"

    wait(missing, DRAIN_TIMEOUT_S, "waiting for the standby", "twinlog link status")
    # Nobody writes at either site before the other one opens; for the return of an old site that is lost.
    return replace(move, points=as_points(stood))


def as_points(ends: dict[TopicPartition, int]) -> dict[str, dict[int, int]]:
    """Where partitions end, by topic, as a move is written down."""
    points: dict[str, dict[int, int]] = {}
    for (topic, partition), end in ends.items():
        points.setdefault(topic, {})[partition] = end
    return points


def _behind(ends: dict[TopicPartition, int], copies: dict[TopicPartition, int]) -> str:
    for (topic, partition), end in ends.items():
        if copies[topic, partition] != end:
            return f"{topic}-{partition} is at {copies[topic, partition]} of {end}"
    return ""


def hold_link(ground: Ground, move: Move) -> Move:
    """Nobody mirrors any more: no holder of the link can write at the site that is about to open."""
    link.hold(ground.home, str(move))
    cluster = ground.cluster(move.target)
    rights.claim(cluster, time.time_ns() // 1000)
    return move


def copy_offsets(ground: Ground, move: Move) -> Move:
    """Copy what groups have committed: they go on where they were. The mirror sets nothing any more."""
    source, target = ground.cluster(move.source), ground.cluster(move.target)
    copier = GroupCopier(source, target, ground.home.bus.link.groups)
    partitions = ground.mirrored(target)
    turn = _copied(copier, partitions)
    if turn.occupied and ground.is_ours(move.target):
        # No client may be in them here: a mirror that died while it made such a group has left a member.
        departures.expel(target, frozenset(turn.occupied).__contains__)
        turn = _copied(copier, partitions)
        if turn.occupied:
            raise SiteError(
                f"group '{turn.occupied[0]}' has members at site {move.target}, and takes no offsets",
                hint="who reads there in a group that is copied?",
            )
    if turn.refused:
        name, why = next(iter(turn.refused.items()))
        raise SiteError(f"the offsets of group '{name}' cannot be copied: {why}", hint="twinlog link status")
    if turn.waiting:
        raise SiteError(f"{turn.waiting} offsets are past the standby's log", hint="twinlog link verify")
    if turn.occupied:
        ground.progress.note(f"groups with members at {move.target} keep theirs: {', '.join(turn.occupied)}")
    return move


def _copied(copier: GroupCopier, partitions: list[TopicPartition]) -> Turn:
    """What is left when turns bring nothing new."""
    for _ in range(OFFSETS_TURNS):
        turn = copier.turn(partitions)
        if not (turn.copied or turn.primed or turn.refused):
            break
    return turn


def wait_for_lease(ground: Ground, move: Move) -> Move:
    """Wait until two voters have given the other site the lease of its term, where leases are used."""
    home = ground.home
    if not electorate.is_used(home):
        return move
    timing = electorate.timing(home)
    wait(
        lambda: electorate.lacks_lease(home, move.target, move.term),
        LEASE_ROUNDS * timing.wait_s,
        f"waiting for the lease of site {move.target}",
        "twinlog traffic status",
    )
    return move


def change_sites(ground: Ground, move: Move) -> Move:
    """Open the other site while the brokers of the old one end: nobody needs them any more.

    Clients wait at their ports until they have ended, and that takes as long as the opening.
    """
    if ground.is_ours(move.source):
        processes.end(list(processes.find(_held(ground, move)).values()), signal.SIGTERM)
    return open_target(ground, move)


def _held(ground: Ground, move: Move) -> tuple[Node, ...]:
    """The old site's brokers, which nobody else starts again."""
    nodes = ground.brokers(move.source)
    for node in nodes:
        holds.hold(node, f"{move.kind} to {move.target}")
    return nodes


def open_target(ground: Ground, move: Move) -> Move:
    """Give the other site the active's settings, say so in its role record, then let clients write."""
    home = ground.home
    state = home.state()
    state.active, state.term = move.target, move.term
    home.state_file.write(state)
    apply.settle(home, [move.target], ground.progress, yes=False)
    return move


def stop_brokers(ground: Ground, move: Move) -> Move:
    """End the old site's brokers: clients that wait there look for another address at once."""
    if ground.is_ours(move.source):
        local.stop(_held(ground, move), ground.progress, timeout_s=LEAVE_TIMEOUT_S)
    else:
        ground.progress.note(f"site {move.source} is not ours to stop: its clients stay until they are ended")
    return move


def start_brokers(ground: Ground, move: Move) -> Move:
    """Start the old site's brokers again, on their own disks."""
    if ground.is_ours(move.source):
        local.up(ground.home, [move.source], ground.progress)
    return move


def settle_source(ground: Ground, move: Move) -> Move:
    """Give the old site the standby's settings, say so in its role record, and empty its groups."""
    apply.settle(ground.home, [move.source], ground.progress, yes=False)
    if ground.is_ours(move.source):
        leadership.spread(ground, move.source)
        # Their members are moving to the other site; while they are remembered no offsets can be copied.
        departures.expel(ground.cluster(move.source), is_copied)
    return move


def release(ground: Ground, move: Move) -> Move:
    """Let clients into the old site again: they may read there and write nothing that is mirrored.

    A member of a group that still waits at its ports would take it for the bus and stay, refused for good;
    so the groups are waited for at the other site. Who never comes keeps the others waiting for a while only.
    """
    if ground.is_ours(move.source):
        newcomers.wait_for(ground, move)
    let_in(ground, move.source)
    return move


def let_in(ground: Ground, site: str) -> None:
    """End a fence: on our brokers whatever is left of it, on those of others the fence alone."""
    (fencing.release if ground.is_ours(site) else fencing.lift)(ground.cluster(site))


def turn_link(ground: Ground, move: Move) -> Move:
    """Let the mirror begin, from the active to the other site."""
    link.release(ground.home)
    link.background(ground.home).launch()
    return move


def call_off(ground: Ground, move: Move) -> Move:
    """Undo a switchover that has not opened the other site: clients go on where they were.

    Nothing here needs the other site, which may be what was lost.
    """
    apply.settle(ground.home, [move.source], ground.progress, yes=False)
    cluster = ground.cluster(move.source)
    fencing.release(cluster)
    if ground.is_ours(move.source):
        for node in ground.brokers(move.source):
            holds.release(node)
    link.release(ground.home)
    return move
