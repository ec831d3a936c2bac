"""Where failed records go, and what is written about them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.client.redriving import parted
from twinlog.client.retries import (
    ATTEMPTS,
    DUE,
    ORIGIN,
    REASON,
    Letters,
    Retries,
    attempts_of,
    due_ms,
    origin_topic,
    redriven,
    sorted_out,
)
from twinlog.client.worker import firsts
from twinlog.errors import UsageError
from twinlog.wire.driver import Outgoing
from twinlog.wire.received import Received

RETRIES = Retries("orders", delays_s=(1.0, 10.0))
FIRST = Received("orders", 2, 17, b"k", b"v", (("kind", b"late"),), 1_700_000_000_000)
NOW_MS = 1_800_000_000_000


def arrived(record: Outgoing, offset: int = 0) -> Received:
    return Received(
        record.topic, 0, offset, record.key, record.value, tuple(record.headers), FIRST.timestamp_ms
    )


def test_a_failure_waits_for_its_delay_in_the_retry_topic() -> None:
    again = arrived(RETRIES.failed(FIRST, "boom", NOW_MS))
    assert again.topic == "orders.retry"
    assert (again.key, again.value, again.timestamp_ms) == (b"k", b"v", FIRST.timestamp_ms)
    assert dict(again.headers) == {
        "kind": b"late",
        ORIGIN: b"orders/2/17",
        ATTEMPTS: b"1",
        REASON: b"boom",
        DUE: b"%d" % (NOW_MS + 1000),
    }
    assert (attempts_of(again), due_ms(again)) == (1, NOW_MS + 1000)


def test_after_the_last_delay_a_record_is_a_dead_letter_and_remembers_where_it_was() -> None:
    second = arrived(RETRIES.failed(FIRST, "one", NOW_MS))
    third = arrived(RETRIES.failed(second, "two", NOW_MS))
    assert third.topic == "orders.retry" and due_ms(third) == NOW_MS + 10_000
    dead = arrived(RETRIES.failed(third, "three", NOW_MS))
    assert dead.topic == "orders.dead"
    assert dict(dead.headers) == {
        "kind": b"late",
        ORIGIN: b"orders/2/17",
        ATTEMPTS: b"3",
        REASON: b"three",
    }


def test_a_dead_letter_goes_back_as_it_first_came() -> None:
    dead = arrived(Retries("orders", delays_s=()).failed(FIRST, "boom", NOW_MS))
    assert redriven(dead) == Outgoing(
        "orders", b"v", b"k", [("kind", b"late")], timestamp_ms=FIRST.timestamp_ms
    )


@pytest.mark.parametrize("origin", [None, b"", b"orders", b"/1/2", b"orders/a/2", b"orders/1/", b"\xff/1"])
def test_a_letter_that_does_not_say_where_it_came_from_goes_only_where_it_is_told(
    origin: bytes | None,
) -> None:
    strange = FIRST._replace(topic="orders.dead", headers=((ORIGIN, origin),))
    assert origin_topic(strange) is None
    with pytest.raises(UsageError, match="does not say where it came from"):
        redriven(strange)
    assert redriven(strange, "mended").topic == "mended"


def test_letters_are_sorted_out_by_origin_and_reason_the_most_frequent_first() -> None:
    dead = [arrived(Retries("orders", ()).failed(FIRST, reason, NOW_MS)) for reason in ("one", "two", "two")]
    assert sorted_out([*dead, FIRST._replace(headers=())]) == [
        Letters("orders", "two", 2),
        Letters("orders", "one", 1),
        Letters(None, "", 1),
    ]


def test_letters_behind_the_ends_and_of_other_partitions_stay() -> None:
    letters = [
        FIRST._replace(partition=place, offset=offset) for place, offset in [(0, 8), (0, 9), (1, 0), (0, 10)]
    ]
    due, later = parted(letters, {("orders", 0): 9})
    assert [record[1:3] for record in due] == [(0, 8)]
    assert firsts(later) == {("orders", 0): 9, ("orders", 1): 0}


@given(st.binary(max_size=20), st.text(max_size=2000))
def test_headers_that_others_wrote_and_any_reason_do_no_harm(content: bytes, reason: str) -> None:
    strange = FIRST._replace(headers=((ATTEMPTS, content), (DUE, None)))
    assert due_ms(strange) == 0
    made = RETRIES.failed(strange, reason, NOW_MS)
    assert made.topic in ("orders.retry", "orders.dead")
    assert len(dict(made.headers)[REASON] or b"") <= 2000
