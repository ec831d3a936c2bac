"""What stands twice or in another order, and whether a client's own retries explain it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.drills.story import TOPIC, Story, found, kinds, only
from twinlog.drills.finding import Kind
from twinlog.drills.history import (
    Event,
    Final,
    Happening,
    History,
    Operation,
    Outcome,
    Write,
)
from twinlog.drills.retries import AFTERMATH_S, MOST_IN_FLIGHT


def test_value_twice_of_an_idempotent_producer_is_duplicated() -> None:
    story = Story()
    value = story.write()
    finding = only(story.with_value_at(1, value), Kind.DUPLICATED)
    assert finding.value == value
    assert "orders-0@0, orders-0@1" in finding.what


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"outcome": Outcome.UNKNOWN}, Kind.REPEATED),
        ({"end_s": 1010.0}, Kind.REPEATED),
        ({"start_s": None}, Kind.REPEATED),
        ({"retried": True}, Kind.REPEATED),
        ({"sends": 2}, Kind.REPEATED),
        ({"retried": False, "end_s": 1010.0}, Kind.DUPLICATED),
        ({}, Kind.DUPLICATED),  # acknowledged so soon that no retry can have been
    ],
)
def test_value_twice_of_a_plain_producer_is_a_retry_where_one_can_have_been(
    fields: dict[str, object], kind: Kind
) -> None:
    story = Story()
    value = story.write(idempotent=False)

    def twice(told: list[Operation]) -> None:
        told += [Final(site, TOPIC, 0, 1, value, 0) for site in ("a", "b")]

    history = story.history(twice)
    told = replace(history.writes[0], **fields)  # type: ignore[arg-type]
    assert only(replace(history, writes=(told,)), kind).value == value


def copied(copies: int, events: tuple[float, ...], **fields: object) -> History:
    """A plain write that stands so often in the log, with disturbances at these times."""
    started = Event(Happening.OPENED, -1e6, "a is active", {"site": "a"})
    write = Write("c", "librdkafka", "all", False, TOPIC, "c:1", Outcome.OK, 20.0, 20.2, "x")
    told = [Event(Happening.FAULT, at_s, "a broker killed", {"fault": "x"}) for at_s in events]
    finals = [Final("a", TOPIC, 0, offset, "c:1", 0) for offset in range(copies)]
    return History.of([started, *told, replace(write, **fields), *finals])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("copies", "events", "fields", "kind"),
    [
        (2, (), {}, Kind.DUPLICATED),  # nothing broke a connection, and no request was late
        (2, (20.1,), {}, Kind.REPEATED),
        (2, (15.0,), {}, Kind.REPEATED),  # what Kafka did about it came a while later
        (3, (15.0,), {}, Kind.DUPLICATED),
        (5, (20.1,), {}, Kind.DUPLICATED),
        (5, (20.1, 21.0, 22.0, 23.0), {"end_s": 24.0}, Kind.REPEATED),
        (3, (20.1,), {"end_s": 26.0}, Kind.REPEATED),  # one answer was lost, another one late
        (4, (20.1,), {"end_s": 26.0}, Kind.DUPLICATED),
        (2, (30.0,), {}, Kind.DUPLICATED),  # it had been answered before
        (2, (), {"sends": 2}, Kind.REPEATED),
        (3, (), {"sends": 2}, Kind.DUPLICATED),
        (2, (), {"retried": True}, Kind.REPEATED),
        (3, (), {"retried": True}, Kind.DUPLICATED),
        (3, (19.0, 20.1), {"start_s": None}, Kind.REPEATED),
        (5, (19.0, 20.1), {"start_s": None}, Kind.DUPLICATED),
    ],
)
def test_plain_write_has_no_more_copies_than_answers_can_have_been_lost(
    copies: int, events: tuple[float, ...], fields: dict[str, object], kind: Kind
) -> None:
    assert only(copied(copies, events, **fields), kind).value == "c:1"


def test_fault_that_lasts_explains_a_copy_however_long_ago_it_began() -> None:
    history = copied(2, (20.0 - 2 * AFTERMATH_S,))
    assert only(history, Kind.REPEATED).value == "c:1"
    healed = Event(Happening.HEALED, 19.0 - AFTERMATH_S, "healed", {"fault": "x"})
    events = tuple(sorted((*history.events, healed), key=lambda one: one.time_s))
    assert only(replace(history, events=events), Kind.DUPLICATED).value == "c:1"


def test_client_repeats_no_more_values_after_a_disturbance_than_it_has_in_flight() -> None:
    """One that does not say when it sent: five requests with a batch of a partition each."""
    many = MOST_IN_FLIGHT + 3
    fault = Event(Happening.FAULT, 20.0, "a broker killed", {"fault": "x"})
    writes = [
        Write("c", "java", "1", False, TOPIC, f"c:{number}", Outcome.OK, None, 21.0) for number in range(many)
    ]
    finals = [
        Final("a", TOPIC, 0, offset + again * many, f"c:{offset}", 0)
        for offset in range(many)
        for again in (0, 1)
    ]
    found_kinds = kinds(History.of([fault, *writes, *finals]))
    assert [len(found_kinds[kind]) for kind in (Kind.REPEATED, Kind.DUPLICATED)] == [MOST_IN_FLIGHT, 3]


def test_idempotent_write_stands_once_between_two_failovers() -> None:
    story = Story()
    story.write()
    value = story.write(outcome=Outcome.UNKNOWN)
    story.failover()
    story.write()
    history = story.with_value_at(3, value)
    assert only(history, Kind.REPEATED).value == value
    more = tuple(Final(site, TOPIC, 0, 4, value, 0) for site in ("a", "b"))
    assert only(replace(history, finals=(*history.finals, *more)), Kind.DUPLICATED).value == value


@pytest.mark.parametrize(("planned", "kind"), [(False, Kind.REPEATED), (True, Kind.DUPLICATED)])
def test_idempotent_write_on_both_sides_of_a_promotion_point_is_excused_by_a_failover_only(
    planned: bool, kind: Kind
) -> None:
    story = Story()
    story.write()
    value = story.write(outcome=Outcome.UNKNOWN)
    if planned:
        story.switchover()
    else:
        story.failover()
    assert only(story.with_value_at(2, value), kind).value == value


def test_two_writes_of_a_key_swapped_is_reordered() -> None:
    story = Story()
    values = [story.write() for _ in range(5)]
    swap = {values[2]: values[3], values[3]: values[2]}

    def change(told: list[Operation]) -> None:
        for place, one in enumerate(told):
            if isinstance(one, Final):
                told[place] = replace(one, value=swap.get(one.value, one.value))
            if isinstance(one, Write):
                told[place] = replace(one, offset=None)

    assert only(story.history(change), Kind.REORDERED).value in swap


def test_write_that_stands_far_too_late_is_the_only_one_named() -> None:
    story = Story()
    values = [story.write() for _ in range(9)]
    late = values[2]

    def change(told: list[Operation]) -> None:
        told[:] = [replace(one, offset=None) if isinstance(one, Write) else one for one in told]
        told[:] = [one for one in told if not (isinstance(one, Final) and one.value == late)]
        told += [Final(site, TOPIC, 0, 20, late, 0) for site in ("a", "b")]

    assert only(story.history(change), Kind.REORDERED).value == late


def test_order_between_keys_is_not_promised() -> None:
    writes = [
        Write("c", "java", "all", True, TOPIC, f"c:{number}", Outcome.OK, number, number, key)
        for number, key in ((1, "x"), (2, "y"))
    ]
    finals = [Final("a", TOPIC, 0, 9 - number, f"c:{number}", 0) for number in (1, 2)]
    assert found(History.of([*writes, *finals])) == []


def overtaken(first: dict[str, object], *, idempotent: bool = False, disturbed: bool = True) -> History:
    """Two writes of a key of which the second stands first; what is told of the first one is given."""
    started = Event(Happening.OPENED, 10.0 if disturbed else -1e6, "a is active", {"site": "a"})
    one, two = (
        Write("c", "java", "all", idempotent, TOPIC, f"c:{number}", Outcome.OK, 20.0, 20.01, "x")
        for number in (1, 2)
    )
    finals = [Final("a", TOPIC, 0, 9 - number, f"c:{number}", 0) for number in (1, 2)]
    return History.of([started, replace(one, **first), two, *finals])  # type: ignore[arg-type]


@pytest.mark.parametrize("first", [{"end_s": 20.2}, {"start_s": None, "end_s": 20.2}, {"retried": True}])
def test_plain_write_that_was_overtaken_while_it_was_tried_again_is_listed_and_breaks_nothing(
    first: dict[str, object],
) -> None:
    finding = only(overtaken(first), Kind.SHUFFLED)
    assert finding.is_harmless
    assert "because it tried again" in finding.what


@pytest.mark.parametrize(
    ("first", "disturbed"),
    [
        ({}, True),  # it was answered too soon for a retry
        ({"end_s": 20.2}, False),  # nothing was there to make it try again
        ({"end_s": 20.2, "retried": False}, True),
        ({"start_s": None, "end_s": 20.005}, True),  # answered before the one that stands before it
    ],
)
def test_plain_write_that_stands_in_another_order_without_a_retry_is_reordered(
    first: dict[str, object], disturbed: bool
) -> None:
    assert not only(overtaken(first, disturbed=disturbed), Kind.REORDERED).is_harmless


def test_retry_of_an_idempotent_client_explains_no_other_order() -> None:
    only(overtaken({"end_s": 20.2, "retried": True}, idempotent=True), Kind.REORDERED)
