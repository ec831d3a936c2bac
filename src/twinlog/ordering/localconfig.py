"""What one orderer is told by Fabric's `orderer.yaml`: its addresses, keys, ledger, and patience with Kafka.

Made by `localfile` from the file and the environment, read by the process. A field's name is the key of
the file without its capitals (`listen_address` is `ListenAddress`), `_s` marks what the file gives as a
duration, and the value here is what holds where the file says nothing, or zero. The section `Twinlog`
is ours: how an orderer of a bus finds its brokers, and whether it waits for the standby.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from twinlog.errors import UsageError
from twinlog.wire.access import Access, Mechanism, Protocol

READ_ALL = "all"
READ_TWIN = "twin"


@dataclass(frozen=True)
class Pem:
    """Keys or certificates: the text itself, or the file that holds it, which is read when it is needed."""

    text: str = field(default="", repr=False)
    path: Path | None = None

    def __bool__(self) -> bool:
        return bool(self.text) or self.path is not None

    def read(self) -> str:
        """The text."""
        if self.path is None:
            return self.text
        try:
            return self.path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"cannot read a key or certificate: {error}", where=str(self.path), hint="is the path right?"
            ) from None


@dataclass(frozen=True)
class ServerTls:
    """TLS of a port that others connect to."""

    enabled: bool = False
    private_key: Pem = Pem()
    certificate: Pem = Pem()
    root_cas: tuple[Pem, ...] = ()
    client_auth_required: bool = False
    client_root_cas: tuple[Pem, ...] = ()
    tls_handshake_time_shift_s: float = 0.0


@dataclass(frozen=True)
class Keepalive:
    """How often a connection without traffic is tried."""

    server_min_interval_s: float = 60.0
    server_interval_s: float = 7200.0
    server_timeout_s: float = 20.0


@dataclass(frozen=True)
class Authentication:
    """How old a request may be, and whether certificates may have ended."""

    time_window_s: float = 900.0
    no_expiration_checks: bool = False


@dataclass(frozen=True)
class General:
    """The orderer itself."""

    listen_address: str = "127.0.0.1"
    listen_port: int = 7050
    tls: ServerTls = ServerTls()
    keepalive: Keepalive = Keepalive()
    genesis_method: str = "provisional"
    genesis_file: Path = Path("genesisblock")
    genesis_profile: str = ""
    system_channel: str = ""
    local_msp_dir: Path = Path("msp")
    local_mspid: str = "SampleOrg"
    authentication: Authentication = Authentication()
    ledger_type: str = "file"
    log_level: str = ""  # the older spelling of FABRIC_LOGGING_SPEC
    log_format: str = ""
    connection_timeout_s: float = 0.0


@dataclass(frozen=True)
class FileLedger:
    """Where blocks are kept."""

    location: Path = Path("/var/hyperledger/production/orderer")
    prefix: str = ""


@dataclass(frozen=True)
class NetworkTimeouts:
    """How long one call to a broker may take."""

    dial_timeout_s: float = 30.0
    read_timeout_s: float = 30.0
    write_timeout_s: float = 30.0


@dataclass(frozen=True)
class MetadataRetry:
    """Asking brokers who leads what."""

    retry_backoff_s: float = 0.25
    retry_max: int = 3


@dataclass(frozen=True)
class ProducerRetry:
    """Sending one record."""

    retry_backoff_s: float = 0.1
    retry_max: int = 3


@dataclass(frozen=True)
class ConsumerRetry:
    """Reading on after an error."""

    retry_backoff_s: float = 2.0


@dataclass(frozen=True)
class Retry:
    """Patience with Kafka: first at short intervals, then at long ones."""

    short_interval_s: float = 60.0
    short_total_s: float = 600.0
    long_interval_s: float = 600.0
    long_total_s: float = 43200.0
    network_timeouts: NetworkTimeouts = NetworkTimeouts()
    metadata: MetadataRetry = MetadataRetry()
    producer: ProducerRetry = ProducerRetry()
    consumer: ConsumerRetry = ConsumerRetry()


@dataclass(frozen=True)
class KafkaTls:
    """Keys with which brokers know us, and roots with which we know them."""

    enabled: bool = False
    private_key: Pem = Pem()
    certificate: Pem = Pem()
    root_cas: Pem = Pem()


@dataclass(frozen=True)
class SaslPlain:
    """A name and a password."""

    enabled: bool = False
    user: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True)
class Topic:
    """How channels' topics are made."""

    replication_factor: int = 3  # Fabric leaves 0 where the file has no such key, and no topic can be made


@dataclass(frozen=True)
class Kafka:
    """How brokers are reached."""

    retry: Retry = Retry()
    verbose: bool = False
    version: str = "0.10.2.0"  # accepted for old files; clients now ask brokers what they speak
    tls: KafkaTls = KafkaTls()
    sasl_plain: SaslPlain = SaslPlain()
    topic: Topic = Topic()

    def access(self, brokers: tuple[str, ...]) -> Access:
        """What a client needs to reach these brokers."""
        sasl = self.sasl_plain.enabled
        protocol = {
            (False, False): Protocol.PLAINTEXT,
            (True, False): Protocol.SSL,
            (False, True): Protocol.SASL_PLAINTEXT,
            (True, True): Protocol.SASL_SSL,
        }[self.tls.enabled, sasl]
        tls = self.tls if self.tls.enabled else KafkaTls()
        return Access(
            bootstrap=brokers,
            protocol=protocol,
            ca_pem=tls.root_cas.read(),
            cert_pem=tls.certificate.read(),
            key_pem=tls.private_key.read(),
            mechanism=Mechanism.PLAIN if sasl else None,
            username=self.sasl_plain.user if sasl else "",
            password=self.sasl_plain.password if sasl else "",
        )


@dataclass(frozen=True)
class Operations:
    """The page of metrics and health."""

    listen_address: str = "127.0.0.1:0"
    tls: ServerTls = ServerTls()


@dataclass(frozen=True)
class Metrics:
    """Who gets the figures."""

    provider: str = "disabled"  # or prometheus


@dataclass(frozen=True)
class Debug:
    """Directories for copies of what came in."""

    broadcast_trace_dir: str = ""
    deliver_trace_dir: str = ""


@dataclass(frozen=True)
class Twinlog:
    """What Fabric's file has no word for."""

    read: str = READ_ALL  # `twin`: no block is cut from a record that the standby lacks
    brokers: tuple[str, ...] = ()  # instead of those that the channel's configuration names
    standby: tuple[str, ...] = ()  # brokers of the other site
    min_insync_replicas: int = 2


@dataclass(frozen=True)
class LocalConfig:
    """One orderer's file."""

    general: General = General()
    file_ledger: FileLedger = FileLedger()
    kafka: Kafka = Kafka()
    operations: Operations = Operations()
    metrics: Metrics = Metrics()
    debug: Debug = Debug()
    twinlog: Twinlog = Twinlog()
