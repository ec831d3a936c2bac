"""What a bus is, as the user declared it: the typed form of `twinlog.yaml`.

Everything above `spec` works on these models and never on YAML. They are frozen, hold no
default that depends on the machine, and know nothing of where they were written: places (line
and column) are the loader's business, rules between fields are those of `check`.
A field that is None was left to Twinlog; the methods say what Twinlog makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from twinlog.spec.parts import EMPTY_ALLOWED, STRICT, First, Part, TopicName, Whole, limited
from twinlog.spec.streams import Job, JobName
from twinlog.spec.units import Bytes, BytesPerSecond, Duration

KafkaVersion = Literal["4.2.1", "4.3.1"]  # those whose jars are pinned
KAFKA_VERSION: KafkaVersion = "4.3.1"  # unless the file says otherwise
BUS_NAME = r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"
SITE_NAME = r"^[a-z][a-z0-9]{0,15}$"
USER_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
# An exact name, or a prefix followed by one asterisk, or the asterisk alone.
NAME_PATTERN = r"^(\*|[A-Za-z0-9._-]+\*?)$"

BusName = Annotated[str, limited(pattern=BUS_NAME)]
SiteName = Annotated[str, limited(pattern=SITE_NAME)]
UserName = Annotated[str, limited(pattern=USER_NAME)]
NamePattern = Annotated[str, limited(pattern=NAME_PATTERN)]


def _one_is_many(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Port = Annotated[int, limited(strict=True, ge=1, le=65535)]
Share = Annotated[float, limited(strict=True, gt=0)]
Directories = Annotated[tuple[str, ...], First(_one_is_many)]
Setting = str | int | float | bool
Settings = Annotated[Mapping[str, Setting], EMPTY_ALLOWED]


class Auth(StrEnum):
    """How a user proves who it is."""

    SCRAM = "scram"  # SCRAM-SHA-512 over TLS, on the CLIENT listener
    SCRAM_256 = "scram-sha-256"
    MTLS = "mtls"  # a client certificate, on the CLIENT_TLS listener


class Role(StrEnum):
    """What a site is to the bus. A bus has one active site."""

    ACTIVE = "active"
    STANDBY = "standby"


class Broker(Part):
    """What one broker has for itself; what is None is taken from its site."""

    listen: str | None = None
    advertise: str | None = None
    port: Port | None = None
    data: Directories | None = None
    rack: str | None = None
    memory: Bytes | None = None
    cpus: Share | None = None
    remote: Annotated[bool, STRICT] | None = None
    kafka: Settings = {}


class Site(Part):
    """A Kafka cluster: one that Twinlog runs, or (with `bootstrap`) one that exists already."""

    brokers: Annotated[Whole, limited(ge=1, le=800)] | tuple[Broker, ...] = 3
    controllers: Annotated[Whole, limited(ge=1, le=7)] = 1  # odd: `check` says why
    listen: str = "127.0.0.1"
    advertise: str | None = None
    port: Port | None = None
    data: Directories = ()
    racks: tuple[str, ...] = ()
    memory: Bytes = Bytes(512 * 1024 * 1024)
    controller_memory: Bytes = Bytes(192 * 1024 * 1024)
    cpus: Share | None = None
    jvm: tuple[str, ...] = ()
    remote: Annotated[bool, STRICT] = False  # its nodes run elsewhere, from bundles
    agent: str | None = None  # host:port of the agent beside its brokers
    kafka: Settings = {}
    kafka_version: KafkaVersion | None = None
    bootstrap: tuple[str, ...] = ()
    client: str | None = None

    @property
    def exists_already(self) -> bool:
        """True for a cluster that Twinlog reaches but does not run."""
        return bool(self.bootstrap)

    @property
    def broker_specs(self) -> tuple[Broker, ...]:
        """One entry for each broker, however the brokers were written."""
        if isinstance(self.brokers, int):
            return (Broker(),) * self.brokers
        return self.brokers


class Cleanup(StrEnum):
    """What happens to old records of a topic."""

    DELETE = "delete"
    COMPACT = "compact"
    COMPACT_DELETE = "compact,delete"


class Topic(Part):
    """A topic that exists on every site, at the same offsets unless `mirror` is off."""

    partitions: Annotated[Whole, limited(ge=1, le=100_000)] = 1
    replication: Annotated[Whole, limited(ge=1, le=1000)] | None = None
    min_insync: Annotated[Whole, limited(ge=1, le=1000)] | None = None
    mirror: Annotated[bool, STRICT] = True
    cleanup: Cleanup = Cleanup.DELETE
    retention: Duration | Literal["forever"] | None = None
    retention_bytes: Bytes | None = None
    max_message: Bytes | None = None
    config: Settings = {}

    def replication_on(self, brokers: int) -> int:
        """Copies of each partition on a site of so many brokers."""
        return self.replication if self.replication is not None else min(3, brokers)

    def min_insync_on(self, brokers: int) -> int:
        """Copies that must have a record before acks=all is answered."""
        if self.min_insync is not None:
            return self.min_insync
        return max(1, self.replication_on(brokers) - 1)


class Password(Part):
    """Where a password that Twinlog must not invent comes from: exactly one of the two."""

    file: str | None = None
    env: str | None = None


class Quota(Part):
    """Limits of one user, per broker, as Kafka counts them."""

    produce: BytesPerSecond | None = None
    consume: BytesPerSecond | None = None
    request: Annotated[Share, limited(le=10_000)] | None = None  # per cent of one thread


class User(Part):
    """A client of the bus: it may do what is written here and nothing else."""

    auth: Auth = Auth.SCRAM
    produce: tuple[NamePattern, ...] = ()
    consume: tuple[NamePattern, ...] = ()
    create: tuple[NamePattern, ...] = ()
    groups: tuple[NamePattern, ...] = ()
    transactions: tuple[NamePattern, ...] = ()
    quota: Quota = Quota()
    password: Password | None = None


class Promote(StrEnum):
    """Who decides that the standby becomes active when the active is lost."""

    ASK = "ask"
    AUTOMATIC = "automatic"


class Dns(Part):
    """Answers for those who move a name instead of an address."""

    listen: str  # host:port, UDP and TCP
    name: str  # the one name that is answered for
    ttl: Duration = Duration(5.0)


class Gate(Part):
    """The one address that clients know. Its host stands in every broker's certificate."""

    address: str = "127.0.0.1:9092"
    tls_address: str | None = None  # for users with certificates; else the port after `address`
    page: str | None = None  # host:port of the health page
    failover_after: Duration = Duration(10.0)
    promote: Promote = Promote.ASK
    dns: Dns | None = None
    witness: str | None = None  # host:port of the third vote: `twinlog witness` runs there


class Identity(StrEnum):
    """Under whose name a mirrored batch stands at the standby."""

    KEEP = "keep"  # its producer's, so that a producer that moves is recognised
    LINK = "link"  # the mirror's


class Link(Part):
    """The mirror from the active to the standby."""

    identity: Identity = Identity.KEEP
    include: tuple[NamePattern, ...] = ()  # topics that the file does not declare
    exclude: tuple[NamePattern, ...] = ()
    groups: tuple[NamePattern, ...] = ("*",)  # consumer groups whose offsets go along
    max_rate: BytesPerSecond | None = None
    tasks: Annotated[Whole, limited(ge=1, le=256)] = 2
    epoch: Duration = Duration(300.0)  # so long a task holds its partitions
    metrics: str | None = None  # host:port of a page for Prometheus


class Pipeline(Part):
    """Where Spark runs."""

    master: str = "local"
    memory: Bytes = Bytes(512 * 1024 * 1024)
    settings: Settings = {}  # spark.…
    checkpoints: str | None = None  # of jobs: any path that Hadoop knows; else in the bus's directory
    metrics: str | None = None  # host:port of a page for Prometheus about the jobs


class Certificates(Part):
    """How long certificates last and when they are renewed."""

    validity: Duration = Duration(365 * 86400.0)
    ca_validity: Duration = Duration(3650 * 86400.0)
    renew_before: Duration = Duration(30 * 86400.0)
    names: tuple[str, ...] = ()  # further names or addresses for every broker's certificate


class Bus(Part):
    """The whole file."""

    bus: BusName
    sites: Mapping[SiteName, Site]
    active: str | None = None
    topics: Annotated[Mapping[TopicName, Topic], EMPTY_ALLOWED] = {}
    users: Annotated[Mapping[UserName, User], EMPTY_ALLOWED] = {}
    gate: Gate = Gate()
    link: Link = Link()
    pipeline: Pipeline = Pipeline()
    streams: Annotated[Mapping[JobName, Job], EMPTY_ALLOWED] = {}
    certificates: Certificates = Certificates()
    kafka: Settings = {}
    kafka_version: KafkaVersion = KAFKA_VERSION

    @property
    def active_site(self) -> str:
        """The site that the file wants active at first: the named one, else the first."""
        return self.active if self.active is not None else next(iter(self.sites))

    def kafka_version_of(self, site: str) -> KafkaVersion:
        """The Kafka that a site is to run: its own, else the bus's."""
        return self.sites[site].kafka_version or self.kafka_version
