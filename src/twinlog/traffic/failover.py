"""The steps of a failover: the active is lost, and the standby takes over with what it has.

What is left of the lost site is ended first, by force, and held; then the link loses its right to write,
so that each partition ends for good where it ends; those points are written down, because what the lost
site has beyond them is salvaged when it returns. The promoted site forgets the lost one's producers: it
may lack their last batches, and would refuse whatever comes next from them.
"""

from __future__ import annotations

import signal
from dataclasses import replace

from twinlog.errors import SiteError, TwinlogError
from twinlog.mirror import link
from twinlog.sites import fencing, holds, local, processes
from twinlog.traffic import forgetting, promotions, replicated, switchover
from twinlog.traffic.ground import BRIEFLY, Ground
from twinlog.traffic.moves import STEPS, Move, Step
from twinlog.wire import acls, offsets
from twinlog.wire.addresses import HostPort
from twinlog.wire.cluster import Cluster
from twinlog.wire.listening import listens


def fence(ground: Ground, move: Move) -> Move:
    """End what is left of the lost site; what is not ours is fenced as far as it answers."""
    state = ground.home.state()
    state.lost = sorted({*state.lost, move.source})
    ground.home.state_file.write(state)
    if ground.is_ours(move.source):
        layout = ground.home.layout(move.source)
        for node in layout.local_nodes:
            holds.hold(node, f"{move.kind} to {move.target}")
        # Controllers too: one that hangs would keep the site from coming back.
        left = list(processes.find(layout.local_nodes).values())
        processes.end(left, signal.SIGKILL)
        if processes.wait(left, local.KILL_TIMEOUT_S):
            raise SiteError(f"nodes of site {move.source} do not end", hint="ps -ef | grep kafka.Kafka")
        # Brokers may also run where we do not see them: on other machines, or in containers.
        is_remote = any(node.remote for node in layout.brokers)
        if not is_remote and not _listens(ground, move.source):
            return move
    try:
        with Cluster(ground.home.admin_access(move.source), patience=BRIEFLY) as cluster:
            if why_not := fencing.harm_at(cluster):
                note = f"site {move.source} is not fenced, its users lose their right to write: {why_not}"
                ground.progress.note(note)
                acls.remove(cluster, switchover.of_an_active(ground.home.bus))
            else:
                fencing.fence(cluster)
    except TwinlogError as error:
        ground.progress.note(f"site {move.source} could not be fenced from here: {error}")
    return move


def _listens(ground: Ground, site: str) -> bool:
    return any(listens(HostPort.parse(one)) for one in ground.home.admin_access(site).bootstrap)


def note_points(ground: Ground, move: Move) -> Move:
    """Where each partition ends now is where the new term begins."""
    cluster = ground.cluster(move.target)
    partitions = ground.mirrored(cluster)
    if late := replicated.late(cluster, partitions):
        (topic, partition), *_ = late
        ground.progress.note(
            f"{len(late)} partitions hold more than all of their replicas in sync have: {topic}-{partition}"
        )
    ends = offsets.log_ends(cluster, partitions)
    noted = replace(move, points=switchover.as_points(ends))
    promotions.note(ground.home, noted)
    return noted


def forget_producers(ground: Ground, move: Move) -> Move:
    """Have the promoted site forget every producer, so that each may go on with any sequence."""
    forgetting.forget_all(ground, move.target)
    return move


def open_target(ground: Ground, move: Move) -> Move:
    """Open the promoted site, also to those whom a switchover that came to no end keeps out of it."""
    switchover.open_target(ground, move)
    if ground.is_ours(move.target):
        fencing.release(ground.cluster(move.target))
    return move


def leave_behind(ground: Ground, move: Move) -> Move:
    """End what is left of the old site of a switchover, lost when clients had moved; it has to return."""
    link.hold(ground.home, str(move))
    fence(ground, move)
    steps = STEPS[move.kind]
    # From then on it was a standby, whose logs are beginnings of the active's: there is nothing to cut.
    is_standby = move.progress > steps.index(Step.SETTLE)
    return replace(move, points={}) if is_standby else move
