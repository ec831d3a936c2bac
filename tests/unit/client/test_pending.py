"""The rule of acks=twin, on a model of a standby that moves, changes its role and falls silent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from twinlog.client.outcomes import Done, Outcome, UnknownAtTwin
from twinlog.client.pending import Ended, Pending, Write
from twinlog.spec.model import Role
from twinlog.wire.roles import Standing

PLACES = (("orders", 0), ("orders", 1), ("stock", 0))
FIRST = Standing("bus", "b", Role.STANDBY, 1)
PLACE = PLACES[0]


def write(offset: int, *, floor: int = 0, deadline: float = 10.0, token: int = 0) -> Write[int]:
    return Write(PLACE, offset, FIRST, floor, deadline, token)


def waiting(*writes: Write[int]) -> Pending[int]:
    pending: Pending[int] = Pending()
    for one in writes:
        pending.add(one)
    return pending


def test_a_write_below_the_watermark_is_done_when_the_role_is_unchanged() -> None:
    pending = waiting(write(4))
    assert pending.seen({PLACE: 5})
    assert pending.judge(FIRST) == [(0, Done(0, 4, twin=True))]
    assert not pending


def test_the_watermark_itself_is_not_covered() -> None:
    pending = waiting(write(5))
    assert not pending.seen({PLACE: 5})
    assert pending.judge(FIRST) == []
    assert pending.places == (PLACE,)


def test_a_write_that_came_after_the_watermark_waits_for_the_next_one() -> None:
    pending = waiting(write(4, token=1))
    pending.seen({PLACE: 9})
    pending.add(write(6, token=2))
    assert [token for token, _ in pending.judge(FIRST)] == [1]
    assert pending.places == (PLACE,)


@pytest.mark.parametrize(
    "now",
    [replace(FIRST, term=2), replace(FIRST, role=Role.ACTIVE), replace(FIRST, term=3, role=Role.ACTIVE)],
    ids=["a later term", "active", "active of a later term"],
)
def test_a_role_that_is_over_ends_the_write_as_unknown_at_the_twin(now: Standing) -> None:
    pending = waiting(write(4))
    pending.seen({PLACE: 5})
    ((_, outcome),) = pending.judge(now)
    assert isinstance(outcome, UnknownAtTwin)
    assert (outcome.partition, outcome.offset) == (0, 4)
    assert str(now.term) in outcome.reason


@pytest.mark.parametrize(
    "now", [None, replace(FIRST, site="c"), replace(FIRST, bus="other")], ids=["no record", "site", "bus"]
)
def test_a_role_that_says_nothing_about_the_write_lets_it_wait_for_its_deadline(now: Standing | None) -> None:
    pending = waiting(write(4))
    pending.seen({PLACE: 5})
    assert pending.judge(now) == []
    ((_, outcome),) = pending.expire(10.0, {})
    assert isinstance(outcome, UnknownAtTwin)
    assert "role" in outcome.reason


def test_a_standby_that_was_ahead_before_the_record_was_sent_is_no_copy() -> None:
    pending = waiting(write(4, floor=5))
    pending.seen({PLACE: 9})
    ((_, outcome),) = pending.judge(FIRST)
    assert isinstance(outcome, UnknownAtTwin)
    assert "no copy" in outcome.reason


@pytest.mark.parametrize(
    ("seen", "troubles", "told"),
    [
        ({}, {}, "not heard"),
        ({PLACE: 3}, {}, "ended at offset 3"),
        ({PLACE: 3}, {PLACE: "nothing listens there"}, "nothing listens there"),
    ],
)
def test_a_deadline_says_what_was_known_of_the_standby(
    seen: dict[tuple[str, int], int], troubles: dict[tuple[str, int], str], told: str
) -> None:
    pending = waiting(write(4))
    pending.seen(seen)
    assert pending.expire(9.9, troubles) == []
    ((_, outcome),) = pending.expire(10.0, troubles)
    assert isinstance(outcome, UnknownAtTwin)
    assert told in outcome.reason


def test_giving_up_ends_all_that_waits() -> None:
    pending = waiting(write(4, token=1), write(7, token=2))
    pending.seen({PLACE: 5})
    assert {token for token, _ in pending.give_up("closed")} == {1, 2}
    assert not pending and pending.places == () and pending.next_deadline is None


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=150), st.integers(0, 200))
def test_what_ended_leaves_nothing_behind(offsets: list[tuple[int, int]], watermark: int) -> None:
    pending = waiting(
        *(write(offset, deadline=float(due), token=number) for number, (offset, due) in enumerate(offsets))
    )
    expired = {token for token, _ in pending.expire(100.0, {})}
    pending.seen({PLACE: watermark})
    done = {token for token, _ in pending.judge(FIRST)}
    left = {number for number, (offset, due) in enumerate(offsets) if due > 100 and offset >= watermark}
    assert expired == {number for number, (_, due) in enumerate(offsets) if due <= 100}
    assert done == set(range(len(offsets))) - expired - left
    assert len(pending) == len(left)
    assert pending.places == ((PLACE,) if left else ())


@dataclass
class Sent:
    """A write of the model, and all that was true while it waited."""

    write: Write[int]
    outcome: Outcome | None = None
    was_covered: bool = False  # by a watermark that was asked for after it was added
    role_after: list[Standing | None] = field(default_factory=list)  # as read after it was covered


class TwinMachine(RuleBasedStateMachine):
    """Any order of writes, watermarks, roles and time: Done only by the rule, and every write ends once."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: Pending[int] = Pending()
        self.sent: list[Sent] = []
        self.now = 0.0
        self.standing: Standing | None = FIRST

    def note(self, ended: Ended[int]) -> None:
        for token, outcome in ended:
            assert self.sent[token].outcome is None, "ended twice"
            self.sent[token].outcome = outcome

    @rule(
        place=st.sampled_from(PLACES),
        offset=st.integers(0, 12),
        floor=st.integers(0, 6),
        timeout_s=st.integers(1, 9),
    )
    def send(self, place: tuple[str, int], offset: int, floor: int, timeout_s: int) -> None:
        began = self.standing if self.standing is not None else FIRST
        one = Write(
            place, offset, replace(began, role=Role.STANDBY), floor, self.now + timeout_s, len(self.sent)
        )
        self.sent.append(Sent(one))
        self.pending.add(one)

    @rule(marks=st.dictionaries(st.sampled_from(PLACES), st.integers(0, 13)))
    def look(self, marks: dict[tuple[str, int], int]) -> None:
        for one in self.sent:
            if one.outcome is None and one.write.offset < marks.get(one.write.place, 0):
                one.was_covered = True
        asks = self.pending.seen(marks)
        assert asks == any(one.was_covered and one.outcome is None for one in self.sent)
        if asks:
            for one in self.sent:
                if one.was_covered and one.outcome is None:
                    one.role_after.append(self.standing)
            self.note(self.pending.judge(self.standing))

    @rule(role=st.sampled_from(Role), longer=st.integers(0, 1))
    def change_role(self, role: Role, longer: int) -> None:
        term = self.standing.term if self.standing is not None else 1
        self.standing = Standing("bus", "b", role, term + longer)

    @rule(seconds=st.integers(1, 5))
    def let_time_pass(self, seconds: int) -> None:
        self.now += seconds
        self.note(self.pending.expire(self.now, {}))

    @precondition(lambda self: self.sent)
    @rule()
    def close(self) -> None:
        self.note(self.pending.give_up("closed"))
        assert all(one.outcome is not None for one in self.sent)

    @invariant()
    def done_only_by_the_rule(self) -> None:
        for one in self.sent:
            if isinstance(one.outcome, Done):
                assert one.outcome.twin and one.was_covered
                assert one.role_after[-1] == one.write.standing
                assert one.write.offset >= one.write.floor

    @invariant()
    def nothing_outlives_its_deadline(self) -> None:
        open_writes = [one.write for one in self.sent if one.outcome is None]
        assert all(one.deadline > self.now for one in open_writes)
        assert len(self.pending) == len(open_writes)
        due = self.pending.next_deadline
        assert due == min((one.deadline for one in open_writes), default=None)


TestTwin = TwinMachine.TestCase
TestTwin.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
