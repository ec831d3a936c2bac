"""What a driver does beside copying: which topics there are, and what goes along with them.

Each chore has a thread, a rhythm and connections of its own, so that none waits for another. One
that fails is told on the board and done again at its next turn; the copying does not notice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twinlog.errors import TwinlogError
from twinlog.mirror import groups, permits, topic_copies
from twinlog.mirror.following import Case, Wanted, selection
from twinlog.mirror.link import directory
from twinlog.mirror.log_starts import follow_log_starts
from twinlog.mirror.memory import TopicMemory
from twinlog.mirror.rights import Claim
from twinlog.mirror.watch import PartitionStatus, Watch
from twinlog.ops.world import broker_count
from twinlog.pipeline.driver import Driver, Mirrored
from twinlog.repeating import Repeating
from twinlog.sites.home import Home
from twinlog.wire import configs, topics
from twinlog.wire.cluster import Cluster, Patience

PATIENCE = Patience(connect_s=2.0, request_s=5.0, total_s=5.0)
TOPICS_EVERY_S = 2.0
SETTINGS_EVERY_S = 10.0
LOG_STARTS_EVERY_S = 5.0
GROUPS_EVERY_S = 0.5
POSITIONS_EVERY_S = 5.0
WATCH_EVERY_S = 1.0
MEMORY = "topics.json"
_POLICY = "cleanup.policy"

Work = Callable[[], None]


class Chores(Repeating):
    """All chores of one link, from `with` to its end."""

    def __init__(self, home: Home, active: str, standby: str, driver: Driver) -> None:
        self._home = home
        self._active = active
        self._standby = standby
        self._driver = driver
        self._seen: list[PartitionStatus] = []
        # Whoever changes the roles takes this one's rights first, so that nothing old is set afterwards.
        self._of_groups = home.link_access(Claim(driver.board.generation).name, standby)
        wanted: list[tuple[float, str, Callable[[Cluster, Cluster], Work]]] = [
            (TOPICS_EVERY_S, "looking for topics", self._topics),
            (SETTINGS_EVERY_S, "following settings", self._settings),
            (LOG_STARTS_EVERY_S, "following log starts", self._log_starts),
            (GROUPS_EVERY_S, "copying the offsets of groups", self._groups),
            (POSITIONS_EVERY_S, "publishing positions", self._positions),
        ]
        if home.bus.link.metrics is not None:
            wanted.append((WATCH_EVERY_S, "watching the ends of logs", self._ends))
        super().__init__({name: partial(self._repeat, every_s, name, make) for every_s, name, make in wanted})

    def watched(self) -> list[PartitionStatus]:
        """The partitions as they were last seen; none unless there is a page that shows them."""
        return self._seen

    def _repeat(self, every_s: float, name: str, make: Callable[[Cluster, Cluster], Work]) -> None:
        access = self._of_groups if make == self._groups else self._home.admin_access(self._standby)
        with (
            Cluster(self._home.admin_access(self._active), patience=PATIENCE) as active,
            Cluster(access, patience=PATIENCE) as standby,
        ):
            work: Work | None = None
            for _ in self.turns(every_s):
                try:
                    work = work if work is not None else make(active, standby)
                    work()
                except TwinlogError as error:
                    self._driver.trouble(f"{name}: {error}")

    def _topics(self, active: Cluster, standby: Cluster) -> Work:
        """Which partitions are mirrored; topics that only a pattern means are made at the standby."""
        wanted = Wanted.of(self._home.bus)
        memory = TopicMemory(directory(self._home) / MEMORY, active.cluster_id, standby.cluster_id)
        compacted: dict[str, bool] = {}

        def look() -> None:
            here, there = topics.describe(active), topics.describe(standby)
            found = selection(here, there, wanted, memory.topics())
            memory.learn(found.twins)
            self._driver.board.missing = found.words
            leaders = {(topic.name, one.index): one.leader for topic in there for one in topic.partitions}
            compacted.update(_compacted(active, [name for name in found.twins if name not in compacted]))
            self._driver.mirror([Mirrored(*key, compacted[key[0]], leaders[key]) for key in found.partitions])
            ours = [name for name in found.names(Case.MISSING) if name not in wanted.declared]
            if ours:
                brokers = broker_count(self._home, self._standby, standby)
                topic_copies.create(active, standby, ours, brokers)
            narrow = [name for name in found.names(Case.NARROW) if name not in wanted.declared]
            topic_copies.widen(active, standby, narrow)

        return look

    def _settings(self, active: Cluster, standby: Cluster) -> Work:
        """What the file does not declare follows the active: settings, rights, quotas."""
        declared = Wanted.of(self._home.bus).declared

        def follow() -> None:
            others = sorted({topic for topic, _ in self._driver.partitions} - declared)
            if others:
                topic_copies.follow_settings(active, standby, others)
                permits.copy_rules(active, standby, others)
                permits.copy_quotas(active, standby)

        return follow

    def _log_starts(self, active: Cluster, standby: Cluster) -> Work:
        def follow() -> None:
            partitions = self._driver.partitions
            if partitions:
                follow_log_starts(active, standby, partitions)

        return follow

    def _groups(self, active: Cluster, standby: Cluster) -> Work:
        copier = groups.GroupCopier(active, standby, self._home.bus.link.groups)

        def copy() -> None:
            turn = copier.turn(self._driver.partitions)
            board = self._driver.board
            board.groups = {
                "copied": board.groups.get("copied", 0) + turn.copied,
                "waiting": turn.waiting,
                "occupied": turn.occupied,
                "gone": turn.gone,
                "refused": dict(turn.refused),
            }

        return copy

    def _positions(self, active: Cluster, standby: Cluster) -> Work:
        def publish() -> None:
            positions = {
                (news.topic, news.partition): news.position
                for news in self._driver.board.partitions
                if news.position >= 0
            }
            if positions:
                groups.publish_positions(active, self._home.bus.bus, positions)

        return publish

    def _ends(self, active: Cluster, standby: Cluster) -> Work:
        watch = Watch(self._home)

        def look() -> None:
            self._seen = watch.look().partitions

        return look


def _compacted(cluster: Cluster, names: list[str]) -> dict[str, bool]:
    """Which topics have a cleaner that takes records out of the middle."""
    settings = configs.describe_many(cluster, configs.Kind.TOPIC, names, (_POLICY,)) if names else {}
    return {name: "compact" in (found[_POLICY].value or "") for name, found in settings.items()}
