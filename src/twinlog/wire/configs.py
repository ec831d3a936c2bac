"""Settings of brokers, topics, groups and loggers, as Kafka holds them.

Used by `ops` for plan and apply. Changes are incremental: what is not named stays as it is.
A broker's own settings are asked of, and changed at, that broker, because only it can judge
them; Kafka never tells the value of a sensitive setting, and neither do errors raised here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kafka.protocol.admin.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster

EVERY_BROKER = ""  # the name under which Kafka keeps what holds for all brokers
_SET, _UNSET = 0, 1
_SENSITIVE = re.compile(r"password|secret|jaas|credential|keystore|truststore", re.IGNORECASE)


class Kind(IntEnum):
    """What a setting belongs to, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4  # named by id, or EVERY_BROKER
    LOGGER = 8  # named by the broker's id; entries are loggers and their levels
    GROUP = 32


class Source(IntEnum):
    """Where a value comes from, by Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2  # changed at run time, for this broker
    EVERY_BROKER = 3  # changed at run time, for all brokers
    FILE = 4  # the broker's properties
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


_SOURCES = {source.value: source for source in Source}


@dataclass(frozen=True)
class Entry:
    """One setting. `value` is None where Kafka does not tell, as for all sensitive ones."""

    name: str
    value: str | None
    source: Source
    is_sensitive: bool
    read_only: bool
    documentation: str = ""  # where it was asked for


def describe(
    cluster: Cluster, kind: Kind, name: str, keys: Sequence[str] | None = None, *, documented: bool = False
) -> dict[str, Entry]:
    """The settings of one thing, all or the named ones, by name; with Kafka's own words about each."""
    return _describe(cluster, kind, [name], keys, documented)[name]


def describe_many(
    cluster: Cluster, kind: Kind, names: Sequence[str], keys: Sequence[str] | None = None
) -> dict[str, dict[str, Entry]]:
    """The settings of several things of a kind, by the things' names."""
    found: dict[str, dict[str, Entry]] = {}
    if kind in (Kind.BROKER, Kind.LOGGER):
        for name in names:
            found |= _describe(cluster, kind, [name], keys)
        return found
    return _describe(cluster, kind, names, keys) if names else found


def alter(
    cluster: Cluster,
    kind: Kind,
    name: str,
    *,
    values: Mapping[str, str] | None = None,
    unset: Sequence[str] = (),
    validate_only: bool = False,
) -> None:
    """Set and unset settings of one thing; all of them or none."""
    wanted = values or {}
    if not wanted and not unset:
        return
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    changes = [
        resource.AlterableConfig(name=key, config_operation=_SET, value=value)
        for key, value in wanted.items()
    ] + [resource.AlterableConfig(name=key, config_operation=_UNSET, value=None) for key in unset]
    request = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=kind.value, resource_name=name, configs=changes)],
        validate_only=validate_only,
    )
    what = f"changing {', '.join((*wanted, *unset))} of {label(kind, name)}"

    def judge(answer: IncrementalAlterConfigsResponse) -> None:
        for result in answer.responses:
            message = without_secrets(result.error_message, wanted)
            codes.check_change(result.error_code, message, what, cluster.where)

    broker_id = _asked_of(kind, name)
    cluster.ask(request, IncrementalAlterConfigsResponse, judge, broker_id=broker_id, repeatable=True)


def label(kind: Kind, name: str) -> str:
    """How messages name the owner of settings."""
    if kind is Kind.BROKER and name == EVERY_BROKER:
        return "every broker"
    return f"the loggers of broker {name}" if kind is Kind.LOGGER else f"{kind.name.lower()} '{name}'"


def without_secrets(message: str | None, values: Mapping[str, str]) -> str | None:
    """Kafka's message with the values of sensitive settings taken out: it likes to quote them."""
    if message is None:
        return None
    for key, value in values.items():
        if value and _SENSITIVE.search(key):
            message = message.replace(value, "(hidden)")
    return message


def _describe(
    cluster: Cluster,
    kind: Kind,
    names: Sequence[str],
    keys: Sequence[str] | None,
    documented: bool = False,
) -> dict[str, dict[str, Entry]]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind.value,
                resource_name=name,
                configuration_keys=None if keys is None else list(keys),
            )
            for name in names
        ],
        include_synonyms=False,
        include_documentation=documented,
    )

    def judge(answer: DescribeConfigsResponse) -> None:
        for result in answer.results:
            what = f"reading the settings of {label(kind, result.resource_name)}"
            codes.check_change(result.error_code, result.error_message, what, cluster.where)

    broker_id = _asked_of(kind, names[0])
    answer = cluster.ask(request, DescribeConfigsResponse, judge, broker_id=broker_id)
    return {
        result.resource_name: {
            entry.name: Entry(
                entry.name,
                None if entry.is_sensitive else entry.value,
                _SOURCES.get(entry.config_source, Source.UNKNOWN),
                entry.is_sensitive,
                entry.read_only,
                (entry.documentation or "") if documented else "",
            )
            for entry in result.configs
        }
        for result in answer.results
    }


def _asked_of(kind: Kind, name: str) -> int | None:
    return int(name) if kind in (Kind.BROKER, Kind.LOGGER) and name != EVERY_BROKER else None
