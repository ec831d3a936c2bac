"""The pure halves behind the commands: sizes, resets, lines for the file, rights, hanging transactions."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin import topics as kafka_topics
from ruamel.yaml import YAML

from twinlog.cli import config, consume, user_changes, user_quota
from twinlog.errors import KafkaError, UnknownOutcome
from twinlog.ops import catalogue, contents, filters, granting, group_reset, hanging, lines, settings
from twinlog.ops.formats import KeyType
from twinlog.ops.rights import rights_of
from twinlog.ops.spans import Bounds
from twinlog.ops.writing import Tally, paced
from twinlog.spec.model import Auth, Bus, Role, User
from twinlog.spec.typed import validated
from twinlog.wire import topics as wire_topics
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.driver import Outgoing
from twinlog.wire.logdirs import LogDir
from twinlog.wire.producers import ProducerState
from twinlog.wire.quotas import Limit
from twinlog.wire.received import Received
from twinlog.wire.topics import Partition, TopicState
from twinlog.wire.transactions import Described

ORDERS = TopicState(
    "orders",
    UUID(int=1),
    False,
    (Partition(0, 1, 0, (1, 2), (1, 2)), Partition(1, -1, 0, (2, 1), (2,), elr=(1,))),
)


def test_a_list_counts_what_is_behind_and_leaves_internal_topics_out() -> None:
    own = TopicState("__twinlog_role", UUID(int=2), False, ())
    (row,) = catalogue.rows([ORDERS, own], {"orders"}, internal=False)
    assert (row.partitions, row.under_replicated, row.without_leader, row.declared) == (2, 1, 1, True)
    assert len(catalogue.rows([ORDERS, own], (), internal=True)) == 2


def test_a_right_is_insisted_on_only_where_the_site_says_what_is_allowed() -> None:
    for allowed in (None, frozenset({Operation.READ, Operation.WRITE})):
        catalogue.insist(replace(ORDERS, allowed=allowed), Operation.WRITE, "shop", "site a")
    with pytest.raises(KafkaError, match="user 'shop' may not write to topic 'orders'") as told:
        catalogue.insist(
            replace(ORDERS, allowed=frozenset({Operation.READ})), Operation.WRITE, "shop", "site a"
        )
    assert told.value.hint == "in the file, shop: {produce: [orders]}; then: twinlog apply"


def test_a_size_is_one_copy_of_each_partition_and_all_of_them() -> None:
    dirs = [
        LogDir(1, "d", "", None, None, {("orders", 0): 100, ("orders", 1): 40}),
        LogDir(2, "d", "", None, None, {("orders", 0): 90}),
    ]
    (row,) = contents.size_rows(dirs, [ORDERS])
    assert (row.size_bytes, row.with_copies_bytes) == (140, 230)
    assert (row.largest_partition, row.largest_bytes) == (0, 100)


OFFSETS = st.dictionaries(st.tuples(st.just("orders"), st.integers(0, 5)), st.integers(0, 100), min_size=1)


@given(OFFSETS, st.integers(-200, 200))
def test_a_shift_never_leaves_what_a_partition_holds(before: dict[tuple[str, int], int], by: int) -> None:
    held = {place: Bounds(10, 90) for place in before}
    for move in group_reset.shifted(before, by, held):
        assert 10 <= move.after <= 90
        assert move.records == move.after - before[(move.topic, move.partition)]


def test_a_partition_without_a_commit_has_no_before() -> None:
    (move,) = group_reset.moved_to({}, {("orders", 0): 5}, {("orders", 0): Bounds(0, 9)})
    assert (move.before, move.records, move.after, move.end) == (None, None, 5, 9)


def test_lines_for_the_file_are_read_as_what_was_done() -> None:
    line = lines.topic_line("orders", partitions=6, replication=None, config={"retention.ms": "60000"})
    told = YAML(typ="safe").load(line)
    assert told == {"orders": {"partitions": 6, "config": {"retention.ms": "60000"}}}
    policy = {"cleanup.policy": "compact,delete"}
    assert YAML(typ="safe").load(lines.topic_line("t", config=policy)) == {"t": {"config": policy}}
    assert YAML(typ="safe").load(lines.setting_line("listeners", "A://:1, B://:2")) == {
        "listeners": "A://:1, B://:2"
    }
    user = lines.user_line("shop", {"produce": ["orders", "on", "log-*"], "consume": []})
    assert YAML(typ="safe").load(user) == {"shop": {"produce": ["orders", "on", "log-*"]}}


BUS = validated(
    Bus, {"bus": "b", "sites": {"a": {}, "b": {}}, "topics": {"orders": {}, "own": {"mirror": False}}}
)


@given(st.sets(st.sampled_from(["orders", "own", "log-*"]), min_size=1), st.sampled_from(Role))
def test_what_was_granted_is_what_a_revoke_takes(names: set[str], role: Role) -> None:
    user = User(produce=tuple(names), groups=("g-*",))
    present = rights_of(BUS, "shop", user, role)
    gone = granting.taken(BUS, "shop", User(produce=tuple(names)), present)
    assert {rule.resource for rule in present - gone} <= {Resource.GROUP}
    assert granting.taken(BUS, "other", user, present) == frozenset()


def test_rules_about_a_topic_include_prefixes_and_those_of_everybody() -> None:
    exact = Acl(Resource.TOPIC, "orders", "User:shop", Operation.READ)
    prefix = Acl(Resource.TOPIC, "ord", "User:shop", Operation.READ, prefixed=True)
    everybody = Acl(Resource.TOPIC, "*", "User:*", Operation.DESCRIBE)
    other = Acl(Resource.GROUP, "orders", "User:shop", Operation.READ)
    rules = [exact, prefix, everybody, other]
    assert granting.about(rules, topic="orders") == [exact, prefix, everybody]
    assert granting.about(rules, user="nobody", topic="orders") == [everybody]


def state(start: int, epoch: int = 0) -> ProducerState:
    return ProducerState(epoch, 0, 1, 5, start)


def described(*partitions: tuple[str, int]) -> Described:
    return Described("shop-1", 1, 7, 0, "Ongoing", 60_000, 1, partitions)


def test_a_transaction_hangs_where_its_coordinator_does_not_know_the_partition() -> None:
    states = {
        ("orders", 0): {7: state(3), 8: state(-1)},
        ("orders", 1): {7: state(9)},
        ("own", 0): {9: state(1)},
    }
    found = hanging.judge(states, [described(("orders", 0))])
    assert [(one.topic, one.partition, one.hangs) for one in found] == [
        ("orders", 0, False),
        ("orders", 1, True),
        ("own", 0, True),
    ]
    assert found[2].transactional_id is None and found[1].coordinator_epoch == 5
    assert hanging.the_one(found[1:2], None, "here").start_offset == 9
    with pytest.raises(KafkaError, match="0 transactions hang"):
        hanging.the_one(found[:1], None, "here")
    with pytest.raises(KafkaError, match="2 transactions hang there: producers 7, 9"):
        hanging.the_one(found, None, "here")


def test_documentation_loses_its_html() -> None:
    assert settings.plain_words("See <a href='x'>this</a>\n &lt;b&gt;") == "See this <b>"


def test_a_filter_wants_all_conditions() -> None:
    record = Received("orders", 0, 0, b"k", b"value 7", (("a", b"1"),), 0)
    assert filters.wanted()(record)
    assert filters.wanted(keys=[b"x", b"k"], pattern="7$", headers=[("a", None)])(record)
    assert not filters.wanted(keys=[b"k"], pattern="8")(record)
    assert not filters.wanted(headers=[("a", b"2")])(record)


def test_a_tally_calls_unknown_writes_worse_than_refused_ones() -> None:
    tally = Tally(done=3)
    assert tally.problem("orders") is None
    tally.count_refused("too large", "make it smaller")
    assert type(tally.problem("orders")) is KafkaError
    tally.count_unknown("no answer", "look")
    assert isinstance(tally.problem("orders"), UnknownOutcome) and tally.total == 5


def test_a_pace_gives_each_record_its_turn_and_a_late_one_delays_no_other() -> None:
    now = [0.0]
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        now[0] += seconds

    made = paced([Outgoing("t", b"")] * 4, 10.0, clock=lambda: now[0], wait=wait)
    next(made)
    now[0] = 0.25  # something else took its time
    assert len(list(made)) == 3
    assert waited == pytest.approx([0.05])


def test_choices_of_the_commands_are_those_of_the_modules() -> None:
    assert [kind.value for kind in KeyType] == consume.TYPES
    assert list(settings.KINDS) == config.KINDS
    assert [auth.value for auth in Auth] == user_changes.AUTHS
    assert [limit.name.lower() for limit in Limit] == user_quota.LIMITS


def test_kafkas_package_is_whole_when_a_client_of_it_is_wanted() -> None:
    code = (
        "import twinlog.wire.topics, twinlog.wire.elections, sys; assert 'kafka.consumer' not in sys.modules;"
        "assert 'kafka.protocol.admin.acl' not in sys.modules;"
        "from kafka.protocol.admin import CreateAclsRequest, ElectLeadersRequest, __all__ as every;"
        "from kafka.protocol.metadata import MetadataRequest, FindCoordinatorRequest;"
        "assert 'DeleteAclsRequest' in every;"
        "assert twinlog.wire.elections.ElectLeadersRequest is ElectLeadersRequest;"
        "assert twinlog.wire.topics.MetadataRequest is MetadataRequest;"
        "from kafka import KafkaConsumer; import kafka; assert kafka.__version__ and KafkaConsumer"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_messages_that_a_list_makes_itself_are_those_of_the_package() -> None:
    for name in ("DescribeTopicPartitionsRequest", "DescribeTopicPartitionsResponse"):
        own, theirs = getattr(wire_topics, name), getattr(kafka_topics, name)
        assert own is not theirs
        assert (own.json, own.valid_versions) == (theirs.json, theirs.valid_versions)
        added = set(vars(theirs)) - set(vars(own))  # what the package would do differently one day
        assert not added
