"""Settings of brokers, topics, groups and loggers as commands show and change them.

For the config commands: each setting with its value, where the value comes from, whether a change needs a
restart, and Kafka's own words about it. Changing a setting that a running broker cannot take is
refused by Kafka; the hint then says where it belongs.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from twinlog.errors import KafkaError, UsageError
from twinlog.wire import configs
from twinlog.wire.cluster import Cluster
from twinlog.wire.configs import Entry, Kind, Source

KINDS = {"broker": Kind.BROKER, "topic": Kind.TOPIC, "group": Kind.GROUP, "logger": Kind.LOGGER}
EVERY = "all"
SOURCES = {
    Source.TOPIC: "topic",
    Source.GROUP: "group",
    Source.BROKER: "broker, at run time",
    Source.EVERY_BROKER: "all brokers, at run time",
    Source.FILE: "file of the broker",
    Source.DEFAULT: "Kafka's default",
    Source.LOGGER: "logger",
    Source.CLIENT_METRICS: "client metrics",
    Source.UNKNOWN: "unknown",
}
# What somebody gave, in contrast to what Kafka and the broker's file bring along.
GIVEN = frozenset({Source.TOPIC, Source.GROUP, Source.BROKER, Source.EVERY_BROKER})
_TAG = re.compile(r"<[^>]*>")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True)
class SettingRow:
    """One setting."""

    setting: str
    value: str | None
    source: str
    needs_restart: bool
    sensitive: bool
    documentation: str


@dataclass(frozen=True)
class Owner:
    """Whose settings: a broker by id (or all), a topic, a group, the loggers of a broker."""

    kind: Kind
    name: str

    @property
    def kafka_name(self) -> str:
        """The name under which Kafka keeps them."""
        return configs.EVERY_BROKER if self.kind is Kind.BROKER and self.name == EVERY else self.name


def owner(kind: str, name: str) -> Owner:
    """Whose settings were meant; a broker is named by its id."""
    found = KINDS[kind]
    numbered = found in (Kind.BROKER, Kind.LOGGER)
    if numbered and not (name.isdigit() or (found is Kind.BROKER and name == EVERY)):
        raise UsageError(f"'{name}' is no broker", hint="a broker is named by its id: twinlog status")
    return Owner(found, name)


def describe(cluster: Cluster, whose: Owner, keys: tuple[str, ...], *, given_only: bool) -> list[SettingRow]:
    """All settings, or the named ones, or those that somebody gave."""
    entries = configs.describe(cluster, whose.kind, whose.kafka_name, keys or None, documented=True)
    for key in keys:
        if key not in entries:
            raise KafkaError(
                f"{configs.label(whose.kind, whose.kafka_name)} has no setting '{key}'",
                code="INVALID_CONFIG",
                where=cluster.where,
                hint="is its name right? twinlog config describe shows all",
            )
    return [
        row(entry, whose.kind)
        for _, entry in sorted(entries.items())
        if not given_only or entry.source in GIVEN
    ]


def row(entry: Entry, kind: Kind) -> SettingRow:
    """A setting as it is shown; None is a value that Kafka does not tell, one that is not set is empty."""
    return SettingRow(
        entry.name,
        entry.value if entry.is_sensitive else entry.value or "",
        SOURCES[entry.source],
        kind is Kind.BROKER and entry.read_only,
        entry.is_sensitive,
        plain_words(entry.documentation),
    )


def plain_words(documentation: str) -> str:
    """Kafka's documentation without its HTML."""
    return _BLANKS.sub(" ", html.unescape(_TAG.sub("", documentation))).strip()


def change(cluster: Cluster, whose: Owner, *, values: dict[str, str], unset: tuple[str, ...]) -> None:
    """Set and unset settings, all or none; raises with where a setting belongs that cannot change now."""
    for key in (*values, *unset):
        known = configs.describe(cluster, whose.kind, whose.kafka_name, [key])
        if whose.kind is Kind.BROKER and key in known and known[key].read_only:
            raise UsageError(
                f"'{key}' is read by a broker when it starts",
                where=configs.label(whose.kind, whose.kafka_name),
                hint=f"write it into the file under kafka:, then twinlog apply --yes:  {key}: VALUE",
            )
    configs.alter(cluster, whose.kind, whose.kafka_name, values=values, unset=unset)
