"""What a bus comes to, site by site: settings, sizes, ports and disk, with all defaults applied.

Pure; used by the rules of the file and by everything that configures brokers, topics or clients.
Of two places that say the same the nearer one wins: bus, then site, then broker; for a topic its
own fields and `config:`, which `check` keeps from contradicting each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from twinlog.spec.kafka_settings import SettingError, canonical, default_of
from twinlog.spec.model import Broker, Bus, Cleanup, Site, Topic

MESSAGE_BYTES = "message.max.bytes"
REPLICA_FETCH_BYTES = "replica.fetch.max.bytes"
REQUEST_BYTES = "socket.request.max.bytes"
SESSION = "broker.session.timeout.ms"
SESSION_MS = 4000  # a killed broker holds up writes, and one that ended in order is kept out, for so long

# With `port:` a broker takes three ports from there on and a site's next broker starts four later;
# controllers listen a thousand above the site's port.
PORTS_PER_BROKER = 3
PORT_STEP = 4
CONTROLLER_PORTS_FROM = 1000


def broker_settings(bus: Bus, site_name: str, broker: int | None = None) -> dict[str, str]:
    """The declared Kafka settings of a site (or of its broker at that index), as Kafka takes them."""
    site = bus.sites[site_name]
    declared = {**bus.kafka, **site.kafka}
    if broker is not None:
        declared |= site.broker_specs[broker].kafka
    return {name: canonical(name, value) for name, value in declared.items()}


def setting_bytes(bus: Bus, site_name: str, setting: str) -> int:
    """A site's value of a broker setting that is a whole number, or Kafka's default."""
    declared = {**bus.kafka, **bus.sites[site_name].kafka}
    default = int(default_of(setting) or 0)
    if setting not in declared:
        return default
    try:
        return int(canonical(setting, declared[setting]))
    except SettingError:
        return default  # reported where it stands


def broker_session_s(bus: Bus, site_name: str) -> float:
    """How long a site's broker that died holds up writes which its copies take part in."""
    declared = {**bus.kafka, **bus.sites[site_name].kafka}
    return (setting_bytes(bus, site_name, SESSION) if SESSION in declared else SESSION_MS) / 1000


def max_message_bytes(bus: Bus, site: str) -> int:
    """The largest batch that a site takes, unless a topic says otherwise."""
    return setting_bytes(bus, site, MESSAGE_BYTES)


def largest_message_bytes(bus: Bus, site: str) -> int:
    """The largest batch that any declared topic of a site takes; clients must be able to hold it."""
    sizes = [size for topic in bus.topics.values() if (size := topic_message_bytes(topic)) is not None]
    return max([max_message_bytes(bus, site), *sizes])


def topic_message_bytes(topic: Topic) -> int | None:
    """The largest batch that a topic takes, if the topic says so itself."""
    own = _own_settings(topic).get("max.message.bytes")
    return None if own is None else int(own)


def replication(bus: Bus, topic: Topic, site: str) -> int:
    """Copies of each partition of a topic on a site."""
    return topic.replication_on(len(bus.sites[site].broker_specs))


def min_insync(bus: Bus, topic: Topic, site: str) -> int:
    """Copies that must have a record before acks=all is answered, on a site."""
    own = _own_settings(topic).get("min.insync.replicas")
    return topic.min_insync_on(len(bus.sites[site].broker_specs)) if own is None else int(own)


def topic_settings(bus: Bus, topic: Topic, site: str) -> dict[str, str]:
    """The topic-level Kafka settings that a topic is declared to have on a site."""
    settings = {"cleanup.policy": topic.cleanup.value, **_own_settings(topic)}
    settings["min.insync.replicas"] = str(min_insync(bus, topic, site))
    return settings


def field_settings(topic: Topic) -> dict[str, str]:
    """What the fields of a topic, as far as they were given, say in Kafka's words."""
    settings: dict[str, str] = {}
    if topic.min_insync is not None:
        settings["min.insync.replicas"] = str(topic.min_insync)
    if "cleanup" in topic.given:
        settings["cleanup.policy"] = topic.cleanup.value
    if topic.retention == "forever":
        settings["retention.ms"] = "-1"
    elif topic.retention is not None:
        settings["retention.ms"] = str(round(topic.retention * 1000))
    if topic.retention_bytes is not None:
        settings["retention.bytes"] = str(int(topic.retention_bytes))
    if topic.max_message is not None:
        settings["max.message.bytes"] = str(int(topic.max_message))
    return settings


def needed_bytes_per_broker(bus: Bus, site: str) -> int | None:
    """Disk that a broker may come to need for the declared topics; None if a topic has no limit.

    Kafka deletes whole segments, so each partition may hold one more than its limit.
    """
    brokers = len(bus.sites[site].broker_specs)
    total = 0
    for topic in bus.topics.values():
        settings = topic_settings(bus, topic, site)
        retention = int(settings.get("retention.bytes", setting_bytes(bus, site, "log.retention.bytes")))
        segment = int(settings.get("segment.bytes", setting_bytes(bus, site, "log.segment.bytes")))
        if retention < 0 or settings["cleanup.policy"] == Cleanup.COMPACT.value:
            return None
        copies = topic.partitions * replication(bus, topic, site)
        held = min(topic.partitions, math.ceil(copies / brokers))
        total += held * (retention + segment)
    return total


def broker_ports(site: Site) -> Mapping[int, range]:
    """The ports of each broker whose ports are declared, by the broker's index."""
    ports: dict[int, range] = {}
    for index, broker in enumerate(site.broker_specs):
        first = broker.port or (site.port + index * PORT_STEP if site.port else None)
        if first is not None:
            ports[index] = range(first, first + PORTS_PER_BROKER)
    return ports


def controller_ports(site: Site) -> range:
    """The ports of a site's controllers if they are declared, else none."""
    if site.port is None:
        return range(0)
    first = site.port + CONTROLLER_PORTS_FROM
    return range(first, first + site.controllers)


def is_remote(site: Site, broker: Broker) -> bool:
    """Whether a broker runs on another machine, where Twinlog does not start it."""
    return site.remote if broker.remote is None else broker.remote


def _own_settings(topic: Topic) -> dict[str, str]:
    settings = field_settings(topic)
    for name, value in topic.config.items():
        try:
            settings.setdefault(name, canonical(name, value, "topic"))
        except SettingError:
            continue  # reported where it stands
    return settings
