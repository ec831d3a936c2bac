"""Which offsets of groups go along, which wait, which never go; and the bytes of the requests behind it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.mirror.groups import Offsets, Plan, Turn, is_copied, plan_commits
from twinlog.wire import heartbeats, share_offsets
from twinlog.wire.compact import text, varint
from twinlog.wire.groups import Committed

HERE = ("orders", 0)
THERE = ("orders", 1)

places = st.tuples(st.sampled_from(("orders", "stock")), st.integers(0, 2))
committed = st.builds(Committed, st.integers(0, 20), st.sampled_from(("", "meta")))
group_offsets = st.dictionaries(st.sampled_from("gh"), st.dictionaries(places, committed))


def at(offset: int, metadata: str = "") -> Offsets:
    """A group that has committed for one partition."""
    return {HERE: Committed(offset, metadata)}


# The plan


@given(group_offsets, group_offsets, st.dictionaries(places, st.integers(0, 20)), st.sets(st.just("h")))
def test_plan_copies_exactly_what_may_be_copied(
    active: dict[str, Offsets],
    standby: dict[str, Offsets],
    log_ends: dict[tuple[str, int], int],
    members: set[str],
) -> None:
    plan = plan_commits(active, standby, log_ends, members)
    for name, theirs in active.items():
        for place, wanted in theirs.items():
            ours = standby.get(name, {}).get(place)
            free = place in log_ends and name not in members and ours != wanted
            possible = wanted._replace(offset=min(wanted.offset, log_ends.get(place, 0)))
            assert plan.commits.get(name, {}).get(place) == (possible if free and ours != possible else None)
            assert (place in plan.waiting.get(name, {})) == (free and wanted != possible)
    assert all(found.keys() <= active[name].keys() for name, found in plan.commits.items())


def test_offset_and_metadata_go_along_as_they_are() -> None:
    assert plan_commits({"g": at(7, "m")}, {}, {HERE: 9}, ()).commits == {"g": at(7, "m")}


def test_metadata_that_changed_alone_goes_along() -> None:
    assert plan_commits({"g": at(7, "new")}, {"g": at(7, "old")}, {HERE: 9}, ()).commits == {
        "g": at(7, "new")
    }


def test_group_that_was_set_back_goes_back_too() -> None:
    assert plan_commits({"g": at(2)}, {"g": at(7)}, {HERE: 9}, ()).commits == {"g": at(2)}


def test_offset_at_the_very_end_of_the_log_is_copied() -> None:
    assert plan_commits({"g": at(9)}, {}, {HERE: 9}, ()) == Plan({"g": at(9)}, {}, ())


def test_offset_behind_the_standbys_log_waits_at_its_end() -> None:
    assert plan_commits({"g": at(10)}, {}, {HERE: 9}, ()) == Plan({"g": at(9)}, {"g": at(10)}, ())
    assert plan_commits({"g": at(10)}, {"g": at(9)}, {HERE: 9}, ()) == Plan({}, {"g": at(10)}, ())


def test_partition_that_is_not_mirrored_is_left_alone() -> None:
    assert plan_commits({"g": at(1)}, {}, {THERE: 9}, ()) == Plan({}, {}, ())


def test_group_with_members_at_the_standby_is_named_only_when_it_differs() -> None:
    offsets = {"g": at(7), "h": at(7)}
    assert plan_commits(offsets, {"h": at(7)}, {HERE: 9}, {"g", "h"}) == Plan({}, {}, ("g",))


# Names


@pytest.mark.parametrize("name", ["standby.reports", "twinlog-link-orders", "twinlog-x", "__internal", ""])
def test_groups_of_the_standby_of_the_link_and_of_kafka_never_go_along(name: str) -> None:
    assert not is_copied(name)
    assert not is_copied(name, include=[name or "*"])


@pytest.mark.parametrize(
    ("name", "copied"), [("stock", True), ("stock-eu", True), ("stock-test", False), ("shop", False)]
)
def test_patterns_choose_groups(name: str, copied: bool) -> None:
    assert is_copied(name, include=["stock*"], exclude=["stock-test"]) is copied


def test_a_turn_says_what_it_did() -> None:
    turn = Turn(2, 1, ("g",), gone=("old",), refused={"h": "GROUP_AUTHORIZATION_FAILED"})
    assert str(turn) == (
        "2 offsets copied; 1 wait for the standby's log; members at the standby: g;"
        " gone at the active: old; h: GROUP_AUTHORIZATION_FAILED"
    )
    assert str(Turn()) == "no offset has changed"


# Bytes


def test_heartbeat_of_a_member_that_joins() -> None:
    encoded = heartbeats.encode("g", "m", heartbeats.JOIN)
    assert encoded == text("g") + text("m") + struct.pack(">i", 0) + b"\0\0" + struct.pack(">i", 60_000) + (
        b"\1\0\0\1\0"
    )


def test_answer_to_a_heartbeat_is_read_up_to_its_message() -> None:
    refused = struct.pack(">ih", 0, 69) + text("no such group") + b"\0" + bytes(10)
    assert heartbeats.decode(memoryview(refused)) == (69, "no such group")


def test_start_offsets_of_share_groups_are_read_where_they_are_known() -> None:
    answer = (
        bytes(4)
        + varint(2)
        + text("g")
        + varint(2)
        + text("plain")
        + bytes(16)
        + varint(3)
        + struct.pack(">iqih", 0, 7, 0, 0)
        + b"\0\0"
        + struct.pack(">iqih", 1, -1, 0, 0)
        + b"\0\0"
        + b"\0"
        + struct.pack(">h", 0)
        + b"\0\0"
        + b"\0"
    )
    assert share_offsets.decode_describe(memoryview(answer)) == [("g", 0, "", {("plain", 0): 7})]


def test_setting_start_offsets_is_answered_for_each_partition() -> None:
    request = share_offsets.encode_alter("g", {("plain", 0): 5})
    assert request == text("g") + varint(2) + text("plain") + varint(2) + struct.pack(">iq", 0, 5) + bytes(3)
    answer = (
        bytes(4)
        + struct.pack(">h", 0)
        + b"\0"
        + varint(2)
        + text("plain")
        + bytes(16)
        + varint(2)
        + struct.pack(">ih", 0, 3)
        + bytes(4)
    )
    assert share_offsets.decode_alter(memoryview(answer)) == (0, "", {("plain", 0): 3})
