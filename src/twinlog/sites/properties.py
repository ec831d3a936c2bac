"""The configuration files of a node, as text. Pure.

Called when a node is (re)configured and when a bundle is written for another host. Every listener
is encrypted, every listener proves both ends or asks for a password, and what the user set under
`kafka:` comes last but never over what security rests on (the loader refuses those names).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from twinlog.sites.layout import LISTENERS, Kind, Listener, Node, SiteLayout
from twinlog.spec.effective import SESSION, SESSION_MS

MAXIMUM = 2147483647
NODE_PRINCIPAL = "User:twinlog:node"
ADMIN_PRINCIPAL = "User:twinlog:admin"
# On LINK and CONTROLLER all nodes are one principal, so that adding a node changes nobody's
# configuration; the colon keeps these names apart from those of users, which cannot contain one.
LINK_PRINCIPALS = ",".join(
    (
        r"RULE:^CN=[^,]+,OU=node,O=[^,]+$/twinlog:node/",
        r"RULE:^CN=([^,]+),OU=link,O=[^,]+$/twinlog:$1/",
        r"RULE:^.*$/nobody/",
    )
)
# The characters of users' names and no others: no certificate of a user can be read as `twinlog:…`.
USER_PRINCIPALS = r"RULE:^CN=([A-Za-z0-9._-]+),OU=user,O=[^,]+$/$1/,RULE:^.*$/nobody/"
PROTOCOLS = "CLIENT:SASL_SSL,CLIENT_TLS:SSL,LINK:SSL,CONTROLLER:SSL"
# Of a broker that is closed to clients, on a port that nobody is told. Kafka leaves the brokers' own listener
# outside `max.connections` only beside another one, and a site may have been lost with a fence around it.
SPARE = "SPARE"
SMALL_HEAP_BYTES = 1 << 30
AOT_SUFFIX = ".aot"  # from Java 25 on; before, archives end in .jsa
# Half of a node's start went into optimising code that runs only during the start. A controller
# does with the first compiler; a broker's second one begins at ten times its usual thresholds,
# which what is really hot still passes.
LIGHT_COMPILER = ("-XX:TieredStopAtLevel=1",)
LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
# Kafka turns PEM files into key stores in memory; hashing their password ten thousand times for
# each listener protects nothing there and took a third of the start.
QUICK_STORES = tuple(f"-Dkeystore.pkcs12.{count}IterationCount=1" for count in ("keyPbe", "certPbe", "mac"))


@dataclass(frozen=True)
class TlsFiles:
    """Where a node finds its keys and whom it trusts."""

    client_store: str  # key and certificate for CLIENT and CLIENT_TLS
    client_trust: str  # the authority of users' certificates
    link_store: str  # key and certificate for LINK and CONTROLLER
    link_trust: str  # the authority of nodes and administration


def server_properties(
    node: Node, site: SiteLayout, tls: TlsFiles, *, open_to_clients: bool = True
) -> dict[str, str]:
    """All settings of one node, in the order in which they are written."""
    settings = {
        "process.roles": node.kind.value,
        "node.id": str(node.id),
        "controller.quorum.bootstrap.servers": ",".join(site.bootstrap(Listener.CONTROLLER)),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": PROTOCOLS,
        "log.dirs": ",".join(str(path) for path in node.data),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"{NODE_PRINCIPAL};{ADMIN_PRINCIPAL}",
        "allow.everyone.if.no.acl.found": "false",
    }
    settings.update(_listeners(node, open_to_clients))
    settings.update(_link_tls(tls, Listener.CONTROLLER.value))
    if node.kind is Kind.BROKER:
        settings["inter.broker.listener.name"] = "LINK"
        settings.update(_link_tls(tls, Listener.LINK.value))
        if not open_to_clients:
            settings["listener.security.protocol.map"] += f",{SPARE}:SSL"
            settings.update(_link_tls(tls, SPARE.lower()))
        settings.update(_client_tls(tls))
        if node.rack:
            settings["broker.rack"] = node.rack
            settings["replica.selector.class"] = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    # Controllers get them too: some, such as the default replication, are theirs to apply.
    settings.update(_defaults(node, len(site.brokers)))
    settings.update(node.settings)
    return settings


def _listeners(node: Node, open_to_clients: bool) -> dict[str, str]:
    clients = (Listener.CLIENT, Listener.CLIENT_TLS)
    names = [name for name in LISTENERS[node.kind] if open_to_clients or name not in clients]
    host = f"[{node.listen}]" if ":" in node.listen else node.listen
    settings = {"listeners": ",".join(f"{name.name}://{host}:{node.ports[name]}" for name in names)}
    if node.kind is Kind.BROKER:
        advertised = (f"{name.name}://{node.address(name)}" for name in names)
        settings["advertised.listeners"] = ",".join(advertised)
        if not open_to_clients:
            settings["listeners"] += f",{SPARE}://127.0.0.1:0"
    else:
        settings["advertised.listeners"] = f"CONTROLLER://{node.address(Listener.CONTROLLER)}"
    return settings


def _link_tls(tls: TlsFiles, listener: str) -> dict[str, str]:
    prefix = f"listener.name.{listener}"
    settings = _stores(prefix, tls.link_store, tls.link_trust)
    settings[f"{prefix}.ssl.client.auth"] = "required"
    settings[f"{prefix}.ssl.principal.mapping.rules"] = LINK_PRINCIPALS
    if listener == Listener.LINK.value:
        # The client fence caps all connections of a broker; this listener must stay outside it.
        settings[f"{prefix}.max.connections"] = str(MAXIMUM)
    return settings


def _client_tls(tls: TlsFiles) -> dict[str, str]:
    settings = _stores("listener.name.client", tls.client_store, tls.client_trust)
    settings["listener.name.client.sasl.enabled.mechanisms"] = "SCRAM-SHA-512,SCRAM-SHA-256"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    for mechanism in ("scram-sha-512", "scram-sha-256"):
        settings[f"listener.name.client.{mechanism}.sasl.jaas.config"] = module
    settings.update(_stores("listener.name.client_tls", tls.client_store, tls.client_trust))
    settings["listener.name.client_tls.ssl.client.auth"] = "required"
    settings["listener.name.client_tls.ssl.principal.mapping.rules"] = USER_PRINCIPALS
    return settings


def _stores(prefix: str, store: str, trust: str) -> dict[str, str]:
    return {
        f"{prefix}.ssl.keystore.type": "PEM",
        f"{prefix}.ssl.keystore.location": store,
        f"{prefix}.ssl.truststore.type": "PEM",
        f"{prefix}.ssl.truststore.location": trust,
        f"{prefix}.ssl.endpoint.identification.algorithm": "https",
        f"{prefix}.ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        # A renewed certificate may lack a name that the file no longer has (KIP-978).
        f"{prefix}.ssl.allow.san.changes": "true",
    }


def _defaults(node: Node, brokers: int) -> dict[str, str]:
    copies = str(min(3, brokers))
    at_least = str(max(1, min(3, brokers) - 1))
    return {
        "default.replication.factor": copies,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": at_least,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": at_least,
        "auto.create.topics.enable": "false",
        "unclean.leader.election.enable": "false",
        # Copied group offsets must not expire at a standby where nobody commits.
        "offsets.retention.minutes": str(MAXIMUM),
        # A broker is let in by an answer to a heartbeat: with Kafka's 2 s, a start waits for it.
        "broker.heartbeat.interval.ms": "500",
        SESSION: str(SESSION_MS),
        # Members of the newer protocol learn by a heartbeat that they have to join anew at another site; with
        # Kafka's 5 s they came seconds behind all others.
        "group.consumer.min.heartbeat.interval.ms": "2000",
        "group.consumer.heartbeat.interval.ms": "2000",
        # A promoted site forgets the lost site's producers within this time; clients wait for it.
        "producer.id.expiration.check.interval.ms": "500",
        # Kafka's 100 KB would be all that a mirror at a distance gets in a round trip; the kernel sizes them.
        "socket.send.buffer.bytes": "-1",
        "socket.receive.buffer.bytes": "-1",
        # Kafka takes 128 MB for it at the start, however small the heap.
        "log.cleaner.dedupe.buffer.size": str(min(128 << 20, node.memory_bytes // 16)),
    }


def render(settings: dict[str, str]) -> str:
    """Settings as a Java properties file."""
    return "".join(f"{name}={_escape(value)}\n" for name, value in settings.items())


def written(text: str) -> dict[str, str]:
    """The settings of a file that `render` wrote."""
    pairs = (line.split("=", 1) for line in text.splitlines() if line)
    return {name: _unescape(value) for name, value in pairs}


def _escape(value: str) -> str:
    # Java reads these files as ISO-8859-1, drops the space before a value, and takes UTF-16 units.
    return re.sub(r"^ |[^ -~]", lambda found: _units(found[0]), value.replace("\\", "\\\\"))


def _units(character: str) -> str:
    encoded = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{unit:04x}" for (unit,) in struct.iter_unpack(">H", encoded))


def _unescape(value: str) -> str:
    read = re.sub(r"\\(?:u([0-9a-f]{4})|(.))", lambda found: found[2] or chr(int(found[1], 16)), value)
    return read.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def log_configuration(log_directory: str) -> str:
    """Log4j settings of a node: one rolling file, times in UTC so that logs of all nodes merge."""
    directory = _escape(log_directory)
    return f"""\
name = twinlog
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {directory}/server.log
appender.file.filePattern = {directory}/server.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS}}{{UTC}}Z %-5p %m (%c)%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 5
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = file
logger.configs.name = org.apache.kafka.common.config.AbstractConfig
logger.configs.level = WARN
"""


def jvm_options(
    node: Node,
    site: SiteLayout,
    class_path: tuple[str, ...],
    archive: str | None,
    extra: tuple[str, ...] = (),
) -> list[str]:
    """Arguments of a node's JVM up to the class path; what the user gave comes after our own."""
    heap_mb = node.memory_bytes >> 20
    options = [
        f"-Xms{heap_mb}m",
        f"-Xmx{heap_mb}m",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
    ]
    if node.memory_bytes < SMALL_HEAP_BYTES:
        options.append("-XX:+UseSerialGC")
    else:
        options += ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]
    options += LIGHT_COMPILER if node.kind is Kind.CONTROLLER else LATE_COMPILER
    options += QUICK_STORES
    if archive is not None:
        options += archive_options(archive)
    options.append(f"-Dlog4j2.configurationFile={node.directory / 'log4j2.properties'}")
    options += [*site.jvm, *extra]
    # Without one it is the start script that says where the jars are.
    return [*options, "-cp", ":".join(class_path)] if class_path else options


def archive_options(archive: str) -> list[str]:
    """Let a JVM map an archive, or go on without it in silence if it does not fit."""
    if archive.endswith(AOT_SUFFIX):
        return [f"-XX:AOTCache={archive}", "-XX:AOTMode=auto", "-Xlog:aot=off", "-Xlog:cds=off"]
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def argument_file(options: list[str]) -> str:
    """Options as an argument file for the java launcher, which keeps long class paths out of `ps`."""
    return "".join(f'"{_quote(option)}"\n' for option in options)


def _quote(option: str) -> str:
    return option.replace("\\", "\\\\").replace('"', '\\"')
