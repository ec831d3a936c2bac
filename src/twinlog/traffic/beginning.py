"""How a move begins: what must be so before anything is touched, or which unfinished move comes first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container

from twinlog.errors import SiteError, TwinlogError, UsageError
from twinlog.mirror import link
from twinlog.mirror.watch import LinkStatus, Watch
from twinlog.sites import readiness
from twinlog.traffic import electorate
from twinlog.traffic.ground import Ground
from twinlog.traffic.journal import Journal
from twinlog.traffic.moves import COMMANDS, Kind, Move
from twinlog.traffic.returning import why_not_cut
from twinlog.wire import transactions
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.offsets import TopicPartition

MOST_LAG_S = 30.0  # more, and draining would be a long outage
LOOK_AGAIN_S = 0.1
PATIENCE = Patience(connect_s=2.0, request_s=3.0, total_s=3.0)


def any_unfinished(ground: Ground) -> Move | None:
    """A move that somebody began and nobody has ended."""
    move = Journal(ground).ask()
    return None if move is None or move.is_done else move


def unfinished(ground: Ground, kind: Kind) -> Move | None:
    """The same, which must be one of the kind that is asked for, or give way to one."""
    move = any_unfinished(ground)
    if move is None or move.kind is kind:
        return move
    if kind is Kind.FAILOVER and move.kind is Kind.SWITCHOVER and (instead := _instead_of(ground, move)):
        return instead
    raise UsageError(f"there is a move to be ended first: {move}", hint=f"twinlog {COMMANDS[move.kind]}")


def _instead_of(ground: Ground, begun: Move) -> Move | None:
    """The failover in place of a switchover that has lost a site which it needs; None if it has not.

    Before the other site may be open the old one is needed, and the other one from then on.
    """
    ends = (begun.target, begun.source) if begun.is_open else (begun.source, begun.target)
    lost, left = ends
    if not _missing(ground, lost):
        return None
    if missing := _missing(ground, left):
        raise SiteError(
            f"site {left} is not fit to be active: {missing}; site {lost} does not take writes either",
            hint=f"twinlog up --site {left}",
        )
    term = max(electorate.next_term(ground.home), begun.term + 1)
    why = f"a person promoted it instead of the {begun}"
    return Move.begin(Kind.FAILOVER, begun.bus, ends, term, begun_at=time.time(), why=why)


def switchover(ground: Ground) -> Move:
    """A switchover to the standby, when both sites and the link are fit for it."""
    home = ground.home
    source, target = link.sides(home)
    for site in (source, target):
        if missing := _missing(ground, site):
            raise SiteError(
                f"site {site} is not fit for a switchover: {missing}", hint=f"twinlog status --site {site}"
            )
    with Watch(home) as watch:
        found = watch.look()
        if found.findings:
            raise SiteError(
                f"the link is not fit for a switchover: {'; '.join(found.findings)}",
                hint="twinlog link status",
            )
        if link.pause_flag(home).exists():
            raise SiteError(
                "the link is paused: the standby would never catch up", hint="twinlog link resume"
            )
        if lacking := still_lacks(found, watch.look, MOST_LAG_S):
            raise SiteError(
                f"the standby is more than {MOST_LAG_S:g} s behind, so long would clients wait: {lacking}",
                hint="twinlog link status",
            )
    if held := _held_back(ground, source, {(one.topic, one.partition) for one in found.partitions}):
        raise SiteError(
            f"transaction '{held.id}' is open for more than {MOST_LAG_S:g} s,"
            " and what was written behind it would be copied while clients wait",
            hint=f"twinlog transactions abort {held.id}",
        )
    term = electorate.next_term(home)
    return Move.begin(Kind.SWITCHOVER, home.bus.bus, (source, target), term, begun_at=time.time())


def still_lacks(
    first: LinkStatus,
    look: Callable[[], LinkStatus],
    most_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], object] | None = None,
) -> str:
    """What the standby still lacks, after so long, of all that it could have had at the first look.

    One look cannot tell since when something is missing, so the lag in seconds is measured: it is as long
    as the standby takes to come to where the active was. Empty as soon as it is there. What stands behind an
    open transaction nobody can copy, and the switchover ends those itself.
    """
    wanted = {
        (one.topic, one.partition): one.active_end if one.stable_end is None else one.stable_end
        for one in first.partitions
    }
    pause = wait if wait is not None else threading.Event().wait
    deadline, found = clock() + most_s, first
    while True:
        lacking = [
            one for one in found.partitions if one.standby_end < wanted.get((one.topic, one.partition), 0)
        ]
        if not lacking:
            return ""
        if clock() > deadline:
            one = lacking[0]
            end = wanted[one.topic, one.partition]
            return f"{one.topic}-{one.partition} is at {one.standby_end}, and the active was at {end}"
        pause(LOOK_AGAIN_S)
        found = look()


def _held_back(
    ground: Ground, site: str, mirrored: Container[TopicPartition]
) -> transactions.Described | None:
    """A transaction that has held back what is mirrored for longer than clients should wait for it."""
    cluster, latest_ms = ground.cluster(site), (time.time() - MOST_LAG_S) * 1000
    for one in transactions.unsettled(cluster):
        found = transactions.describe(cluster, one.id)
        is_old = found is not None and found.started_ms is not None and found.started_ms < latest_ms
        if found is not None and is_old and any(place in mirrored for place in found.partitions):
            return found
    return None


def failover(ground: Ground, why: str, *, force: bool = False) -> Move:
    """A failover to the standby, when it is fit to be active and the active is not."""
    home = ground.home
    source, target = link.sides(home)
    if missing := _missing(ground, target):
        raise SiteError(
            f"site {target} is not fit to be active: {missing}", hint=f"twinlog status --site {target}"
        )
    if not force and not _missing(ground, source):
        raise UsageError(
            f"site {source} is active and takes writes; to move clients without a loss, switch over",
            hint="twinlog switchover",
        )
    return decided_failover(ground, why, electorate.next_term(home))


def decided_failover(ground: Ground, why: str, term: int) -> Move:
    """A failover that somebody has decided who watches both sites and has asked the voters for a term.

    Asking and looking again would wait for those that are lost, and clients with it.
    """
    bus, ends = ground.home.bus.bus, link.sides(ground.home)
    return Move.begin(Kind.FAILOVER, bus, ends, term, begun_at=time.time(), why=why)


def returning(ground: Ground, *, yes: bool = False) -> Move:
    """The return of the site that the last move left behind; `yes` where topics are to be deleted."""
    home = ground.home
    lost = home.state().lost
    if not lost:
        raise UsageError("no site of this bus is lost", where=str(home.file), hint="twinlog status")
    last = Journal(ground).ask()
    if last is None or last.source not in lost:
        raise SiteError(
            f"nothing is written down about the loss of site {lost[0]}", hint="twinlog link rebuild TOPIC"
        )
    why_not = why_not_cut(ground, last.source)
    if why_not and not yes:
        raise UsageError(
            f"the logs of site {last.source} cannot be cut ({why_not}): topics with records of its own "
            "would be deleted there after salvage, and copied whole",
            hint="twinlog return --yes",
        )
    if not ground.is_ours(last.source):
        _must_answer(ground, last.source)
    ends = (last.source, last.target)
    return Move.begin(
        Kind.RETURN, home.bus.bus, ends, last.term, begun_at=time.time(), why=last.why, points=last.points
    )


def telling(ground: Ground) -> None:
    """No move: has sites hear of a switchover that was called off while they were away."""
    Journal(ground).repeat()


def _must_answer(ground: Ground, site: str) -> None:
    """A return that cannot begin would hold up every other move."""
    try:
        with Cluster(ground.home.admin_access(site), patience=PATIENCE) as cluster:
            cluster.brokers()
    except TwinlogError as error:
        raise SiteError(
            f"site {site} does not answer, and is not ours to start: {error}",
            hint=f"does it run? twinlog status --site {site}",
        ) from error


def _missing(ground: Ground, site: str) -> str:
    """What a site lacks to take writes on every broker; for one that is not ours, on those it has."""
    with Cluster(ground.home.admin_access(site), patience=PATIENCE) as cluster:
        if ground.is_ours(site):
            return readiness.what_is_missing(cluster, ground.home.layout(site))
        return readiness.write_canaries(cluster, len(cluster.brokers()))
