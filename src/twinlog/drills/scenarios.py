"""The scenarios: how large the bus is, who takes part, what is broken, and what is promised.

`drill list` shows them, the runner plays one. A scenario is data, and names its story.
Promises are about what clients see; what a scenario does not mention must not occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from twinlog.drills import apart, hazards, partition, stories, upgrade
from twinlog.drills.cast import EVERYBODY, IDEMPOTENT, STAYING, TWIN_READER, Client
from twinlog.drills.figures import READS
from twinlog.drills.finding import LOSSES, Kind
from twinlog.drills.promises import (
    ALWAYS,
    NOT_TWO,
    WITHOUT_FAILOVER,
    AtMost,
    Back,
    Listed,
    LostWithinLag,
    NoError,
    Promise,
    Shown,
    Within,
)
from twinlog.drills.stage import Stage
from twinlog.drills.stories import FAILOVER_AFTER_S
from twinlog.errors import UsageError
from twinlog.spec.model import KAFKA_VERSION, KafkaVersion

ALL, ONE, TWINS = frozenset({"all"}), frozenset({"1"}), frozenset({"twin"})
LIBRARY = frozenset({TWIN_READER.figure})  # it needs a standby, and so does what it reads
BACK = Back("every client works again in the end")


@dataclass(frozen=True)
class Size:
    """How large the bus is."""

    brokers: int = 1  # of the site that is active first
    controllers: int = 1
    standby_brokers: int = 1
    fewest: int = 1  # brokers that whoever chooses another number has to leave


@dataclass(frozen=True)
class Scenario:
    """One drill as it is declared."""

    name: str
    says: str  # one line, for the list
    story: Callable[[Stage], None]
    promises: tuple[Promise, ...]
    size: Size = Size()
    clients: tuple[Client, ...] = EVERYBODY
    seconds: float = 30.0
    rests: int = 2
    kafka_version: KafkaVersion = KAFKA_VERSION  # that the bus begins with
    kafka: Mapping[str, str] = field(default_factory=dict)  # settings of brokers that the file has besides
    small_disks: bool = False  # the first broker of each site has a disk that can be filled, for root
    slow_disks: bool = False  # the same with disks that can be slow, which needs root
    apart: bool = False  # sites and witness on machines of their own, which needs root

    def with_brokers(self, count: int) -> Scenario:
        """The same on sites of so many brokers."""
        if count < self.size.fewest:
            raise UsageError(
                f"the drill '{self.name}' needs {self.size.fewest} brokers a site",
                hint=f"twinlog drill run {self.name}",
            )
        return replace(self, size=replace(self.size, brokers=count, standby_brokers=count))


# A site that is shut down in order tells clients at last that it has no brokers, and librdkafka believes it
# for good; where this is set, brokers end without a word (decision 20).
AT_ONCE: Mapping[str, str] = {"controlled.shutdown.enable": "false"}

# Where a site is lost: what the standby did not have is lost for a while, and groups may repeat.
WITH_FAILOVER: tuple[Promise, ...] = (
    LostWithinLag("only writes within the lag are lost, and all are salvaged", ALL | ONE),
    AtMost("groups skip nothing", frozenset({Kind.SKIPPED})),
    AtMost("what was read with read=twin stays", frozenset({Kind.VANISHED})),
    Listed("what groups read or committed twice", frozenset({Kind.REWOUND, Kind.REREAD})),
    Listed("transactions that a failover tore", frozenset({Kind.TORN})),
    BACK,
)
# Where a site is lost, and nobody ends its brokers because its agent hangs: what they acknowledge is counted.
TWO = Listed("what the old site acknowledged after the other one opened", NOT_TWO.kinds)
WITHOUT_AGENT: tuple[Promise, ...] = (
    *(one for one in ALWAYS if one is not NOT_TWO),
    TWO,
    AtMost("no write is lost that is not salvaged", frozenset({Kind.LOST})),
    Listed("what was lost, and salvaged", frozenset({Kind.SALVAGED}), ALL | ONE),
    *(one for one in WITH_FAILOVER if not isinstance(one, LostWithinLag)),
)
# Where brokers of a site are lost, and the site is not.
WITH_LOST_BROKERS: tuple[Promise, ...] = (
    AtMost("no write acknowledged with acks=all is lost", frozenset({Kind.LOST, Kind.TORN}), ALL),
    Listed("writes with acks=1 that their leader took along", frozenset({Kind.LOST}), ONE),
    WITHOUT_FAILOVER[1],
    BACK,
)
NO_ERROR = NoError("no error reaches a writer with acks=all, or a group", ALL, groups=True)
WAYS = ("b", "a")  # where a switchover goes, and back


def _each_way(promise: Within) -> tuple[Promise, ...]:
    """The promise for moves to each site alone: half of all moves would hide that one way is slow."""
    return tuple(replace(promise, says=f"to {site}: {promise.says}", to=site) for site in WAYS)


SCENARIOS: Mapping[str, Scenario] = {
    one.name: one
    for one in (
        Scenario(
            "switchover-and-back",
            "the active role moves to the other site and back, as planned",
            stories.switchover_and_back,
            (
                *ALWAYS,
                *WITHOUT_FAILOVER,
                *_each_way(
                    Within(
                        "writers wait at most 10 s, half of them at most 5 s",
                        10.0,
                        5.0,
                        by_outage=True,
                        acks=ALL | ONE,
                    )
                ),
                *_each_way(
                    Within(
                        "groups wait at most 10 s, half of them at most 5 s",
                        10.0,
                        5.0,
                        does=READS,
                        by_outage=True,
                        apart=LIBRARY,
                    )
                ),
                # The old site's brokers start again first, and Kafka lets one back when its session is over.
                Within("with acks=twin they write when there is a standby, within 30 s", 30.0, acks=TWINS),
                Within(
                    "with read=twin they read when there is one, within 30 s", 30.0, does=READS, only=LIBRARY
                ),
            ),
            Size(brokers=2, standby_brokers=2),  # leader epochs are raised by elections, which need two
            rests=3,
        ),
        Scenario(
            "site-dies",
            "the whole active site is killed, the standby takes over, the lost site returns",
            stories.site_dies,
            (
                *ALWAYS,
                *WITH_FAILOVER,
                Within(
                    f"writers are back {FAILOVER_AFTER_S + 3:g} s after the site died",
                    FAILOVER_AFTER_S + 3.0,
                    acks=ALL | ONE,
                ),
            ),
            rests=3,
        ),
        Scenario(
            "site-comes-home",
            "the active site is killed while the standby is behind, is replaced, returns, is active again",
            stories.site_comes_home,
            (
                *ALWAYS,
                *WITH_FAILOVER,
                Shown(
                    f"the standby lacked acknowledged writes of {IDEMPOTENT.name}",
                    LOSSES,
                    IDEMPOTENT.name,
                ),
                Within(
                    f"writers are back {FAILOVER_AFTER_S + 3:g} s after the loss and after the move home",
                    FAILOVER_AFTER_S + 3.0,
                    acks=ALL | ONE,
                ),
            ),
            rests=4,
        ),
        Scenario(
            "site-hangs",
            "the whole active site is stopped (SIGSTOP), is replaced, and wakes up again",
            stories.site_hangs,
            (
                *ALWAYS,
                *WITH_FAILOVER,
                Within("writers are back 20 s after the site stopped", 20.0, acks=ALL | ONE),
            ),
            rests=4,
        ),
        Scenario(
            "broker-dies",
            "each broker of the active is killed, one after another, and its leading controller",
            stories.broker_dies,
            (
                *ALWAYS,
                *WITH_LOST_BROKERS,
                NO_ERROR,
                NoError("no error reaches a writer with acks=twin", TWINS),
            ),
            Size(brokers=3, controllers=3, fewest=3),
            clients=STAYING,
            seconds=60.0,
            rests=9,
        ),
        Scenario(
            "under-min-isr",
            "too few brokers are left for acks=all: writes are refused, reads go on, writes return",
            stories.under_min_isr,
            (
                *ALWAYS,
                *WITH_LOST_BROKERS,
            ),
            Size(brokers=3, fewest=3),
        ),
        Scenario(
            "disk-full",
            "the disk of one broker is full, first at the active, then at the standby; it gets room",
            stories.disk_full,
            (
                *ALWAYS,
                *WITH_LOST_BROKERS,
                NO_ERROR,
            ),
            Size(brokers=3, standby_brokers=3, fewest=3),
            clients=STAYING,
            seconds=50.0,
            rests=5,
            small_disks=True,
        ),
        Scenario(
            "mirror-dies",
            "the mirror's workers and its driver are killed, then stopped for a while",
            stories.mirror_dies,
            (*ALWAYS, *WITHOUT_FAILOVER, NO_ERROR, BACK),
            clients=STAYING,
            seconds=60.0,
            rests=6,
        ),
        Scenario(
            "manager-dies",
            "whoever carries out a switchover is killed, the manager ends it, and is killed itself",
            stories.manager_dies,
            (*ALWAYS, *WITHOUT_FAILOVER, BACK),
            Size(brokers=2, standby_brokers=2),  # groups go on at the next record, as above
            seconds=40.0,
            rests=5,
        ),
        Scenario(
            "rolling-upgrade",
            f"both sites get Kafka {KAFKA_VERSION} for {upgrade.OLD}, node by node, the standby first",
            upgrade.rolling_upgrade,
            (
                *ALWAYS,
                *WITH_LOST_BROKERS,
                NO_ERROR,
            ),
            Size(brokers=3, controllers=3, fewest=3),
            clients=STAYING,
            seconds=40.0,
            rests=4,
            kafka_version=upgrade.OLD,
        ),
        Scenario(
            "sites-cut-apart",
            "the sites lose sight of each other, then the active is cut off whole; each site once",
            partition.sites_cut_apart,
            (*ALWAYS, *WITH_FAILOVER),
            clients=partition.WITH_GROUPS,
            seconds=40.0,
            rests=8,
            apart=True,
        ),
        Scenario(
            "agent-hangs",
            "the active is cut off while its agent hangs: its brokers go on for the clients beside them",
            partition.agent_hangs,
            # Where nobody ends the brokers and nothing is acknowledged by them, the cut has shown nothing.
            tuple(replace(one, least=1) if one is TWO else one for one in WITHOUT_AGENT),
            clients=partition.CLIENTS,
            seconds=20.0,
            rests=3,
            apart=True,
        ),
        Scenario(
            "random",
            "faults and moves in an order that a seed decides, for minutes",
            hazards.random_faults,
            (*ALWAYS, *WITH_FAILOVER),
            Size(brokers=1),
            seconds=300.0,
            rests=30,
            kafka=AT_ONCE,
        ),
        Scenario(
            "clients-cut-off",
            "clients lose sight of the active while the sites see each other, and find it again",
            apart.clients_cut_off,
            (*ALWAYS, *WITHOUT_FAILOVER, NoError("no error reaches a writer with acks=all", ALL), BACK),
            clients=apart.CLIENTS,
            rests=3,
            apart=True,
        ),
        Scenario(
            "site-wakes",
            "the active and its agent are stopped (SIGSTOP), are replaced, and all wake up",
            apart.site_wakes,
            WITHOUT_AGENT,
            clients=(*partition.WITH_GROUPS, *partition.UNTUNED),
            rests=4,
            apart=True,
        ),
        Scenario(
            "disk-slow",
            "the disk of one broker is slow, first at the active, then at the standby, and fast again",
            stories.disk_slow,
            (*ALWAYS, *WITHOUT_FAILOVER, NoError("no error reaches a writer with acks=all", ALL), BACK),
            Size(brokers=3, standby_brokers=3, fewest=3),
            clients=STAYING,
            seconds=60.0,
            rests=5,
            slow_disks=True,
        ),
    )
}


def scenario(name: str) -> Scenario:
    """A scenario by its name."""
    if name not in SCENARIOS:
        raise UsageError(f"there is no drill '{name}'", hint="twinlog drill list")
    return SCENARIOS[name]
