"""Rights, passwords and quotas given at sites directly, beside the file.

For the user commands. On a site of our own the next `apply` takes back what the file does not say, so the
commands print the line that belongs there. Rules are made as for users of the file, by the role
of each site: at the standby nobody may write to a copy, however it was granted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from twinlog.ops.plan import MECHANISMS
from twinlog.ops.rights import EVERYBODY, principal, rights_of
from twinlog.sites.home import Home
from twinlog.spec.model import Bus, Role, User
from twinlog.spec.patterns import ANY, matches
from twinlog.wire import acls, notes, quotas, roles, users
from twinlog.wire.acls import Acl, Resource
from twinlog.wire.cluster import Cluster
from twinlog.wire.quotas import Limit, Owner

IMPLIED = frozenset({roles.TOPIC, notes.OWN})  # whoever writes or reads topics has rules about these too


@dataclass(frozen=True)
class RuleRow:
    """One rule at one site."""

    site: str
    principal: str
    allow: bool
    operation: str
    resource: str
    name: str
    host: str


def rows(site: str, rules: Iterable[Acl]) -> list[RuleRow]:
    """Rules as they are shown; a prefix has an asterisk behind it."""
    return [
        RuleRow(
            site,
            rule.principal,
            rule.allow,
            rule.operation.name.lower(),
            rule.resource.name.lower(),
            rule.name + (ANY if rule.prefixed else ""),
            rule.host,
        )
        for rule in sorted(rules)
    ]


def about(rules: Iterable[Acl], *, user: str | None = None, topic: str | None = None) -> list[Acl]:
    """The rules that hold for a user, for a topic, or for both."""
    return [
        rule
        for rule in rules
        if (user is None or rule.principal in (principal(user), EVERYBODY))
        and (topic is None or _is_about(rule, topic))
    ]


def _is_about(rule: Acl, topic: str) -> bool:
    return rule.resource is Resource.TOPIC and matches(rule.name + (ANY if rule.prefixed else ""), topic)


def given(home: Home, site: str, name: str, wanted: User) -> frozenset[Acl]:
    """The rules that let a user do what is wanted, at a site of its role."""
    return rights_of(home.bus, name, wanted, home.role(site))


def taken(bus: Bus, name: str, unwanted: User, present: Collection[Acl]) -> frozenset[Acl]:
    """The rules to take away, whatever the role; what other rights of the user need stays."""
    gone = {
        rule for role in Role for rule in rights_of(bus, name, unwanted, role) if rule.name not in IMPLIED
    }
    mine = {rule for rule in present if rule.principal == principal(name)}
    left = {rule for rule in mine - gone if rule.resource is Resource.TOPIC and rule.name not in IMPLIED}
    # Whoever reads and writes nothing needs not know what a site is.
    extra = set() if left else {rule for rule in mine if rule.name in IMPLIED}
    return frozenset((gone | extra) & mine)


def grant(cluster: Cluster, rules: frozenset[Acl]) -> None:
    """Give rights, and wait until every broker knows."""
    acls.add(cluster, rules)
    acls.wait_until_everywhere(cluster, present=rules)


def revoke(cluster: Cluster, rules: frozenset[Acl]) -> None:
    """Take rights, and wait until every broker knows."""
    acls.remove(cluster, rules)
    acls.wait_until_everywhere(cluster, absent=rules)


def give_password(home: Home, cluster: Cluster, name: str, user: User) -> bool:
    """Make a user known at a site; False for one that comes with a certificate and needs none."""
    if user.auth not in MECHANISMS:
        return False
    password = home.passwords.password_of(name, user.password)
    users.upsert(cluster, name, password, MECHANISMS[user.auth])
    return True


@dataclass(frozen=True)
class QuotaRow:
    """All limits of one owner at one site, per broker."""

    site: str
    user: str
    client_id: str
    limits: dict[str, float]


def quota_rows(site: str, found: dict[Owner, dict[Limit, float]]) -> list[QuotaRow]:
    """Quotas as they are shown."""
    told = [
        QuotaRow(
            site,
            _shown(owner.user),
            _shown(owner.client_id),
            {limit.value: value for limit, value in sorted(limits.items())},
        )
        for owner, limits in found.items()
        if limits
    ]
    return sorted(told, key=lambda row: (row.user, row.client_id))


def set_quota(
    cluster: Cluster, owner: Owner, values: dict[Limit, float], unset: Sequence[Limit]
) -> dict[Limit, float]:
    """Set and unset limits; returns what the owner has now."""
    quotas.alter(cluster, owner, values=values, unset=unset)

    def missing() -> str:
        present = quotas.describe(cluster).get(owner, {})
        late = [limit for limit, value in values.items() if present.get(limit) != value]
        return ", ".join(limit.value for limit in (*late, *(limit for limit in unset if limit in present)))

    cluster.wait_until(missing, f"waiting for the quota of {owner}")
    return quotas.describe(cluster).get(owner, {})


def _shown(name: quotas.Name | None) -> str:
    if name is None:
        return "any"
    return "(default)" if isinstance(name, quotas.Default) else name
