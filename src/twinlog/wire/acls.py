"""Access rules (ACLs): who may do what, and making sure that every broker has heard.

Used by `ops` to give a site's users exactly what the file says. A rule is a value; two equal
rules are one rule to Kafka too, so adding and removing may be repeated. Rules reach brokers a
little after the answer: whoever counts on them calls `wait_until_everywhere` first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import IntEnum

from kafka.protocol.admin.acl import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster
from twinlog.wire.operations import Operation

__all__ = [
    "ANY_HOST",
    "CLUSTER_NAME",
    "Acl",
    "Operation",
    "Resource",
    "add",
    "describe",
    "remove",
    "wait_until_everywhere",
]

CLUSTER_NAME = "kafka-cluster"  # the only name that a CLUSTER rule can have
ANY_HOST = "*"
_ANY = 1
_DENY, _ALLOW = 2, 3
_LITERAL, _PREFIXED = 3, 4


class Resource(IntEnum):
    """What a rule is about, by Kafka's numbers."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


@dataclass(frozen=True, order=True)
class Acl:
    """One rule. `prefixed`: `name` is the beginning of the names it is about."""

    resource: Resource
    name: str
    principal: str  # as in "User:shop"
    operation: Operation
    prefixed: bool = False
    allow: bool = True
    host: str = ANY_HOST

    def __str__(self) -> str:
        verb = "may" if self.allow else "must not"
        star = "*" if self.prefixed else ""
        place = "" if self.host == ANY_HOST else f" from {self.host}"
        return f"{self.principal} {verb} {self.operation.name} {self.resource.name} {self.name}{star}{place}"


def describe(
    cluster: Cluster, *, principal: str | None = None, broker_id: int | None = None
) -> frozenset[Acl]:
    """All rules, or those of one principal, as any broker (or the named one) knows them."""
    request = DescribeAclsRequest(
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=principal,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )

    def judge(answer: DescribeAclsResponse) -> None:
        codes.check(answer.error_code, answer.error_message, "reading the access rules", cluster.where)

    answer = cluster.ask(request, DescribeAclsResponse, judge, broker_id=broker_id)
    return frozenset(
        Acl(
            Resource(found.resource_type),
            found.resource_name,
            rule.principal,
            Operation(rule.operation),
            found.pattern_type == _PREFIXED,
            rule.permission_type == _ALLOW,
            rule.host,
        )
        for found in answer.resources
        for rule in found.acls
    )


def add(cluster: Cluster, acls: Iterable[Acl]) -> None:
    """Add rules; those that are there already stay."""
    rules = sorted(set(acls))
    if not rules:
        return
    request = CreateAclsRequest(
        creations=[
            CreateAclsRequest.AclCreation(
                resource_type=rule.resource.value,
                resource_name=rule.name,
                resource_pattern_type=_PREFIXED if rule.prefixed else _LITERAL,
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation.value,
                permission_type=_ALLOW if rule.allow else _DENY,
            )
            for rule in rules
        ]
    )

    def judge(answer: CreateAclsResponse) -> None:
        for rule, result in zip(rules, answer.results, strict=True):
            what = f"adding the rule '{rule}'"
            codes.check_change(result.error_code, result.error_message, what, cluster.where)

    cluster.ask(request, CreateAclsResponse, judge, repeatable=True)


def remove(cluster: Cluster, acls: Iterable[Acl]) -> None:
    """Remove exactly these rules; those that are not there are no problem."""
    rules = sorted(set(acls))
    if not rules:
        return
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsRequest.DeleteAclsFilter(
                resource_type_filter=rule.resource.value,
                resource_name_filter=rule.name,
                pattern_type_filter=_PREFIXED if rule.prefixed else _LITERAL,
                principal_filter=rule.principal,
                host_filter=rule.host,
                operation=rule.operation.value,
                permission_type=_ALLOW if rule.allow else _DENY,
            )
            for rule in rules
        ]
    )

    def judge(answer: DeleteAclsResponse) -> None:
        for rule, result in zip(rules, answer.filter_results, strict=True):
            what = f"removing the rule '{rule}'"
            codes.check_change(result.error_code, result.error_message, what, cluster.where)
            for match in result.matching_acls:
                codes.check_change(match.error_code, match.error_message, what, cluster.where)

    cluster.ask(request, DeleteAclsResponse, judge, repeatable=True)


def wait_until_everywhere(
    cluster: Cluster, *, present: Collection[Acl] = (), absent: Collection[Acl] = ()
) -> None:
    """Wait until every live broker has the first rules and none of the second."""

    def missing() -> str:
        for broker in cluster.brokers():
            known = describe(cluster, broker_id=broker.id)
            lacking, left = set(present) - known, set(absent) & known
            if lacking or left:
                return f"broker {broker.id} lacks {len(lacking)} and still has {len(left)} of them"
        return ""

    cluster.wait_until(missing, "waiting for access rules")
