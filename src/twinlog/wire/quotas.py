"""Quotas: how much a user or a client id may send, fetch and ask for, on each broker.

Used by `ops` for the quotas of the file. An owner names a user, a client id, or both; DEFAULT
in the place of a name means everybody who has no quota of that kind. Setting is incremental
and may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum

from kafka.protocol.admin.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster

_USER, _CLIENT_ID = "user", "client-id"


class Default(Enum):
    """The type of DEFAULT."""

    DEFAULT = "default"


DEFAULT = Default.DEFAULT
Name = str | Default


class Limit(StrEnum):
    """What can be limited, by Kafka's names."""

    PRODUCE = "producer_byte_rate"
    CONSUME = "consumer_byte_rate"
    REQUEST = "request_percentage"
    MUTATION = "controller_mutation_rate"


_LIMITS = {limit.value: limit for limit in Limit}


@dataclass(frozen=True)
class Owner:
    """Whom a quota is for; None means that this part does not matter."""

    user: Name | None = None
    client_id: Name | None = None

    def __str__(self) -> str:
        parts = ((_USER, self.user), (_CLIENT_ID, self.client_id))
        named = [f"{kind} {_shown(name)}" for kind, name in parts if name is not None]
        return " with ".join(named) or "nobody"


def describe(cluster: Cluster) -> dict[Owner, dict[Limit, float]]:
    """Every quota of users and client ids, by owner; quotas by network address are left out."""

    def judge(answer: DescribeClientQuotasResponse) -> None:
        codes.check(answer.error_code, answer.error_message, "reading the quotas", cluster.where)

    request = DescribeClientQuotasRequest(components=[], strict=False)
    answer = cluster.ask(request, DescribeClientQuotasResponse, judge)
    found: dict[Owner, dict[Limit, float]] = {}
    for entry in answer.entries or []:
        parts = {part.entity_type: part.entity_name for part in entry.entity}
        if parts.keys() <= {_USER, _CLIENT_ID}:
            owner = Owner(_read_name(parts, _USER), _read_name(parts, _CLIENT_ID))
            found[owner] = {_LIMITS[value.key]: value.value for value in entry.values if value.key in _LIMITS}
    return found


def alter(
    cluster: Cluster,
    owner: Owner,
    *,
    values: Mapping[Limit, float] | None = None,
    unset: Sequence[Limit] = (),
) -> None:
    """Set and unset limits of one owner."""
    wanted = values or {}
    if not wanted and not unset:
        return
    kind = AlterClientQuotasRequest.EntryData
    parts = ((_USER, owner.user), (_CLIENT_ID, owner.client_id))
    entry = kind(
        entity=[
            kind.EntityData(entity_type=part, entity_name=None if isinstance(name, Default) else name)
            for part, name in parts
            if name is not None
        ],
        ops=[kind.OpData(key=key.value, value=float(value), remove=False) for key, value in wanted.items()]
        + [kind.OpData(key=key.value, value=0.0, remove=True) for key in unset],
    )

    def judge(answer: AlterClientQuotasResponse) -> None:
        for result in answer.entries:
            what = f"changing the quota of {owner}"
            codes.check_change(result.error_code, result.error_message, what, cluster.where)

    request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
    cluster.ask(request, AlterClientQuotasResponse, judge, repeatable=True)


def _shown(name: Name) -> str:
    return "(default)" if isinstance(name, Default) else f"'{name}'"


def _read_name(parts: Mapping[str, str | None], kind: str) -> Name | None:
    if kind not in parts:
        return None
    name = parts[kind]
    return DEFAULT if name is None else name
