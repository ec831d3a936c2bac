"""Advice on events: what the four practices say of a sample."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.ops.event_names import Style, does_two_things, says_what_happened, style_of
from twinlog.ops.event_rules import Event, Practice, event_of, review


def event(fields: dict[str, Any], name: str = "OrderPlaced") -> Event:
    return event_of(json.dumps(fields).encode(), [("type", name.encode())])


def subjects(events: list[Event]) -> dict[Practice, set[str]]:
    found: dict[Practice, set[str]] = {}
    for one in review(events):
        found.setdefault(one.practice, set()).add(one.subject)
    return found


def test_events_that_follow_the_practices_get_no_advice() -> None:
    good = [event({"order": f"o-{number}", "amount": number, "paid": True}) for number in range(10)]
    assert review(good) == []


@pytest.mark.parametrize(
    "name", ["UserCreated", "user.created", "ORDER_PAID", "com.shop/payment-sent", "stockSold"]
)
def test_names_in_the_past_say_what_happened(name: str) -> None:
    assert says_what_happened(name)


@pytest.mark.parametrize("name", ["CreateUser", "user.create", "Order", "PAY_ORDER", "need", ""])
def test_names_of_commands_and_things_do_not(name: str) -> None:
    assert not says_what_happened(name)


def test_styles_of_names_are_told_apart() -> None:
    styles = {name: style_of(name) for name in ("UserCreated", "userCreated", "user_created", "user-created")}
    assert list(styles.values()) == [Style.PASCAL, Style.CAMEL, Style.SNAKE, Style.KEBAB]
    assert (style_of("user.created"), style_of("USER_CREATED")) == (Style.DOTTED, Style.UPPER)


def test_a_name_of_another_style_and_a_command_are_named() -> None:
    events = [event({"a": 1}) for _ in range(5)] + [
        event({"a": 1}, "order_sent"),
        event({"a": 1}, "CancelOrder"),
    ]
    assert subjects(events)[Practice.NAMES] == {"order_sent", "CancelOrder"}
    assert subjects(events)[Practice.STREAM] == {"order_sent", "CancelOrder"}


def test_numbers_and_truth_as_text_and_mixed_types_are_named_and_codes_are_not() -> None:
    events = [
        event(
            {
                "amount": str(number),
                "price": f"{number}.50",
                "paid": "true",
                "zip": "01234",
                "orderId": "17",
                "mixed": value,
            }
        )
        for number, value in enumerate([1, "a", 2, "b", 3])
    ]
    assert subjects(events)[Practice.TYPES] == {
        "OrderPlaced.amount",
        "OrderPlaced.price",
        "OrderPlaced.paid",
        "OrderPlaced.mixed",
    }


def test_an_event_with_a_switch_or_two_halves_has_more_than_one_purpose() -> None:
    switched = [event({"action": action, "n": 1}) for action in ("create", "delete", "create")]
    assert subjects(switched)[Practice.PURPOSE] == {"OrderPlaced.action"}
    halves = [event({"n": 1, **({"left": 1} if number % 2 else {"right": 1})}) for number in range(10)]
    assert subjects(halves)[Practice.PURPOSE] == {"OrderPlaced"}
    assert does_two_things("OrderCreatedOrUpdated") and not does_two_things("OrderRecorded")


def test_records_that_cannot_be_looked_into_are_counted() -> None:
    events = [event_of(value, []) for value in (b"\xff\x00", b"", None, b"[1]", b'{"a": 1}')]
    (sample,) = [one for one in review(events) if one.practice is Practice.SAMPLE]
    assert sample.records == 4


def test_the_type_is_taken_from_a_header_before_a_field() -> None:
    value = b'{"eventType": "UserCreated"}'
    assert event_of(value, [("ce_type", b"UserRemoved")]).type == "UserRemoved"
    assert event_of(value, [("other", b"x")]).type == "UserCreated"


@given(
    st.lists(
        st.binary(max_size=40)
        | st.builds(
            lambda told: json.dumps(told).encode(),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                lambda inner: (
                    st.dictionaries(st.text(max_size=5), inner, max_size=4) | st.lists(inner, max_size=3)
                ),
                max_leaves=10,
            ),
        ),
        max_size=20,
    )
)
def test_any_records_can_be_looked_at(values: list[bytes]) -> None:
    for one in review([event_of(value, []) for value in values]):
        assert one.records > 0 and one.advice
