"""What users of the file may do at a site, as Kafka's rules. Pure.

A rule is written for what the file says and nothing more. At the standby nobody writes to a topic
that is mirrored: what a client wrote there would stand where the active's records belong. Reading
there is for groups named `standby.…`, which are never copied; a user's own groups are let in only
if all that it reads is not mirrored, because a group with members could not take copied offsets.
Whoever may write or read may also ask what a site is and, at the standby, how far its copy has come:
acks=twin needs both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from twinlog.spec.model import Bus, Role, User
from twinlog.spec.patterns import ANY, matches
from twinlog.wire import notes, roles
from twinlog.wire.acls import Acl, Operation, Resource

STANDBY_GROUPS = "standby."
EVERYBODY = "User:*"
OWN_PRINCIPALS = "User:twinlog:"  # the mirror gives and takes the rights of its own


def principal(user: str) -> str:
    """A user as Kafka names it in rules."""
    return f"User:{user}"


def rights(bus: Bus, role: Role) -> frozenset[Acl]:
    """Every rule that a site of that role has."""
    return frozenset(rule for name, user in bus.users.items() for rule in rights_of(bus, name, user, role))


def rights_of(bus: Bus, name: str, user: User, role: Role) -> frozenset[Acl]:
    """Every rule of one user at a site of that role."""
    who = principal(name)
    writable = user.produce if role is Role.ACTIVE else _not_mirrored(bus, user.produce)
    groups = tuple(user.groups)
    if role is Role.STANDBY:
        own = groups if _reads_nothing_mirrored(bus, user) else ()
        groups = (*own, STANDBY_GROUPS + ANY) if user.consume else own
    rules = [_rule(who, Resource.TOPIC, pattern, Operation.WRITE) for pattern in writable]
    rules += [_rule(who, Resource.TOPIC, pattern, Operation.READ) for pattern in user.consume]
    if role is Role.ACTIVE:  # at the standby the mirror makes them
        rules += [_rule(who, Resource.TOPIC, pattern, Operation.CREATE) for pattern in user.create]
    else:
        rules += [_rule(who, Resource.TOPIC, pattern, Operation.DESCRIBE) for pattern in user.produce]
    if user.produce or user.consume:
        rules.append(_rule(who, Resource.TOPIC, roles.TOPIC, Operation.READ))
    if any(matches(pattern, roles.TOPIC) for pattern in writable):
        # "All topics" means those of users; a client that could write notes could lie to all others.
        rules.append(replace(_rule(who, Resource.TOPIC, notes.OWN + ANY, Operation.WRITE), allow=False))
    rules += [_rule(who, Resource.GROUP, pattern, Operation.READ) for pattern in groups]
    if writable:
        rules += [_rule(who, Resource.TRANSACTIONAL_ID, one, Operation.WRITE) for one in user.transactions]
    return frozenset(rules)


def _rule(who: str, resource: Resource, pattern: str, operation: Operation) -> Acl:
    # Kafka takes a literal asterisk for "all"; a prefix is a pattern type of its own.
    prefixed = pattern.endswith(ANY) and pattern != ANY
    return Acl(resource, pattern[:-1] if prefixed else pattern, who, operation, prefixed)


def _matching(bus: Bus, patterns: Iterable[str]) -> list[str]:
    wanted = tuple(patterns)
    return [topic for topic in bus.topics if any(matches(pattern, topic) for pattern in wanted)]


def _not_mirrored(bus: Bus, patterns: Iterable[str]) -> tuple[str, ...]:
    return tuple(topic for topic in _matching(bus, patterns) if not bus.topics[topic].mirror)


def _reads_nothing_mirrored(bus: Bus, user: User) -> bool:
    read = _matching(bus, user.consume)
    return bool(read) and not any(bus.topics[topic].mirror for topic in read)
