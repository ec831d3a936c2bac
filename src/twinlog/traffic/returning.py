"""The steps by which a lost site comes back as the standby.

It starts with its client ports closed: its rules still let users write, and its logs may hold records
that the other site never got. Its open transactions are ended, or their coordinators would write markers
behind the cut. What only it has is salvaged to the active; then every replica is cut where the other site
took over, while the brokers are stopped, and the site is linked like any standby. A topic that cannot be
cut is made anew and copied whole; so is every topic with a tail where brokers are not ours to stop, and
there clients are kept from writing by their rights alone. The site forgets producers, as the other one did
when it took over: their sequences go on there behind a hole, and must be taken here as they are.
"""

from __future__ import annotations

from dataclasses import replace

from twinlog.errors import KafkaError
from twinlog.sites import cutting, local
from twinlog.traffic import forgetting, salvage, switchover
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import Move
from twinlog.wire import topics
from twinlog.wire.offsets import TopicPartition


def start_closed(ground: Ground, move: Move) -> Move:
    """Start the lost site's nodes where no client can reach them; what runs open is ended first."""
    if ground.is_ours(move.source):
        if local.open_to_clients(ground.brokers(move.source)):
            # Nobody could end them at the takeover, or a machine that booted has started them by itself.
            switchover.stop_brokers(ground, move)
        local.up(ground.home, [move.source], ground.progress, open_to_clients=False)
    return move


def salvage_tail(ground: Ground, move: Move) -> Move:
    """Copy what only the lost site has to topics of its own at the active."""
    source, target = ground.cluster(move.source), ground.cluster(move.target)
    # At a cluster of others the rule that keeps everybody out would keep its administrators out too.
    deny = ground.is_ours(move.target)
    found = salvage.collect(source, target, points_of(move), move.term, deny_others=deny)
    return replace(move, salvaged=found.as_json())


def why_not_cut(ground: Ground, site: str) -> str:
    """Why the logs of a site cannot be cut, whatever is in them; empty if they can."""
    if not ground.is_ours(site):
        return "that cluster exists already, and Twinlog only reaches it"
    away = [node.name for node in ground.home.layout(site).brokers if node.remote]
    return f"{away[0]} runs on another machine" if away else ""


def cut_logs(ground: Ground, move: Move) -> Move:
    """Take off the logs' ends what the active does not have; where that cannot be, name those topics."""
    why_not = why_not_cut(ground, move.source)
    if why_not:
        # Those whose tails salvage has seen: nobody may write there since, and nothing else is deleted.
        rebuilt = {tail["topic"]: why_not for tail in move.salvaged["partitions"]}
    else:
        outcomes = cutting.cut(ground.home.layout(move.source), points_of(move))
        rebuilt = {one.place[0]: one.why_not for one in outcomes if one.why_not}
    state = ground.home.state()
    state.lost = [site for site in state.lost if site != move.source]
    ground.home.state_file.write(state)
    return replace(move, rebuilt=rebuilt)


def forget_producers(ground: Ground, move: Move) -> Move:
    """Have the returned site forget every producer: the other one took batches that follow nothing here."""
    forgetting.forget_all(ground, move.source)
    return move


def settle(ground: Ground, move: Move) -> Move:
    """Make anew what could not be cut, and the site the standby."""
    cluster = ground.cluster(move.source)
    for topic, why in move.rebuilt.items():
        ground.progress.note(f"{topic} is copied whole: {why}")
        try:
            topics.delete(cluster, topic)
        except KafkaError as error:
            if error.code != "UNKNOWN_TOPIC_OR_PARTITION":
                raise
    return switchover.settle_source(ground, move)


def release(ground: Ground, move: Move) -> Move:
    """Let clients into the standby, if it was fenced when it was lost: that outlasts its brokers."""
    switchover.let_in(ground, move.source)
    return move


def points_of(move: Move) -> dict[TopicPartition, int]:
    """Where each partition was taken over."""
    return {
        (topic, partition): offset
        for topic, found in move.points.items()
        for partition, offset in found.items()
    }
