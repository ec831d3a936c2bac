"""Users that sites know and the file does not: those who have a password or a rule there.

For `twinlog user list`. On a site of our own the next `apply` takes them away, so whoever lists users wants
to see them. Twinlog's own principals are nobody's users and are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from twinlog.ops.rights import EVERYBODY, OWN_PRINCIPALS, STANDBY_GROUPS, principal
from twinlog.sites.home import MECHANISMS
from twinlog.spec.model import Auth
from twinlog.spec.patterns import ANY
from twinlog.wire import acls, roles, users
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.cluster import Cluster
from twinlog.wire.users import Credential

_PREFIX = principal("")
_AUTHS = {mechanism: auth for auth, mechanism in MECHANISMS.items()}
_IMPLIED = {roles.TOPIC, STANDBY_GROUPS + ANY}  # whoever may read or write anything may read these too


@dataclass(frozen=True)
class Known:
    """Who a site knows: who has a password there, and all rules."""

    credentials: frozenset[Credential]
    rules: frozenset[Acl]


@dataclass(frozen=True)
class Stranger:
    """A user that is not in the file, with what any of these sites lets it do."""

    user: str
    auth: Auth | None  # without a password there is no telling how it comes in
    produce: tuple[str, ...]
    consume: tuple[str, ...]
    create: tuple[str, ...]
    groups: tuple[str, ...]
    transactions: tuple[str, ...]
    sites: tuple[str, ...]


def strangers(declared: Collection[str], told: Mapping[str, Known]) -> list[Stranger]:
    """The users of sites, by name, that are not declared."""
    present = {site: _users(known) for site, known in told.items()}
    names = {name for found in present.values() for name in found} - set(declared)
    return [
        _stranger(name, {site: told[site] for site in told if name in present[site]})
        for name in sorted(names)
    ]


def ask(cluster: Cluster) -> Known:
    """Who this site knows."""
    return Known(users.describe(cluster), frozenset(acls.describe(cluster)))


def _users(known: Known) -> set[str]:
    named = {rule.principal for rule in known.rules} | {principal(one.user) for one in known.credentials}
    return {
        who.removeprefix(_PREFIX)
        for who in named
        if who.startswith(_PREFIX) and not who.startswith(OWN_PRINCIPALS) and who != EVERYBODY
    }


def _stranger(name: str, told: Mapping[str, Known]) -> Stranger:
    who = principal(name)
    rules = {rule for known in told.values() for rule in known.rules if rule.principal == who and rule.allow}
    mechanisms = {one.mechanism for known in told.values() for one in known.credentials if one.user == name}

    def may(operation: Operation, resource: Resource) -> tuple[str, ...]:
        found = {
            rule.name + (ANY if rule.prefixed else "")
            for rule in rules
            if rule.operation is operation and rule.resource is resource
        }
        return tuple(sorted(found - _IMPLIED))

    return Stranger(
        name,
        _AUTHS[max(mechanisms)] if mechanisms else None,  # the stronger one, where it has two
        produce=may(Operation.WRITE, Resource.TOPIC),
        consume=may(Operation.READ, Resource.TOPIC),
        create=may(Operation.CREATE, Resource.TOPIC),
        groups=may(Operation.READ, Resource.GROUP),
        transactions=may(Operation.WRITE, Resource.TRANSACTIONAL_ID),
        sites=tuple(told),
    )
