"""The difference between file and world, on models of both: taking the steps leaves no difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial, reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.cli.plan import table_of
from twinlog.ops import plan as plans
from twinlog.ops import steps
from twinlog.ops.plan import loses_records
from twinlog.ops.rights import principal, rights
from twinlog.ops.world import NodeWorld, TopicWorld, World
from twinlog.sites.layout import Kept
from twinlog.spec.model import Auth, Bus, Cleanup, Quota, Role, Site, Topic, User
from twinlog.spec.units import BytesPerSecond, Duration
from twinlog.wire.access import Mechanism
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.quotas import Limit
from twinlog.wire.roles import Standing
from twinlog.wire.users import Credential

SITE = "a"
NAMES = ("orders", "orders-eu", "stock", "t1")
USERS = ("shop", "bank", "old")
OURS = Site(brokers=3)
EXISTING = Site(bootstrap=("kafka.example:9093",), client="client.properties")
FINGERPRINTS = {name: f"#{name}" for name in USERS}
ITERATIONS = 8192
TERM = 3
ACTIVE = Standing("model", SITE, Role.ACTIVE, TERM)
STANDBY = Standing("model", SITE, Role.STANDBY, TERM)
plan = partial(plans.plan, term=TERM)
# A bus and a world are large to draw; what is wrong shows within tens of them.
FEW = settings(max_examples=40)

patterns = st.lists(st.sampled_from((*NAMES, "orders*", "*")), max_size=2, unique=True).map(tuple)
topics = st.builds(
    Topic,
    partitions=st.integers(1, 4),
    replication=st.none() | st.just(3),
    mirror=st.booleans(),
    cleanup=st.sampled_from(Cleanup),
    retention=st.sampled_from((None, "forever", Duration(60.0), Duration(86400.0))),
)
users = st.builds(
    User,
    auth=st.sampled_from(Auth),
    produce=patterns,
    consume=patterns,
    groups=patterns,
    transactions=patterns,
    quota=st.builds(
        Quota,
        produce=st.sampled_from((None, BytesPerSecond(1000), BytesPerSecond(2000))),
        request=st.sampled_from((None, 50.0, 75.0)),
    ),
)
settings_of_topics = st.dictionaries(
    st.sampled_from(("cleanup.policy", "retention.ms", "segment.bytes", "min.insync.replicas")),
    st.sampled_from(("1", "2", "60000")),
).map(lambda found: found | ({"cleanup.policy": "compact"} if "cleanup.policy" in found else {}))
present_topics = st.builds(
    TopicWorld, partitions=st.integers(1, 4), replication=st.just(3), settings=settings_of_topics
)
rules = st.builds(
    Acl,
    resource=st.sampled_from((Resource.TOPIC, Resource.GROUP, Resource.TRANSACTIONAL_ID)),
    name=st.sampled_from((*NAMES, "*")),
    principal=st.sampled_from((*USERS, "stranger")).map(principal),
    operation=st.sampled_from((Operation.READ, Operation.WRITE)),
    prefixed=st.booleans(),
    allow=st.booleans(),
)
credentials = st.builds(
    Credential,
    user=st.sampled_from((*USERS, "stranger")),
    mechanism=st.sampled_from((Mechanism.SCRAM_SHA_512, Mechanism.SCRAM_SHA_256)),
    iterations=st.just(ITERATIONS),
)
limits = st.dictionaries(st.sampled_from(Limit), st.sampled_from((1000.0, 50.0)), min_size=1, max_size=3)
# Made here and not where they are drawn from: making a strategy costs more than drawing from it.
declared_topics = st.dictionaries(st.sampled_from(NAMES), topics, max_size=3)
declared_users = st.dictionaries(st.sampled_from(USERS), users, max_size=3)
topics_there = st.dictionaries(st.sampled_from((*NAMES, "foreign")), present_topics, max_size=3)
settings_there = st.sampled_from(({}, {"min.insync.replicas": "1"}, {"min.insync.replicas": "2"}))
rules_there = st.none() | st.frozensets(rules, max_size=6)
credentials_there = st.none() | st.frozensets(credentials, max_size=5)
quotas_there = st.none() | st.dictionaries(st.sampled_from((*USERS, "stranger")), limits, max_size=3)
passwords_given = st.dictionaries(st.sampled_from(USERS), st.sampled_from(("#shop", "older")))
standings = st.sampled_from((None, ACTIVE, STANDBY, replace(ACTIVE, term=TERM - 1)))


@st.composite
def buses(draw: st.DrawFn, site: Site = OURS) -> Bus:
    """A bus with that site in it and a few topics and users."""
    return Bus(
        bus="model",
        sites={SITE: site},
        topics=draw(declared_topics),
        users=draw(declared_users),
    )


@st.composite
def worlds(draw: st.DrawFn, nodes: tuple[NodeWorld, ...] = ()) -> World:
    """A running site in any state; what a cluster does not offer is None."""
    return World(
        site=SITE,
        nodes=nodes,
        brokers=3,
        topics=draw(topics_there),
        settings=draw(settings_there),
        rules=draw(rules_there),
        credentials=draw(credentials_there),
        quotas=draw(quotas_there),
        applied=draw(passwords_given),
        standing=draw(standings),
    )


def running_nodes(brokers: int = 3) -> tuple[NodeWorld, ...]:
    """All nodes of the site, as declared."""
    named = [(901, "a/controller-901"), *((number, f"a/broker-{number}") for number in range(1, brokers + 1))]
    return tuple(NodeWorld(number, name, running=True) for number, name in named)


def changed(old: Mapping[str, str], values: Mapping[str, str], unset: Iterable[str]) -> dict[str, str]:
    """Settings after a change of them."""
    return {name: value for name, value in {**old, **values}.items() if name not in unset}


def taken(world: World, step: steps.Step) -> World:
    """The world after a step, as Kafka would have it."""
    match step:
        case steps.SetCluster():
            return replace(world, settings={**world.settings, **step.values})
        case steps.CreateTopic(topic=new):
            made = TopicWorld(new.partitions, new.replication, dict(new.configs))
            return replace(world, topics={**world.topics, new.name: made})
        case steps.WidenTopic():
            wider = replace(world.topics[step.name], partitions=step.total)
            return replace(world, topics={**world.topics, step.name: wider})
        case steps.SetTopic():
            old = world.topics[step.name]
            new_settings = changed(old.settings, step.values, step.unset)
            return replace(world, topics={**world.topics, step.name: replace(old, settings=new_settings)})
        case steps.DeleteTopic():
            return replace(
                world, topics={name: one for name, one in world.topics.items() if name != step.name}
            )
        case steps.SetPassword():
            assert world.credentials is not None
            given_one = Credential(step.user, step.mechanism, ITERATIONS)
            return replace(
                world,
                credentials=world.credentials | {given_one},
                applied={**world.applied, step.user: FINGERPRINTS[step.user]},
            )
        case steps.RemovePassword():
            assert world.credentials is not None
            gone = Credential(step.user, step.mechanism, ITERATIONS)
            return replace(world, credentials=world.credentials - {gone})
        case steps.Grant():
            assert world.rules is not None
            return replace(world, rules=world.rules | step.rules)
        case steps.Revoke():
            assert world.rules is not None
            return replace(world, rules=world.rules - step.rules)
        case steps.SetRole():
            return replace(world, standing=step.standing)
        case steps.SetQuota():
            assert world.quotas is not None
            old_limits = {**world.quotas.get(step.user, {}), **step.values}
            left = {limit: value for limit, value in old_limits.items() if limit not in step.unset}
            limited = {**world.quotas, step.user: left}
            return replace(world, quotas={user: limits for user, limits in limited.items() if limits})
        case steps.Start():
            return replace(world, nodes=tuple(replace(node, running=True) for node in world.nodes))
        case steps.Restart():
            return replace(
                world,
                nodes=tuple(
                    replace(node, changed={}) if node.id == step.node else node for node in world.nodes
                ),
            )
    raise AssertionError(f"no model of {step}")


def possible(found: list[steps.Step]) -> list[steps.Step]:
    """Without what can only be told to the user."""
    return [step for step in found if not isinstance(step, steps.Impossible)]


@FEW
@given(buses(), worlds(running_nodes()), st.sampled_from(Role), st.booleans())
def test_after_the_steps_of_a_plan_the_next_plan_is_empty(
    bus: Bus, world: World, role: Role, prune: bool
) -> None:
    first = possible(plan(bus, role, world, FINGERPRINTS, prune=prune))
    after = reduce(taken, first, world)
    assert possible(plan(bus, role, after, FINGERPRINTS, prune=prune)) == []


@FEW
@given(buses(), worlds(running_nodes()), st.sampled_from(Role), st.integers(0, 20))
def test_an_apply_that_was_killed_half_way_is_finished_by_the_next_one(
    bus: Bus, world: World, role: Role, killed_after: int
) -> None:
    first = possible(plan(bus, role, world, FINGERPRINTS))
    half = reduce(taken, first[:killed_after], world)
    whole = reduce(taken, possible(plan(bus, role, half, FINGERPRINTS)), half)
    assert possible(plan(bus, role, whole, FINGERPRINTS)) == []
    assert whole == reduce(taken, first, world)


@FEW
@given(buses(), worlds(running_nodes()), st.sampled_from(Role))
def test_our_own_site_ends_with_exactly_the_rights_of_the_file(bus: Bus, world: World, role: Role) -> None:
    after = reduce(taken, possible(plan(bus, role, world, FINGERPRINTS)), world)
    assert after.rules is None or after.rules == rights(bus, role)


@FEW
@given(buses(), worlds(running_nodes()))
def test_a_standby_is_never_given_a_right_to_write_a_mirrored_topic(bus: Bus, world: World) -> None:
    given_rules = [
        rule
        for step in plan(bus, Role.STANDBY, world, FINGERPRINTS)
        if isinstance(step, steps.Grant)
        for rule in step.rules
    ]
    writable = [
        rule for rule in given_rules if (rule.resource, rule.operation) == (Resource.TOPIC, Operation.WRITE)
    ]
    for rule in writable:
        assert not rule.prefixed and rule.name != "*"
        assert not bus.topics[rule.name].mirror


@FEW
@given(buses(EXISTING), worlds(), st.sampled_from(Role), st.booleans())
def test_a_cluster_that_exists_already_loses_only_what_the_file_may_have_given(
    bus: Bus, world: World, role: Role, prune: bool
) -> None:
    found = plan(bus, role, world, FINGERPRINTS, prune=prune)
    assert not [step for step in found if isinstance(step, steps.DeleteTopic | steps.RemovePassword)]
    assert not [step for step in found if isinstance(step, steps.SetTopic | steps.SetQuota) and step.unset]
    assert not [step for step in found if isinstance(step, steps.SetCluster | steps.Start | steps.Restart)]
    revoked = {rule for step in found if isinstance(step, steps.Revoke) for rule in step.rules}
    assert revoked <= rights(bus, Role.ACTIVE) | rights(bus, Role.STANDBY)


@FEW
@given(buses(EXISTING), worlds(), st.sampled_from(Role))
def test_a_cluster_that_exists_already_needs_one_apply_too(bus: Bus, world: World, role: Role) -> None:
    first = possible(plan(bus, role, world, FINGERPRINTS))
    after = reduce(taken, first, world)
    assert possible(plan(bus, role, after, FINGERPRINTS)) == []


@FEW
@given(buses(), worlds(running_nodes()), st.sampled_from(Role))
def test_no_topic_is_deleted_unless_pruning_was_asked_for(bus: Bus, world: World, role: Role) -> None:
    found = plan(bus, role, world, FINGERPRINTS)
    assert not [step for step in found if isinstance(step, steps.DeleteTopic)]
    pruned = plan(bus, role, world, FINGERPRINTS, prune=True)
    deleted = {step.name for step in pruned if isinstance(step, steps.DeleteTopic)}
    assert deleted == set(world.topics) - set(bus.topics)
    assert all(step.destructive for step in pruned if isinstance(step, steps.DeleteTopic))


@FEW
@given(buses(), worlds(running_nodes()), st.sampled_from(Role))
def test_no_step_tells_a_password_or_what_stands_for_one(bus: Bus, world: World, role: Role) -> None:
    for step in plan(bus, role, world, FINGERPRINTS):
        assert not any(secret in step.what for secret in FINGERPRINTS.values())


def test_what_a_cluster_does_not_offer_is_left_alone() -> None:
    bus = Bus(bus="model", sites={SITE: OURS}, users={"shop": User(produce=("*",), quota=Quota(request=5.0))})
    world = World(SITE, running_nodes(), brokers=3, settings={"min.insync.replicas": "2"}, standing=ACTIVE)
    assert plan(bus, Role.ACTIVE, world, FINGERPRINTS) == []


@FEW
@given(buses(), worlds(running_nodes()), st.sampled_from(Role))
def test_a_site_is_called_standby_only_when_nobody_may_write_and_active_before_anybody_may(
    bus: Bus, world: World, role: Role
) -> None:
    found = possible(plan(bus, role, world, FINGERPRINTS))
    named = [number for number, step in enumerate(found) if isinstance(step, steps.SetRole)]
    changed = [number for number, step in enumerate(found) if isinstance(step, steps.Grant | steps.Revoke)]
    assert len(named) == (world.standing != Standing("model", SITE, role, TERM))
    for place in named:
        assert all(place < other if role is Role.ACTIVE else place > other for other in changed)


def test_widening_a_topic_loses_nothing_and_cannot_be_undone() -> None:
    step = steps.WidenTopic("a", "orders", 3, 6)
    assert step.is_final and not step.destructive
    (row,) = table_of([step], empty="").rows
    assert row["is_final"] and not row["destructive"]
    assert steps.DeleteTopic("a", "orders").is_final


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (None, "say that it is the standby of term 3"),
        (ACTIVE, "say that it is the standby of term 3 (it says active of term 3)"),
        (replace(STANDBY, term=2), "say that it is the standby of term 3 (it says standby of term 2)"),
    ],
    ids=["no record yet", "another role", "another term"],
)
def test_a_role_record_that_says_something_else_is_written_anew(before: Standing | None, told: str) -> None:
    bus = Bus(bus="model", sites={SITE: OURS})
    world = World(SITE, running_nodes(), brokers=3, settings={"min.insync.replicas": "2"}, standing=before)
    (step,) = plan(bus, Role.STANDBY, world, {})
    assert step.what == told
    assert not step.destructive


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ((), ["start 4 new nodes"]),
        (running_nodes(2), ["start 1 new node"]),
        (
            tuple(replace(node, running=node.id != 2) for node in running_nodes()),
            ["start a/broker-2"],
        ),
        (
            tuple(
                replace(node, changed={"x": ("1", None)} if node.id == 1 else {}) for node in running_nodes()
            ),
            ["restart a/broker-1: x 1 → default"],
        ),
    ],
    ids=["none yet", "one more declared", "one does not run", "one has old settings"],
)
def test_nodes_are_started_and_restarted_as_the_file_says(
    nodes: tuple[NodeWorld, ...], wanted: list[str]
) -> None:
    bus = Bus(bus="model", sites={SITE: OURS})
    world = World(SITE, nodes, brokers=3, settings={"min.insync.replicas": "2"}, standing=ACTIVE)
    assert [step.what for step in plan(bus, Role.ACTIVE, world, {})] == wanted


def test_fewer_nodes_than_there_are_cannot_be_had_by_a_plan() -> None:
    world = World(SITE, (*running_nodes(), NodeWorld(4, "a/broker-4", True, declared=False)), brokers=4)
    found = plan(Bus(bus="model", sites={SITE: OURS}), Role.ACTIVE, world, {})
    (cannot,) = [step for step in found if isinstance(step, steps.Impossible)]
    assert "its partitions would have to move first" in cannot.what


def test_other_numbers_of_controllers_or_fewer_partitions_or_copies_cannot_be_had_by_a_plan() -> None:
    bus = Bus(
        bus="model",
        sites={SITE: Site(brokers=3, controllers=3)},
        topics={"orders": Topic(partitions=1, replication=2)},
    )
    world = World(SITE, running_nodes(), brokers=3, topics={"orders": TopicWorld(4, 3, {})})
    cannot = [step for step in plan(bus, Role.ACTIVE, world, {}) if isinstance(step, steps.Impossible)]
    assert [step.subject for step in cannot] == ["controllers", "topic orders", "topic orders"]
    assert [step.hint for step in cannot] == ["controllers: 1", "partitions: 4", "replication: 3"]


def test_another_port_or_disk_of_a_formatted_node_cannot_be_had_by_a_plan() -> None:
    first, *rest = running_nodes()
    kept = (Kept("port 9092", "port: 9092"), Kept("its data in /d/a-broker-1", "data: [/d]"))
    world = World(SITE, (replace(first, keeps=kept), *rest), brokers=3)
    found = plan(Bus(bus="model", sites={SITE: OURS}), Role.ACTIVE, world, {})
    cannot = [step for step in found if isinstance(step, steps.Impossible)]
    assert [step.hint for step in cannot] == ["port: 9092", "data: [/d]"]
    assert cannot[0].what.startswith(f"{first.name}: keeps port 9092")


def test_an_unreachable_site_is_planned_as_far_as_its_nodes_are_known() -> None:
    bus = Bus(bus="model", sites={SITE: OURS}, topics={"orders": Topic()})
    stopped = tuple(replace(node, running=False) for node in running_nodes())
    found = plan(bus, Role.ACTIVE, World(SITE, stopped, unreachable="no node of it runs"), {})
    assert [type(step) for step in found] == [steps.Start, steps.Unknown]


@pytest.mark.parametrize(
    ("values", "unset", "present", "loses"),
    [
        ({"retention.ms": "1000"}, (), {"retention.ms": "2000"}, True),
        ({"retention.ms": "3000"}, (), {"retention.ms": "2000"}, False),
        ({"retention.ms": "-1"}, (), {"retention.ms": "2000"}, False),
        ({"retention.ms": "2000"}, (), {"retention.ms": "-1"}, True),
        ({"retention.bytes": "2000"}, (), {}, True),
        ({}, ("retention.ms",), {"retention.ms": "-1"}, True),
        ({"cleanup.policy": "compact"}, (), {}, True),
        ({"cleanup.policy": "compact,delete"}, (), {"cleanup.policy": "compact"}, True),
        ({"cleanup.policy": "delete"}, (), {"cleanup.policy": "compact,delete"}, False),
        ({"segment.bytes": "1"}, (), {}, False),
    ],
)
def test_a_change_that_lets_kafka_delete_more_is_known_as_one(
    values: dict[str, str], unset: tuple[str, ...], present: dict[str, str], loses: bool
) -> None:
    assert loses_records(values, unset, present) is loses
