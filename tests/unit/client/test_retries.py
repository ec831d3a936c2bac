"""Where failed records go, and what is written about them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinlog.client.retries import ATTEMPTS, DUE, ORIGIN, REASON, Retries, attempts_of, due_ms, redriven
from twinlog.wire.driver import Outgoing
from twinlog.wire.receiver import Received

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


@given(st.binary(max_size=20), st.text(max_size=2000))
def test_headers_that_others_wrote_and_any_reason_do_no_harm(content: bytes, reason: str) -> None:
    strange = FIRST._replace(headers=((ATTEMPTS, content), (DUE, None)))
    assert due_ms(strange) == 0
    made = RETRIES.failed(strange, reason, NOW_MS)
    assert made.topic in ("orders.retry", "orders.dead")
    assert len(dict(made.headers)[REASON] or b"") <= 2000
