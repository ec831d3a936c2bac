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
from twinlog.sites import fencing, holds, local, processes
from twinlog.traffic import forgetting, promotions, switchover
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import Move
from twinlog.wire import acls, offsets
from twinlog.wire.cluster import Cluster, Patience

BRIEFLY = Patience(connect_s=1.0, request_s=2.0, total_s=2.0)


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
        remote = [node.name for node in layout.brokers if node.remote]
        if not remote:
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


def note_points(ground: Ground, move: Move) -> Move:
    """Where each partition ends now is where the new term begins."""
    cluster = ground.cluster(move.target)
    ends = offsets.log_ends(cluster, ground.mirrored(cluster))
    points: dict[str, dict[int, int]] = {}
    for (topic, partition), end in ends.items():
        points.setdefault(topic, {})[partition] = end
    noted = replace(move, points=points)
    promotions.note(ground.home, noted)
    return noted


def forget_producers(ground: Ground, move: Move) -> Move:
    """Have the promoted site forget every producer, so that each may go on with any sequence."""
    forgetting.forget_all(ground, move.target)
    return move
