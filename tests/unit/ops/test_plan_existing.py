"""Plans for a cluster that exists already: others use it too."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from twinlog.ops import plan as plans
from twinlog.ops import steps
from twinlog.ops.rights import rights
from twinlog.ops.world import TopicWorld, World
from twinlog.spec.model import Bus, Role
from twinlog.spec.roles import AT_STANDBY
from twinlog.spec.typed import validated
from twinlog.wire import roles
from twinlog.wire.access import Mechanism
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.quotas import Limit
from twinlog.wire.roles import Standing
from twinlog.wire.users import Credential

BUS = validated(
    Bus,
    {
        "bus": "orders",
        "sites": {"a": {"bootstrap": ["h:1"], "client": "a.properties"}},
        "topics": {"orders": {}},
        "users": {"shop": {"produce": ["orders"]}},
    },
)
FINGERPRINTS = {"shop": "new"}
TERM = 3
plan = partial(plans.plan, term=TERM)
ASKS = Acl(Resource.TOPIC, roles.TOPIC, "User:shop", Operation.READ)
OURS = Acl(Resource.TOPIC, "orders", "User:shop", Operation.WRITE)
THEIRS = Acl(Resource.TOPIC, "ledger", "User:shop", Operation.READ)
STRANGERS = Acl(Resource.TOPIC, "orders", "User:stranger", Operation.WRITE)
LOGIN = Credential("shop", Mechanism.SCRAM_SHA_512, 4096)
STRANGER = Credential("stranger", Mechanism.SCRAM_SHA_512, 4096)


def world(applied: dict[str, str], *rules: Acl, role: Role = Role.ACTIVE) -> World:
    return World(
        site="a",
        brokers=1,
        topics={
            "orders": TopicWorld(1, 1, {"cleanup.policy": "delete", "min.insync.replicas": "1", "x": "y"}),
            "ledger": TopicWorld(1, 1, {}),
        },
        rules=frozenset((ASKS, *rules)),
        credentials=frozenset({LOGIN, STRANGER}),
        quotas={"shop": {Limit.PRODUCE: 5.0}, "stranger": {Limit.CONSUME: 5.0}},
        applied=applied,
        standing=Standing("orders", "a", role, TERM),
    )


def test_what_others_made_is_no_difference_even_with_prune() -> None:
    assert OURS in rights(BUS, Role.ACTIVE)
    found = plan(BUS, Role.ACTIVE, world(FINGERPRINTS, OURS, THEIRS, STRANGERS), FINGERPRINTS, prune=True)
    assert found == []


def test_password_of_others_is_replaced_only_if_that_was_asked_for() -> None:
    (step,) = plan(BUS, Role.ACTIVE, world({}, OURS), FINGERPRINTS)
    assert isinstance(step, steps.SetPassword)
    assert step.destructive


def test_password_that_twinlog_set_follows_the_file() -> None:
    (step,) = plan(BUS, Role.ACTIVE, world({"shop": "old"}, OURS), FINGERPRINTS)
    assert isinstance(step, steps.SetPassword)
    assert not step.destructive


def test_a_standby_takes_back_what_the_active_was_given_and_no_more() -> None:
    there = world(FINGERPRINTS, OURS, THEIRS, STRANGERS, role=Role.STANDBY)
    settings, granted, revoked = plan(BUS, Role.STANDBY, there, FINGERPRINTS)
    assert isinstance(settings, steps.SetTopic)
    assert settings.values == AT_STANDBY
    assert granted == steps.Grant("a", "User:shop", frozenset({replace(OURS, operation=Operation.DESCRIBE)}))
    assert revoked == steps.Revoke("a", "User:shop", frozenset({OURS}))


def test_rights_of_the_mirror_are_its_own_business() -> None:
    mirror = Acl(Resource.TOPIC, "orders", "User:twinlog:link-17-1", Operation.WRITE)
    ours = validated(Bus, {"bus": "orders", "sites": {"a": {"brokers": 1}}})
    found = plan(ours, Role.STANDBY, World(site="a", brokers=1, rules=frozenset({mirror})), {})
    assert not [step for step in found if isinstance(step, steps.Revoke)]


def test_role_record_of_another_bus_is_replaced_only_if_that_was_asked_for() -> None:
    theirs = Standing("ledgers", "x", Role.ACTIVE, 3)
    found = plan(BUS, Role.ACTIVE, replace(world(FINGERPRINTS, OURS), standing=theirs), FINGERPRINTS)
    (step,) = [step for step in found if isinstance(step, steps.SetRole)]
    assert step.destructive
    ours = Standing("orders", "a", Role.STANDBY, 3)
    found = plan(BUS, Role.ACTIVE, replace(world(FINGERPRINTS, OURS), standing=ours), FINGERPRINTS)
    (step,) = [step for step in found if isinstance(step, steps.SetRole)]
    assert not step.destructive
