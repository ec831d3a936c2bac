"""Broker settings that `kafka:` cannot set, each with the reason and what to do instead.

Asked by the rules of the file. Three sorts: what Twinlog sets itself because security or identity
rests on it, what Kafka 4 no longer has, and what belongs to clients. Pure tables; a name that is
in none of them may still be unknown to Kafka, which is for `kafka_settings` to say.
"""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.spec.kafka_settings import LISTENER_PREFIX

LISTENERS = ("client", "client_tls")  # those of which users may change settings


@dataclass(frozen=True)
class Refusal:
    """Why a name is refused, and what to do instead."""

    what: str
    hint: str


_OWNED = {
    "process.roles": "use `brokers:` and `controllers:` of the site; no node is both",
    "node.id": "ids are given once and kept, and never meet between sites",
    "broker.id": "ids are given once and kept, and never meet between sites",
    "listeners": "use `listen:` and `port:` of the site or broker",
    "advertised.listeners": "use `advertise:` and `port:` of the site or broker",
    "early.start.listeners": "use `listen:` and `port:` of the site or broker",
    "listener.security.protocol.map": "every listener is encrypted; see `auth:` of a user",
    "log.dirs": "use `data:` of the site or broker",
    "log.dir": "use `data:` of the site or broker",
    "metadata.log.dir": "use `data:` of the site or broker",
    "broker.rack": "use `racks:` of the site or `rack:` of the broker",
    "authorizer.class.name": "declare `users:`; everything else is denied",
    "super.users": "declare `users:` with what each may do",
    "allow.everyone.if.no.acl.found": "declare `users:` with what each may do",
    "principal.builder.class": "users are named in `users:`",
    "security.inter.broker.protocol": "brokers talk to each other over mutual TLS",
    "controller.listener.names": "controllers have a listener of their own",
    "controller.quorum.voters": "use `controllers:` of the site",
    "controller.quorum.bootstrap.servers": "use `controllers:` of the site",
    "controller.quorum.auto.join.enable": "voters are added and removed by Twinlog",
}
_OWNED_PREFIXES = {
    "inter.broker.": "brokers talk to each other over mutual TLS",
    "ssl.": "certificates are made by Twinlog: see `certificates:`",
    "sasl.": "users prove who they are as `auth:` of the user says",
}
_REMOVED = {
    "inter.broker.protocol.version": "a new site starts with the newest metadata version",
    "log.message.format.version": "Kafka 4 has one message format",
    "message.format.version": "Kafka 4 has one message format",
    "log.message.downconversion.enable": "Kafka 4 converts messages for no one",
    "message.downconversion.enable": "Kafka 4 converts messages for no one",
    "log.message.timestamp.difference.max.ms": (
        "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
    ),
    "message.timestamp.difference.max.ms": (
        "use message.timestamp.before.max.ms and message.timestamp.after.max.ms"
    ),
    "control.plane.listener.name": "controllers have a listener of their own",
    "broker.id.generation.enable": "ids are given once and kept",
    "reserved.broker.max.id": "ids are given once and kept",
    "controlled.shutdown.max.retries": "KRaft brokers leave in one step; remove it",
    "controlled.shutdown.retry.backoff.ms": "KRaft brokers leave in one step; remove it",
    "leader.imbalance.per.broker.percentage": "KRaft moves every leader back; remove it",
    "offsets.commit.required.acks": "commits always wait for all in-sync replicas; remove it",
    "delegation.token.master.key": "use delegation.token.secret.key",
    "quota.producer.default": "use `quota:` of a user",
    "quota.consumer.default": "use `quota:` of a user",
    "advertised.host.name": "use `advertise:` of the site or broker",
    "advertised.port": "use `port:` of the site or broker",
    "host.name": "use `listen:` of the site or broker",
    "port": "use `port:` of the site or broker",
}
_REMOVED_PREFIXES = {
    "zookeeper.": "Kafka 4 keeps its metadata in controllers: `controllers:` of the site",
    "password.encoder.": "it served passwords kept in ZooKeeper; remove it",
}
_CLIENTS = {
    "fetch.message.max.bytes": (
        "an old consumer setting; the broker's are message.max.bytes and replica.fetch.max.bytes, "
        "and `twinlog client` prints matching sizes for consumers"
    ),
    "max.request.size": "the broker's is message.max.bytes; `twinlog client` prints the producer's",
    "max.partition.fetch.bytes": "the broker's is message.max.bytes; `twinlog client` prints the consumer's",
    "session.timeout.ms": "the broker's are group.min.session.timeout.ms and group.max.session.timeout.ms",
    **dict.fromkeys(
        (
            "acks",
            "auto.offset.reset",
            "batch.size",
            "bootstrap.servers",
            "buffer.memory",
            "client.id",
            "enable.auto.commit",
            "enable.idempotence",
            "group.id",
            "key.deserializer",
            "key.serializer",
            "linger.ms",
            "max.poll.interval.ms",
            "max.poll.records",
            "retries",
            "security.protocol",
            "transactional.id",
            "value.deserializer",
            "value.serializer",
        ),
        "set it in the client; `twinlog client USER` prints a client file to start from",
    ),
}


def refusal(name: str) -> Refusal | None:
    """Why a broker setting cannot be set through the file, or None if nothing stands against it."""
    if name.startswith(LISTENER_PREFIX):
        return _listener_refusal(name)
    if hint := _REMOVED.get(name) or _by_prefix(name, _REMOVED_PREFIXES):
        return Refusal(f"{name} is gone since Kafka 4.0", hint)
    if hint := _OWNED.get(name) or _by_prefix(name, _OWNED_PREFIXES):
        return Refusal(f"{name} is set by Twinlog itself", hint)
    if hint := _CLIENTS.get(name):
        return Refusal(f"{name} is a setting of clients, not of brokers", hint)
    return None


def _listener_refusal(name: str) -> Refusal | None:
    listener, _, rest = name.removeprefix(LISTENER_PREFIX).partition(".")
    if listener in ("link", "controller"):
        return Refusal(f"{name} is set by Twinlog itself", "this listener is for the site's own nodes")
    if listener not in LISTENERS:
        return Refusal(f"there is no listener {listener!r}", f"the listeners are {' and '.join(LISTENERS)}")
    found = refusal(rest)
    return Refusal(f"{name} is set by Twinlog itself", found.hint) if found else None


def _by_prefix(name: str, table: dict[str, str]) -> str | None:
    return next((hint for prefix, hint in table.items() if name.startswith(prefix)), None)
