"""The two mirrors that are measured: ours, and MirrorMaker 2 of the same Kafka.

Both reach the LINK listeners with a certificate of their own, and both start for a measurement and
end with it. MirrorMaker runs as one dedicated process, with the heap and the collector of Kafka's own
start script and the settings that made it quickest in trials. Its heartbeats are off, it looks at groups
every few seconds instead of every minute and replaces a killed worker after seconds instead of minutes,
so that a measurement need not wait for it; and the kernel sizes its sockets' buffers, as it does ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import psutil

from bench.ground import ACTIVE, STANDBY, Ground
from bench.programs import Program, family, kill, locked_jars
from twinlog.mirror import link
from twinlog.sites.authorities import Kind, Realm
from twinlog.sites.layout import Listener
from twinlog.sites.properties import render
from twinlog.wire import acls
from twinlog.wire.acls import Acl, Operation, Resource

LOCK = Path(__file__).parent / "mirrormaker-jars.lock"
PRINCIPAL_NAME = "mirrormaker"
LOOK_AT_GROUPS_S = 5
REPLACE_MS = 5000
LEFT_TO_THE_KERNEL = "-1"
JVM = (
    "-Xms256M",
    "-Xmx2G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-Djava.awt.headless=true",
)


class Peer(Protocol):
    """A mirror from the active to the standby."""

    name: str
    mirrors: bool  # whether its topics are declared as mirrored by Twinlog

    def start(self, topics: Sequence[str], codec: str = "none") -> None:
        """Begin to mirror topics."""

    def stop(self) -> None:
        """End in order; harmless if it does not run."""

    def kill(self) -> None:
        """End all of its processes at once."""

    def processes(self) -> list[psutil.Process]:
        """All of its processes."""

    @property
    def log(self) -> Path:
        """Where it says what troubles it."""


class Ours:
    """The link of the bus: the Spark driver, its JVM, its Python workers."""

    name = "ours"
    mirrors = True

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def start(self, topics: Sequence[str], codec: str = "none") -> None:
        """Begin to mirror what the file declares; batches keep the codec that they have."""
        self._ground.run("link", "up", at=STANDBY)

    def stop(self) -> None:
        """End in order; harmless if it does not run."""
        self._ground.run("link", "down", at=STANDBY)

    def kill(self) -> None:
        """End all of its processes at once."""
        kill(self.processes())

    def processes(self) -> list[psutil.Process]:
        """All of its processes."""
        return family(link.background(self._ground.home).find())

    @property
    def log(self) -> Path:
        """Where it says what troubles it."""
        return link.background(self._ground.home).log


class MirrorMaker(Program):
    """MirrorMaker 2 as a process of its own."""

    name = "mirrormaker"
    mirrors = False

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground.directory / PRINCIPAL_NAME, jars(), JVM)
        self._ground = ground
        self._allow()

    def start(self, topics: Sequence[str], codec: str = "none") -> None:
        """Begin to mirror topics, with a producer of this codec."""
        self.run(
            render(self._settings(topics, codec)),
            "org.apache.kafka.connect.mirror.MirrorMaker",
            around=partial(self._ground.command, at=STANDBY),
        )

    def _allow(self) -> None:
        principal = f"User:twinlog:{PRINCIPAL_NAME}"
        rules = [Acl(Resource.CLUSTER, acls.CLUSTER_NAME, principal, Operation.ALL)] + [
            Acl(kind, "*", principal, Operation.ALL)
            for kind in (Resource.TOPIC, Resource.GROUP, Resource.TRANSACTIONAL_ID)
        ]
        for site in (ACTIVE, STANDBY):
            with self._ground.cluster(site) as cluster:
                acls.add(cluster, rules)
                acls.wait_until_everywhere(cluster, present=rules)

    def _settings(self, topics: Sequence[str], codec: str) -> dict[str, str]:
        copies = str(self._ground.replication)
        settings = {
            "clusters": f"{ACTIVE}, {STANDBY}",
            f"{ACTIVE}->{STANDBY}.enabled": "true",
            f"{ACTIVE}->{STANDBY}.topics": ",".join(topics),
            f"{ACTIVE}->{STANDBY}.emit.heartbeats.enabled": "false",
            f"{STANDBY}->{ACTIVE}.enabled": "false",
            f"{STANDBY}->{ACTIVE}.emit.heartbeats.enabled": "false",
            "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            "tasks.max": "6",
            "replication.factor": copies,
            "offset-syncs.topic.replication.factor": copies,
            "checkpoints.topic.replication.factor": copies,
            "heartbeats.topic.replication.factor": copies,
            "config.storage.replication.factor": copies,
            "offset.storage.replication.factor": copies,
            "status.storage.replication.factor": copies,
            "offset.storage.partitions": "6",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": str(LOOK_AT_GROUPS_S),
            "emit.checkpoints.interval.seconds": str(LOOK_AT_GROUPS_S),
            "refresh.groups.interval.seconds": str(LOOK_AT_GROUPS_S),
            "sync.topic.acls.enabled": "false",
            f"{STANDBY}.scheduled.rebalance.max.delay.ms": str(REPLACE_MS),
            f"{ACTIVE}.consumer.receive.buffer.bytes": LEFT_TO_THE_KERNEL,
            f"{STANDBY}.producer.send.buffer.bytes": LEFT_TO_THE_KERNEL,
            f"{ACTIVE}.consumer.max.partition.fetch.bytes": str(4 << 20),
            f"{ACTIVE}.consumer.max.poll.records": "4000",
            f"{STANDBY}.producer.batch.size": str(128 << 10),
            f"{STANDBY}.producer.linger.ms": "5",
            f"{STANDBY}.producer.compression.type": codec,
        }
        for site in (ACTIVE, STANDBY):
            settings |= {f"{site}.{name}": value for name, value in self._reach(site).items()}
        return settings

    def _reach(self, site: str) -> dict[str, str]:
        home = self._ground.home
        return {
            "bootstrap.servers": ",".join(home.layout(site).bootstrap(Listener.LINK)),
            "security.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(home.pki.issue(Kind.LINK, PRINCIPAL_NAME).store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(home.pki.trust_path(Realm.LINK)),
        }


def jars() -> list[Path]:
    """MirrorMaker's jars, fetched if need be."""
    return locked_jars(LOCK)
