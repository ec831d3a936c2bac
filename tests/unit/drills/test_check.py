"""Each kind of anomaly, planted by hand in a short history; and histories in which nothing is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.drills.story import GROUP, TOPIC, Story, changed, found, kinds, only
from twinlog.drills.finding import Kind
from twinlog.drills.history import (
    Commit,
    Event,
    Final,
    Happening,
    History,
    Operation,
    Outcome,
    Read,
    Salvaged,
    Step,
    Transaction,
    Write,
)
from twinlog.drills.index import Index


def test_clean_history_with_moves_and_transactions_nothing_is_found() -> None:
    story = Story()
    for _ in range(3):
        story.write(key=0)
        story.write("rd-1", key=1, idempotent=False)
        story.write("twin-1", key=0, acks="twin")
        story.transaction(f"t{story.now_s}", [0, 1])
        story.transaction(f"u{story.now_s}", [0, 1], Step.ABORT)
        story.write(outcome=Outcome.UNKNOWN, appended=False)
        story.write(outcome=Outcome.UNKNOWN)
        story.write(outcome=Outcome.FAILED, appended=False)
        story.read()
        story.switchover()
    assert found(story.history()) == []


def test_acknowledged_write_missing_is_lost_and_says_where_it_was_seen() -> None:
    story = Story()
    story.write()
    value = story.write()
    story.read()
    story.write()
    history = story.without(value)
    finding = only(history, Kind.LOST)
    assert (finding.value, finding.client, finding.acks) == (value, "java-1", "all")
    assert finding.position == (TOPIC, 0, 1)
    assert "acknowledged by a at orders-0@1 after 0.0" in finding.last_seen
    assert "handed to reader" in finding.last_seen


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.FAILED])
def test_write_that_was_not_acknowledged_may_be_missing(outcome: Outcome) -> None:
    story = Story()
    story.write()
    value = story.write(outcome=outcome, appended=False)
    assert found(story.without(value)) == []


def test_lost_write_in_salvage_is_found_as_salvaged() -> None:
    story = Story()
    story.write()
    value = story.write(mirrored=False)
    story.failover()
    story.write()
    finding = only(story.history(), Kind.SALVAGED)
    assert finding.value == value
    assert "in salvage of a at orders-0@1" in finding.last_seen


def test_salvaged_write_that_was_written_again_still_counts_as_salvaged() -> None:
    story = Story()
    value = story.write(mirrored=False)
    story.failover()
    story.write()
    finding = only(story.with_value_at(1, value), Kind.SALVAGED)
    assert "written again" in finding.what


def test_value_that_nobody_sent_is_a_phantom_at_either_site() -> None:
    story = Story()
    story.write()
    assert only(story.with_value_at(1, "ghost"), Kind.PHANTOM).value == "ghost"
    assert kinds(story.with_value_at(1, "ghost", "b")) == {
        Kind.PHANTOM: ["ghost"],
        Kind.DIVERGED: ["ghost"],
    }


def test_write_that_was_refused_and_is_there_is_a_phantom() -> None:
    story = Story()
    value = story.write(outcome=Outcome.FAILED)
    assert only(story.history(), Kind.PHANTOM).value == value


def test_unknown_value_of_a_client_that_tells_of_acknowledgements_only_is_unreported() -> None:
    story = Story()
    value = story.write()
    finding = only(
        replace(story.with_value_at(1, "java-1:9"), writes=changed(story, value, start_s=None).writes),
        Kind.UNREPORTED,
    )
    assert finding.value == "java-1:9"


def test_other_value_at_the_standby_is_diverged() -> None:
    story = Story()
    values = [story.write() for _ in range(3)]
    finding = only(story.with_value_at(1, values[0], "b"), Kind.DIVERGED)
    assert finding.position == (TOPIC, 0, 1)
    assert finding.what == f"a has {values[1]} there, b has {values[0]}"


def test_hole_at_the_standby_is_diverged_and_a_missing_tail_is_behind() -> None:
    story = Story()
    values = [story.write() for _ in range(3)]
    assert only(story.without(values[1], "b"), Kind.DIVERGED).value == values[1]
    assert only(story.without(values[2], "b"), Kind.BEHIND).value == values[2]


@pytest.mark.parametrize("site", ["a", "b"])
def test_log_that_lacks_its_head_at_one_site_is_diverged(site: str) -> None:
    """No drill deletes records, so no log may begin later than the other one."""
    story = Story()
    values = [story.write(outcome=Outcome.UNKNOWN) for _ in range(3)]
    assert only(story.without(values[0], site), Kind.DIVERGED).value == values[0]


def test_standby_without_any_record_is_behind_with_every_one() -> None:
    story = Story()
    values = [story.write() for _ in range(60)]
    assert kinds(story.without_site("b")) == {Kind.BEHIND: values}


def test_standby_that_was_not_read_is_found_and_nothing_else_is_said_of_it() -> None:
    story = Story()
    for _ in range(60):
        story.write()
    history = story.without_site("b", read=False)
    assert "b was to be read" in only(history, Kind.NOT_READ).what


def test_partition_that_was_not_read_at_one_site_makes_the_site_unread() -> None:
    story = Story()
    story.write(key=0)
    story.write(key=1)
    history = story.history()
    extents = tuple(one for one in history.extents if (one.site, one.partition) != ("b", 1))
    assert only(replace(history, extents=extents), Kind.NOT_READ).what.startswith("b ")


@pytest.mark.parametrize(
    ("first", "end", "kind"), [(0, 2, Kind.BEHIND), (0, 9, Kind.DIVERGED), (2, 5, Kind.DIVERGED)]
)
def test_partition_whose_ends_differ_though_no_record_does_is_found(first: int, end: int, kind: Kind) -> None:
    history = Story().history()
    extents = tuple(
        replace(one, first=first if one.site == "b" else 0, end=end if one.site == "b" else 5)
        if one.partition == 0
        else one
        for one in history.extents
    )
    assert only(replace(history, extents=extents), kind).position is not None


def test_standby_that_did_not_get_even_in_time_is_behind() -> None:
    story = Story()
    story.write()
    story.event(Happening.UNEQUAL, "the logs do not end alike after 120 s")
    assert "after 120 s" in only(story.history(), Kind.BEHIND).what


def test_tail_that_only_the_standby_has_is_diverged() -> None:
    story = Story()
    story.write()
    value = story.write(outcome=Outcome.UNKNOWN)
    assert only(story.without(value, "a"), Kind.DIVERGED).value == value


def test_acknowledged_at_another_offset_than_it_stands_is_found() -> None:
    story = Story()
    value = story.write()
    finding = only(changed(story, value, offset=7), Kind.MOVED)
    assert finding.what == "acknowledged at orders-0@7, and stands at orders-0@0"
    assert found(changed(story, value, offset=-1)) == []  # Kafka no longer knew where it had put it


@pytest.mark.parametrize(
    ("start_s", "end_s", "is_stale"),
    [(0.1, 0.2, True), (-5.0, 0.2, False), (-5.0, 1.5, True), (None, 0.2, False), (None, 1.5, True)],
)
def test_old_site_that_acknowledges_after_the_other_opened_is_stale(
    start_s: float | None, end_s: float, is_stale: bool
) -> None:
    story = Story()
    story.write()
    story.switchover()
    value = story.write()
    opened_s = next(one.time_s for one in reversed(story.history().events) if one.what is Happening.OPENED)
    history = changed(
        story,
        value,
        site="a",
        start_s=None if start_s is None else opened_s + start_s,
        end_s=opened_s + end_s,
    )
    assert kinds(history) == ({Kind.STALE: [value]} if is_stale else {})


def test_site_of_a_stale_write_is_known_from_salvage_if_its_client_does_not_say() -> None:
    story = Story()
    story.switchover()
    value = story.write()
    history = changed(story, value, site=None, end_s=story.now_s + 9)
    assert found(history) == []
    (write,) = (one for one in history.writes if one.value == value)
    assert write.partition is not None
    assert write.offset is not None
    kept = replace(
        history,
        finals=tuple(one for one in history.finals if one.value != value),
        salvaged=(Salvaged("a", TOPIC, write.partition, write.offset, value),),
    )
    assert kinds(kept) == {Kind.SALVAGED: [value], Kind.STALE: [value]}


def test_part_of_a_committed_transaction_missing_is_torn_and_lost() -> None:
    story = Story()
    values = story.transaction("t1", [0, 1, 0])
    story.write()
    assert kinds(story.without(values[1])) == {Kind.LOST: [values[1]], Kind.TORN: [values[1]]}


@pytest.mark.parametrize("missing", [1, 2])
def test_transaction_whose_commit_is_unknown_is_whole_or_not_there(missing: int) -> None:
    story = Story()
    values = story.transaction("t1", [0, 1])

    def change(told: list[Operation]) -> None:
        gone = values[:missing]
        told[:] = [one for one in told if not (isinstance(one, Final) and one.value in gone)]
        for place, one in enumerate(told):
            if isinstance(one, Transaction) and one.step is Step.COMMIT:
                told[place] = replace(one, outcome=Outcome.UNKNOWN)

    assert kinds(story.history(change)) == ({Kind.TORN: values[:1]} if missing == 1 else {})


def test_commit_that_was_acknowledged_once_stays_so() -> None:
    story = Story()
    values = story.transaction("t1", [0])
    story.told.append(Transaction("tx", "t1", Step.COMMIT, Outcome.UNKNOWN, story.tick()))
    assert kinds(story.without(values[0])) == {Kind.LOST: values}


@pytest.mark.parametrize("outcome", list(Outcome))
def test_visible_record_of_an_aborted_transaction_is_found(outcome: Outcome) -> None:
    story = Story()
    values = story.transaction("t1", [0, 1], Step.ABORT)
    history = story.with_value_at(0, values[0])
    told = tuple(
        replace(one, outcome=outcome) if one.step is Step.ABORT else one for one in history.transactions
    )
    finding = found(replace(history, transactions=told))[0]
    assert (finding.kind, finding.value) == (Kind.ABORTED, values[0])


def consumed(*steps: tuple[str, int], writes: int = 6) -> History:
    """A log of some writes, and a group that reads and commits; `read2` is another member."""
    story = Story()
    values = [story.write() for _ in range(writes)]
    for what, offset in steps:
        if what.startswith("read"):
            story.told.append(Read(what, GROUP, TOPIC, 0, offset, values[offset], story.tick(), "a"))
        else:
            story.told.append(Commit("read", GROUP, TOPIC, 0, offset, story.tick(), Outcome(what)))
    return story.history()


def test_group_that_goes_on_from_its_commit_or_its_position_is_clean() -> None:
    assert found(consumed(("read", 0), ("read", 1), ("ok", 1), ("read", 1), ("read", 2))) == []
    assert found(consumed(("read", 0), ("read", 1), ("ok", 1), ("read2", 1), ("read2", 2))) == []
    assert found(consumed(("read", 0), ("ok", 1), ("read", 1), ("unknown", 2), ("read2", 2))) == []


def test_commit_below_an_earlier_one_has_gone_backwards() -> None:
    finding = only(consumed(("read", 0), ("read", 1), ("ok", 2), ("ok", 1)), Kind.REWOUND)
    assert finding.position == (TOPIC, 0, 1)
    assert found(consumed(("read", 0), ("read", 1), ("ok", 2), ("failed", 1))) == []


def test_record_read_again_after_its_commit_is_found() -> None:
    history = consumed(("read", 0), ("read", 1), ("ok", 2), ("read", 1), ("read", 2))
    assert only(history, Kind.REREAD).value == "java-1:1"


def test_record_that_a_group_never_got_is_skipped() -> None:
    assert only(consumed(("read", 0), ("read", 1), ("read", 3)), Kind.SKIPPED).value == "java-1:2"


def test_new_member_that_begins_past_the_commit_skips_what_lies_between() -> None:
    history = consumed(("read", 0), ("ok", 1), ("read", 1), ("read", 2), ("read2", 2), ("read2", 3))
    finding = only(history, Kind.SKIPPED)
    assert finding.value == "java-1:1"
    assert "past the commit" in finding.what


def test_other_record_at_an_offset_that_was_read_before_a_failover_is_no_repetition() -> None:
    story = Story()
    story.write()
    value = story.write(mirrored=False)
    story.told.append(Read("reader", GROUP, TOPIC, 0, 0, "java-1:0", story.tick(), "a"))
    story.told.append(Read("reader", GROUP, TOPIC, 0, 1, value, story.tick(), "a"))
    story.failover()
    story.write()
    story.told.append(Read("reader", GROUP, TOPIC, 0, 1, "java-1:2", story.tick(), "b"))
    assert kinds(story.history()) == {Kind.SALVAGED: [value]}


def test_group_that_reads_at_the_old_site_what_was_written_there_after_the_move_is_stale() -> None:
    story = Story()
    story.switchover()
    value = story.write()
    for group in (GROUP, "standby.audit"):
        story.told.append(Read(group, group, TOPIC, 0, 0, value, story.tick(), "a"))
    finding = only(story.history(), Kind.STALE)
    assert finding.value == value
    assert finding.what == "read at a 0.030 s after b had opened"


def test_record_read_with_read_twin_must_stay() -> None:
    story = Story()
    value = story.write(mirrored=False)
    story.failover()
    story.write()
    read = Read("reader", None, TOPIC, 0, 0, value, story.now_s, "a")
    story.told.append(read)
    assert kinds(story.history()) == {Kind.SALVAGED: [value]}
    story.told[-1] = replace(read, twin=True)
    assert kinds(story.history()) == {Kind.SALVAGED: [value], Kind.VANISHED: [value]}


def test_record_that_salvage_has_and_the_other_site_acknowledged_after_a_retry_is_not_stale() -> None:
    sent = Write("java-1", "java", "1", False, "orders", "java-1:7", Outcome.OK, end_s=20.0)
    told: list[Operation] = [
        Event(Happening.OPENED, 1.0, "a is active", {"site": "a", "planned": True}),
        Event(Happening.FAULT, 9.0, "a hangs", {"fault": "1", "site": "a"}),
        Event(Happening.OPENED, 15.0, "b is active", {"site": "b", "planned": False}),
        Salvaged("a", "orders", 0, 3, "java-1:7"),
        *(Final(site, "orders", 0, 5, "java-1:7", 0) for site in ("b", "a")),
    ]
    answered_by_b = replace(sent, partition=0, offset=5)
    assert found(History.of([answered_by_b, *told])) == []
    answered_by_a = replace(sent, partition=0, offset=3)
    assert Kind.STALE in {one.kind for one in found(History.of([answered_by_a, *told]))}


def test_retry_that_got_the_offset_at_the_other_site_that_the_lost_one_had_given_it_is_not_stale() -> None:
    """A client sends again what nobody answered, and is the first behind the promotion point with it."""
    history = History.of(
        [
            Event(Happening.OPENED, 1.0, "a is active", {"site": "a", "planned": True}),
            Event(Happening.FAULT, 9.0, "site a killed", {"fault": "1", "site": "a"}),
            Event(
                Happening.PROMOTION,
                15.0,
                "b took over",
                {"site": "b", "planned": False, "points": {"orders": {"0": 3}}},
            ),
            Event(Happening.OPENED, 15.0, "b is active", {"site": "b", "planned": False}),
            Write(
                "rd-plain",
                "librdkafka",
                "all",
                False,
                "orders",
                "rd-plain:7",
                Outcome.OK,
                start_s=8.9,
                end_s=17.0,
                partition=0,
                offset=3,
            ),
            Salvaged("a", "orders", 0, 3, "rd-plain:7"),
            *(Final(site, "orders", 0, 3, "rd-plain:7", 0) for site in ("b", "a")),
        ]
    )
    assert found(history) == []
    assert Index(history).site_of(history.writes[0]) is None
