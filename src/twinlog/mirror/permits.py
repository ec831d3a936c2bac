"""Rights and quotas of an existing active, copied to an existing standby.

For clusters that Twinlog does not run; on its own, the file is applied to both. Rights on mirrored
topics go along but for all that changes a topic: nobody writes at a standby. What denies goes along
whole. Nothing is taken away, because nobody can tell whose it is: what is there in excess is named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from twinlog.errors import KafkaError
from twinlog.spec.patterns import ANY
from twinlog.wire import acls, quotas
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.cluster import Cluster
from twinlog.wire.quotas import Limit, Owner

TWINLOGS_OWN = "twinlog:"  # how the names of its own principals begin
READING = (Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)

Quotas = Mapping[Owner, Mapping[Limit, float]]


def rules_for_standby(at_active: Iterable[Acl], topics: Collection[str]) -> frozenset[Acl]:
    """The rules of the active that hold at a standby too, of those that are about these topics."""
    found: set[Acl] = set()
    for rule in at_active:
        if not _is_about(rule, topics):
            continue
        if not rule.allow or rule.operation in READING:
            found.add(rule)
        elif rule.operation is Operation.ALL:
            found.update(replace(rule, operation=operation) for operation in READING)
    return frozenset(found)


def rules_in_excess(
    at_standby: Iterable[Acl], wanted: Collection[Acl], topics: Collection[str]
) -> frozenset[Acl]:
    """What the standby allows on these topics and the active does not."""
    return frozenset(rule for rule in at_standby if rule.allow and _is_about(rule, topics)) - set(wanted)


def quotas_for_standby(at_active: Quotas, at_standby: Quotas) -> dict[Owner, dict[Limit, float]]:
    """The quotas to set at the standby."""
    changed = {
        owner: {
            limit: value for limit, value in limits.items() if at_standby.get(owner, {}).get(limit) != value
        }
        for owner, limits in at_active.items()
        if not (isinstance(owner.user, str) and owner.user.startswith(TWINLOGS_OWN))
    }
    return {owner: limits for owner, limits in changed.items() if limits}


def copy_rules(active: Cluster, standby: Cluster, topics: Collection[str]) -> frozenset[Acl]:
    """Copy rights on these topics; gives those that the standby has in excess."""
    wanted, present = rules_for_standby(_rules(active), topics), _rules(standby)
    missing = wanted - present
    acls.add(standby, missing)
    acls.wait_until_everywhere(standby, present=missing)
    return rules_in_excess(present, wanted, topics)


def copy_quotas(active: Cluster, standby: Cluster) -> tuple[Owner, ...]:
    """Copy quotas; gives whose were set."""
    changed = quotas_for_standby(quotas.describe(active), quotas.describe(standby))
    for owner, limits in changed.items():
        quotas.alter(standby, owner, values=limits)
    return tuple(changed)


def _rules(cluster: Cluster) -> frozenset[Acl]:
    try:
        return acls.describe(cluster)
    except KafkaError as error:
        if error.code == "SECURITY_DISABLED":  # a cluster without an authorizer has no rules
            return frozenset()
        raise


def _is_about(rule: Acl, topics: Collection[str]) -> bool:
    if rule.resource is not Resource.TOPIC or rule.principal.startswith(f"User:{TWINLOGS_OWN}"):
        return False
    if rule.prefixed:
        return any(topic.startswith(rule.name) for topic in topics)
    return rule.name == ANY or rule.name in topics
