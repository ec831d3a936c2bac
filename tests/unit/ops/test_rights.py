"""What users may do at a site, as Kafka's rules."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.ops.rights import STANDBY_GROUPS, principal, rights, rights_of
from twinlog.spec.model import Bus, Role, Site, Topic, User
from twinlog.spec.patterns import matches
from twinlog.wire import notes, roles
from twinlog.wire.acls import Acl, Operation, Resource

NAMES = ("orders", "orders-eu", "stock", "t1", "undeclared")
FEW = settings(max_examples=50)  # buses are large to draw
SITES = {"a": Site(), "b": Site()}

patterns = st.lists(st.sampled_from((*NAMES, "orders*", "o*", "*")), max_size=3, unique=True).map(tuple)
users = st.builds(User, produce=patterns, consume=patterns, groups=patterns, transactions=patterns)
buses = st.builds(
    Bus,
    bus=st.just("model"),
    sites=st.just(SITES),
    topics=st.dictionaries(st.sampled_from(NAMES[:-1]), st.builds(Topic, mirror=st.booleans())),
    users=st.dictionaries(st.sampled_from(("shop", "bank")), users),
)


def may(rules: Iterable[Acl], user: str, operation: Operation, resource: Resource, name: str) -> bool:
    """What Kafka's authorizer would answer."""
    about = [
        rule
        for rule in rules
        if rule.principal == principal(user)
        and (rule.resource, rule.operation) == (resource, operation)
        and (name.startswith(rule.name) if rule.prefixed else rule.name in (name, "*"))
    ]
    return bool(about) and all(rule.allow for rule in about)


def wanted(chosen: Iterable[str], name: str) -> bool:
    """Whether one of the file's patterns means a name."""
    return any(matches(pattern, name) for pattern in chosen)


@FEW
@given(buses)
def test_at_the_active_a_user_may_do_what_the_file_says_and_nothing_else(bus: Bus) -> None:
    rules = rights(bus, Role.ACTIVE)
    for name, user in bus.users.items():
        for topic in NAMES:
            assert may(rules, name, Operation.WRITE, Resource.TOPIC, topic) == wanted(user.produce, topic)
            assert may(rules, name, Operation.READ, Resource.TOPIC, topic) == wanted(user.consume, topic)
            assert may(rules, name, Operation.READ, Resource.GROUP, topic) == wanted(user.groups, topic)
    assert {rule.operation for rule in rules} <= {Operation.READ, Operation.WRITE}
    assert all(rule.allow or rule.name == notes.OWN for rule in rules)


@FEW
@given(buses)
def test_at_the_standby_nobody_may_write_what_is_mirrored_or_not_declared(bus: Bus) -> None:
    rules = rights(bus, Role.STANDBY)
    for name, user in bus.users.items():
        for topic in NAMES:
            own = topic in bus.topics and not bus.topics[topic].mirror and wanted(user.produce, topic)
            assert may(rules, name, Operation.WRITE, Resource.TOPIC, topic) == own


@FEW
@given(buses)
def test_at_the_standby_an_own_group_is_for_those_who_read_nothing_mirrored(bus: Bus) -> None:
    rules = rights(bus, Role.STANDBY)
    for name, user in bus.users.items():
        reads_mirrored = any(topic.mirror and wanted(user.consume, key) for key, topic in bus.topics.items())
        for group in NAMES:
            allowed = may(rules, name, Operation.READ, Resource.GROUP, group)
            assert not (allowed and reads_mirrored)
            assert not allowed or wanted(user.groups, group)
        standby = may(rules, name, Operation.READ, Resource.GROUP, f"{STANDBY_GROUPS}report")
        assert standby or not user.consume


@FEW
@given(buses)
def test_reading_is_the_same_at_both_sites(bus: Bus) -> None:
    def reads(role: Role) -> set[Acl]:
        found = rights(bus, role)
        return {rule for rule in found if (rule.resource, rule.operation) == (Resource.TOPIC, Operation.READ)}

    assert reads(Role.ACTIVE) == reads(Role.STANDBY)


def test_transactions_go_with_something_to_write() -> None:
    bus = Bus(bus="model", sites=SITES, topics={"orders": Topic()})
    user = User(produce=("orders",), transactions=("shop-*",))
    active = rights_of(bus, "shop", user, Role.ACTIVE)
    assert may(active, "shop", Operation.WRITE, Resource.TRANSACTIONAL_ID, "shop-1")
    standby = rights_of(bus, "shop", user, Role.STANDBY)
    assert not may(standby, "shop", Operation.WRITE, Resource.TRANSACTIONAL_ID, "shop-1")


@FEW
@given(buses, st.sampled_from(Role))
def test_whoever_writes_or_reads_may_ask_for_the_role_of_a_site(bus: Bus, role: Role) -> None:
    rules = rights(bus, role)
    for name, user in bus.users.items():
        asks = may(rules, name, Operation.READ, Resource.TOPIC, roles.TOPIC)
        assert asks == bool(user.produce or user.consume)
        for own in (roles.TOPIC, f"{notes.OWN}epochs", f"{notes.OWN}move"):
            assert not may(rules, name, Operation.WRITE, Resource.TOPIC, own)


@FEW
@given(buses)
def test_at_the_standby_a_writer_may_see_how_far_the_copy_has_come(bus: Bus) -> None:
    rules = rights(bus, Role.STANDBY)
    for name, user in bus.users.items():
        for topic in NAMES:
            seen = may(rules, name, Operation.DESCRIBE, Resource.TOPIC, topic)
            assert seen == wanted(user.produce, topic)


@pytest.mark.parametrize(
    ("pattern", "name", "meant"),
    [
        ("orders", "orders", True),
        ("orders", "orders-eu", False),
        ("orders*", "orders-eu", True),
        ("orders*", "order", False),
        ("*", "anything", True),
    ],
)
def test_a_pattern_means_a_name_or_a_beginning_or_all(pattern: str, name: str, meant: bool) -> None:
    assert matches(pattern, name) is meant


def test_topics_are_made_at_the_active_by_those_who_may() -> None:
    user = User(produce=("orders*",), create=("orders*",))
    bus = Bus(bus="model", sites=SITES, users={"shop": user})
    active, standby = (rights_of(bus, "shop", user, role) for role in (Role.ACTIVE, Role.STANDBY))
    assert may(active, "shop", Operation.CREATE, Resource.TOPIC, "orders-new")
    assert not may(active, "shop", Operation.CREATE, Resource.TOPIC, "stock")
    assert not may(standby, "shop", Operation.CREATE, Resource.TOPIC, "orders-new")
