"""Which topics are mirrored and what is said of the others; settings, log starts and rights of a copy."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import SiteError
from twinlog.mirror.following import Case, Selection, Wanted, selection
from twinlog.mirror.log_starts import plan_log_starts
from twinlog.mirror.memory import TopicMemory, Twins
from twinlog.mirror.permits import quotas_for_standby, rules_for_standby, rules_in_excess
from twinlog.mirror.topic_copies import SITES_OWN, settings_change, wanted_settings
from twinlog.spec.model import Bus
from twinlog.spec.roles import AT_STANDBY
from twinlog.spec.typed import validated
from twinlog.wire.acls import CLUSTER_NAME, Acl, Operation, Resource
from twinlog.wire.configs import Entry, Source
from twinlog.wire.quotas import DEFAULT, Limit, Owner
from twinlog.wire.topics import Partition, TopicState

ORDERS = Wanted(declared=frozenset({"orders"}))
HERE, THERE, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
KNOWN = {"orders": Twins(HERE, THERE)}


def topic(name: str, number: UUID, width: int = 1, *, internal: bool = False) -> TopicState:
    """A topic as a cluster describes it."""
    partitions = tuple(Partition(index, 1, 0, (1,), (1,)) for index in range(width))
    return TopicState(name, number, internal, partitions)


def case_of(found: Selection) -> tuple[Case, int]:
    """How the only topic stands, and how many of its partitions are mirrored."""
    (one,) = found.topics
    return one.case, len(found.partitions)


# Topics


def test_topic_at_both_sites_is_mirrored_whole() -> None:
    found = selection([topic("orders", HERE, 3)], [topic("orders", THERE, 3)], ORDERS, {})
    assert case_of(found) == (Case.MIRRORED, 3)
    assert found.partitions == (("orders", 0), ("orders", 1), ("orders", 2))
    assert found.words == {}
    assert found.twins == KNOWN


def test_topic_without_a_copy_is_missing() -> None:
    found = selection([topic("orders", HERE)], [], ORDERS, {})
    assert case_of(found) == (Case.MISSING, 0)
    assert found.words == {"orders": "it does not exist at the standby"}
    assert found.names(Case.MISSING) == ("orders",)


def test_copy_with_too_few_partitions_is_mirrored_as_far_as_it_goes() -> None:
    found = selection([topic("orders", HERE, 4)], [topic("orders", THERE, 2)], ORDERS, KNOWN)
    assert case_of(found) == (Case.NARROW, 2)
    assert found.words == {"orders": "the standby has 2 of 4 partitions"}


def test_copy_with_too_many_partitions_is_mirrored_and_named() -> None:
    found = selection([topic("orders", HERE, 1)], [topic("orders", THERE, 2)], ORDERS, KNOWN)
    assert case_of(found) == (Case.WIDE, 1)
    assert found.words == {"orders": "the standby has 2 partitions, the active 1"}


def test_topic_deleted_at_the_active_is_kept_at_the_standby() -> None:
    found = selection([], [topic("orders", THERE)], ORDERS, KNOWN)
    assert case_of(found) == (Case.DELETED, 0)
    assert found.twins == {}


def test_topic_that_never_was_at_the_active_is_absent() -> None:
    assert case_of(selection([], [topic("orders", THERE)], ORDERS, {})) == (Case.ABSENT, 0)
    assert case_of(selection([], [], ORDERS, KNOWN)) == (Case.ABSENT, 0)


def test_topic_made_again_at_the_active_is_not_copied_over_the_old_one() -> None:
    found = selection([topic("orders", OTHER)], [topic("orders", THERE)], ORDERS, KNOWN)
    assert case_of(found) == (Case.REMADE, 0)
    assert "delete it at the standby" in found.words["orders"]


def test_topic_made_again_at_both_sites_begins_anew() -> None:
    found = selection([topic("orders", OTHER)], [topic("orders", UUID(int=4))], ORDERS, KNOWN)
    assert case_of(found) == (Case.MIRRORED, 1)


def test_topic_made_again_at_the_standby_is_filled_again() -> None:
    found = selection([topic("orders", HERE)], [topic("orders", OTHER)], ORDERS, KNOWN)
    assert case_of(found) == (Case.MIRRORED, 1)


def test_patterns_mean_topics_of_the_active_only() -> None:
    wanted = Wanted(include=("o*",), exclude=("old",), never=frozenset({"own"}))
    names = ("orders", "old", "own", "other")
    active = [topic(name, HERE) for name in names] + [topic("o-internal", HERE, internal=True)]
    standby = [topic("orders", THERE), topic("only-there", THERE)]
    found = selection(active, standby, wanted, {})
    assert [(one.topic, one.case) for one in found.topics] == [
        ("orders", Case.MIRRORED),
        ("other", Case.MISSING),
    ]


def test_kafkas_own_topics_are_never_meant_by_patterns() -> None:
    assert not Wanted(include=("*",)).means("__consumer_offsets")


def test_topic_that_a_pattern_meant_and_that_is_gone_everywhere_is_no_news() -> None:
    assert selection([], [], Wanted(include=("*",)), KNOWN).topics == ()


def test_a_file_wants_its_mirrored_topics_and_those_of_its_link() -> None:
    bus = validated(
        Bus,
        {
            "bus": "b",
            "sites": {"a": {}, "b": {}},
            "topics": {"orders": {}, "local": {"mirror": False}},
            "link": {"include": ["*"], "exclude": ["test-*"]},
        },
    )
    wanted = Wanted.of(bus)
    assert [wanted.means(name) for name in ("orders", "local", "test-1", "other")] == [
        True,
        False,
        False,
        True,
    ]


# What is remembered


def test_ids_are_remembered_by_cluster_and_not_by_role(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    TopicMemory(path, "A", "B").learn(KNOWN)
    assert TopicMemory(path, "A", "B").topics() == KNOWN
    assert TopicMemory(path, "B", "A").topics() == {"orders": Twins(THERE, HERE)}
    assert TopicMemory(path, "A", "C").topics() == {}


def test_nothing_new_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    memory = TopicMemory(path, "A", "B")
    memory.learn(KNOWN)
    path.unlink()
    memory.learn(KNOWN)
    assert not path.exists()


def test_forgotten_topic_is_mirrored_as_if_it_were_new(tmp_path: Path) -> None:
    memory = TopicMemory(tmp_path / "topics.json", "A", "B")
    memory.learn(KNOWN)
    memory.forget("orders")
    assert TopicMemory(tmp_path / "topics.json", "A", "B").topics() == {}


@pytest.mark.parametrize("text", ["{", "{}", '{"version": 1}'])
def test_damaged_memory_of_topics_is_an_error_with_its_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "topics.json"
    path.write_text(text)
    with pytest.raises(SiteError) as caught:
        TopicMemory(path, "A", "B")
    assert caught.value.where == str(path)


# Settings of a copy


def said(source: Source = Source.TOPIC, **values: str) -> dict[str, Entry]:
    """Settings with the source that they come from; underscores stand for dots."""
    names = {name: name.replace("_", ".") for name in values}
    return {names[key]: Entry(names[key], value, source, False, False) for key, value in values.items()}


def test_copy_takes_what_was_said_of_the_topic_and_its_role() -> None:
    active = said(segment_bytes="1000", retention_ms="5") | said(Source.DEFAULT, flush_ms="9")
    assert wanted_settings(active, 3) == {"segment.bytes": "1000", **AT_STANDBY}


def test_copy_never_waits_for_more_replicas_than_it_has() -> None:
    assert wanted_settings(said(min_insync_replicas="2"), 1)["min.insync.replicas"] == "1"
    assert wanted_settings(said(min_insync_replicas="2"), 3)["min.insync.replicas"] == "2"


def test_copy_is_cleaned_and_as_large_as_the_active_is_by_its_site() -> None:
    active = said(Source.EVERY_BROKER, cleanup_policy="compact", max_message_bytes="15", flush_ms="9")
    assert wanted_settings(active, 1) == {
        "cleanup.policy": "compact",
        "max.message.bytes": "15",
        **AT_STANDBY,
    }


def test_settings_that_speak_of_one_site_stay_there() -> None:
    active = {name: Entry(name, "x", Source.TOPIC, False, False) for name in SITES_OWN}
    assert wanted_settings(active, 1) == AT_STANDBY
    assert settings_change({}, active | role_entries(), 1) == ({}, ())


def test_settings_follow_and_what_was_taken_back_is_taken_back() -> None:
    standby = said(segment_bytes="1", flush_ms="9") | said(Source.DEFAULT, segment_ms="7") | role_entries()
    change = settings_change(said(segment_bytes="2", segment_ms="7"), standby, 1)
    assert change == ({"segment.bytes": "2"}, ("flush.ms",))


def role_entries() -> dict[str, Entry]:
    """A standby that is set as one."""
    return {name: Entry(name, value, Source.TOPIC, False, False) for name, value in AT_STANDBY.items()}


# Log starts

starts = st.dictionaries(st.just(("orders", 0)), st.integers(0, 50), min_size=1)


@given(starts, starts, starts)
def test_log_start_follows_the_active_and_never_passes_what_is_replicated(
    active: dict[tuple[str, int], int],
    standby: dict[tuple[str, int], int],
    high: dict[tuple[str, int], int],
) -> None:
    place = ("orders", 0)
    plan = plan_log_starts(active, standby, high)
    if place in plan:
        assert standby[place] < plan[place] == min(active[place], high[place])
    else:
        assert standby[place] >= min(active[place], high[place])


# Rights and quotas


def rule(
    operation: Operation,
    name: str = "orders",
    user: str = "shop",
    *,
    prefixed: bool = False,
    allow: bool = True,
) -> Acl:
    """A rule about a topic."""
    return Acl(Resource.TOPIC, name, f"User:{user}", operation, prefixed, allow)


def test_reading_goes_along_and_writing_stays() -> None:
    read = rule(Operation.READ)
    active = [read, rule(Operation.WRITE), rule(Operation.DELETE), rule(Operation.ALTER)]
    assert rules_for_standby(active, ["orders"]) == {read}


def test_whoever_may_do_all_may_read_at_the_standby() -> None:
    found = rules_for_standby([rule(Operation.ALL)], ["orders"])
    assert found == {rule(one) for one in (Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)}


def test_what_is_denied_is_denied_at_the_standby_too() -> None:
    denied = rule(Operation.ALL, allow=False)
    assert rules_for_standby([denied], ["orders"]) == {denied}


def test_rules_of_the_link_of_other_topics_and_of_groups_stay() -> None:
    others = [
        rule(Operation.READ, user="twinlog:link-1-1"),
        rule(Operation.READ, name="other"),
        rule(Operation.READ, name="st", prefixed=True),
        Acl(Resource.GROUP, "orders", "User:shop", Operation.READ),
        Acl(Resource.CLUSTER, CLUSTER_NAME, "User:shop", Operation.DESCRIBE),
    ]
    assert rules_for_standby(others, ["orders"]) == frozenset()


@pytest.mark.parametrize(("name", "prefixed"), [("or", True), ("*", False)])
def test_patterns_that_mean_a_mirrored_topic_go_along(name: str, prefixed: bool) -> None:
    wide = rule(Operation.READ, name, prefixed=prefixed)
    assert rules_for_standby([wide], ["orders"]) == {wide}


def test_what_only_the_standby_allows_is_named() -> None:
    both, extra = rule(Operation.READ), rule(Operation.WRITE, user="old")
    denied = rule(Operation.READ, user="x", allow=False)
    assert rules_in_excess([both, extra, denied], [both], ["orders"]) == {extra}


def test_quotas_that_differ_are_set_and_the_links_own_are_not() -> None:
    shop, link, everybody = Owner("shop"), Owner("twinlog:link-1-1"), Owner(DEFAULT)
    limits = {Limit.PRODUCE: 5.0, Limit.CONSUME: 6.0}
    active = {shop: limits, link: limits, everybody: {Limit.REQUEST: 1.0}}
    standby = {shop: {Limit.PRODUCE: 5.0, Limit.REQUEST: 2.0}, everybody: {Limit.REQUEST: 1.0}}
    assert quotas_for_standby(active, standby) == {shop: {Limit.CONSUME: 6.0}}
