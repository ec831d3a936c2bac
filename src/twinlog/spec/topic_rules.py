"""Rules for topics: names, copies, settings and sizes. Pure."""

from __future__ import annotations

from twinlog.spec import setting_rules
from twinlog.spec.document import Path
from twinlog.spec.effective import (
    REPLICA_FETCH_BYTES,
    REQUEST_BYTES,
    field_settings,
    min_insync,
    replication,
    setting_bytes,
    topic_message_bytes,
)
from twinlog.spec.finding import Finding, Findings, warning
from twinlog.spec.kafka_settings import SettingError, canonical
from twinlog.spec.model import Bus, Cleanup, Topic

# Kafka's word, and the field that says the same.
_FIELDS = {
    "min.insync.replicas": "min_insync",
    "cleanup.policy": "cleanup",
    "retention.ms": "retention",
    "retention.bytes": "retention_bytes",
    "max.message.bytes": "max_message",
}


def of_topic(bus: Bus, name: str) -> Findings:
    """What can be said of a topic without looking at a site."""
    topic, path = bus.topics[name], ("topics", name)
    if name in (".", ".."):
        yield Finding(path, f"a topic cannot be called {name!r}", "give it a name with letters", at_key=True)
    if name.startswith("__"):
        hint = "names with two underscores in front belong to Kafka itself"
        yield Finding(path, f"{name} is a name for internal topics", hint, at_key=True)
    yield from setting_rules.topic_settings(topic.config, (*path, "config"))
    yield from _contradictions(topic, path)
    if topic.replication == 1:
        what = "with one copy a record is lost with its broker"
        yield warning((*path, "replication"), what, "replication: 3 keeps two more")
    for field in ("retention", "retention_bytes"):
        if topic.cleanup is Cleanup.COMPACT and getattr(topic, field) is not None:
            what = f"{field} does nothing while cleanup is compact"
            yield warning((*path, field), what, "cleanup: compact,delete does both")


def _contradictions(topic: Topic, path: Path) -> Findings:
    said = field_settings(topic)
    for setting, field in _FIELDS.items():
        if setting not in topic.config or setting not in said:
            continue
        try:
            value = canonical(setting, topic.config[setting], "topic")
        except SettingError:
            continue
        if value != said[setting]:
            what = f"{setting} is {value} here, but {field} says {said[setting]}"
            yield Finding((*path, "config", setting), what, f"keep {field} and remove this")


def on_sites(bus: Bus, name: str) -> Findings:
    """What a topic asks of the sites that Twinlog runs."""
    topic, path = bus.topics[name], ("topics", name)
    seen: set[Path] = set()
    for site_name, site in bus.sites.items():
        if site.exists_already or not site.broker_specs:
            continue
        found = [*_copies(bus, topic, path, site_name), *_sizes(bus, topic, path, site_name)]
        # What is wrong on one site is as a rule wrong on the other, and said once.
        yield from (finding for finding in found if finding.path not in seen)
        seen |= {finding.path for finding in found}


def _copies(bus: Bus, topic: Topic, path: Path, site: str) -> Findings:
    brokers = len(bus.sites[site].broker_specs)
    copies, needed = replication(bus, topic, site), min_insync(bus, topic, site)
    if copies > brokers:
        what = f"{copies} copies need {copies} brokers, and site {site} has {brokers}"
        yield Finding((*path, "replication"), what, f"use at most {brokers}, or add brokers")
        return
    in_config = "min.insync.replicas" in topic.config and topic.min_insync is None
    here: Path = (*path, "config", "min.insync.replicas") if in_config else (*path, "min_insync")
    if needed > copies:
        what = f"min_insync {needed} is above the {copies} copies on site {site}: nothing can be written"
        yield Finding(here, what, f"use at most {max(1, copies - 1)}")
    elif needed == copies > 1:
        what = f"min_insync {needed} of {copies} copies: writing stops when one broker stops"
        yield warning(here, what, f"min_insync: {copies - 1} lets one broker be away")


def _sizes(bus: Bus, topic: Topic, path: Path, site: str) -> Findings:
    size = topic_message_bytes(topic)
    if size is None:
        return
    in_config = topic.max_message is None
    here: Path = (*path, "config", "max.message.bytes") if in_config else (*path, "max_message")
    request, fetch = setting_bytes(bus, site, REQUEST_BYTES), setting_bytes(bus, site, REPLICA_FETCH_BYTES)
    if size >= request:
        what = f"messages of {size} bytes do not fit a request ({REQUEST_BYTES} is {request})"
        yield Finding(here, what, f"lower it, or raise {REQUEST_BYTES} under kafka:")
    elif size > fetch:
        what = f"messages of {size} bytes are above {REPLICA_FETCH_BYTES} ({fetch})"
        yield warning(here, what, f"set {REPLICA_FETCH_BYTES} to {size} under kafka:")


def collisions(bus: Bus) -> Findings:
    """Kafka's metrics write a dot as an underscore, so it refuses two names that differ only there."""
    seen: dict[str, str] = {}
    for name in bus.topics:
        form = name.replace(".", "_")
        if form in seen:
            what = f"{name} and {seen[form]} are one name to Kafka's metrics"
            yield Finding(
                ("topics", name), what, "dots and underscores count as the same; rename one", at_key=True
            )
        seen.setdefault(form, name)
