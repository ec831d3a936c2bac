"""Which groups a switchover still waits for before clients are let into the old site again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinlog.traffic import newcomers
from twinlog.wire.groups import TWIN_READER
from twinlog.wire.members import Member, Membership

counts = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5))


def group(*client_ids: str) -> Membership:
    members = tuple(Member(f"{one}-{number}", one, "/127.0.0.1") for number, one in enumerate(client_ids))
    return Membership("Stable", members)


def test_members_that_join_only_when_the_standby_answers_are_not_waited_for() -> None:
    found = {"mixed": group("shop", TWIN_READER, "shop"), "twin": group(TWIN_READER), "gone": group()}
    assert newcomers.counted(found) == {"mixed": 2}


@given(counts)
def test_groups_that_have_as_many_members_as_before_are_not_waited_for(before: dict[str, int]) -> None:
    assert newcomers.missing(before, {name: count + 1 for name, count in before.items()}) == ""
    assert newcomers.missing(before, before) == ""
    assert newcomers.missing({}, before) == ""


def test_what_is_missing_names_groups_and_how_many_of_them_have_come() -> None:
    before = {"orders": 3, "stock": 1, "there": 1}
    assert newcomers.missing(before, {"orders": 2, "there": 1}) == "orders (2 of 3), stock (0 of 1)"
    assert newcomers.missing(dict.fromkeys("abcde", 1), {}).endswith("c (0 of 1) and 2 more")


@given(counts, counts)
def test_whoever_carries_a_move_on_forgets_no_member_that_was_seen_before(
    one: dict[str, int], other: dict[str, int]
) -> None:
    both = newcomers.most(one, other)
    assert newcomers.missing(one, both) == newcomers.missing(other, both) == ""
    assert set(both) == {*one, *other}
