"""Kafka's codes as our errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import KafkaError, UnknownOutcome
from twinlog.wire import codes

CODES = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    36: "TOPIC_ALREADY_EXISTS",
    41: "NOT_CONTROLLER",
    58: "SASL_AUTHENTICATION_FAILED",
    91: "RESOURCE_NOT_FOUND",
    129: "REBOOTSTRAP_REQUIRED",
    133: "SHARE_SESSION_LIMIT_REACHED",
}


@pytest.mark.parametrize(("code", "name"), CODES.items())
def test_a_code_has_the_name_that_kafka_gives_it(code: int, name: str) -> None:
    assert codes.name_of(code) == name


def test_no_error_raises_nothing() -> None:
    codes.check(codes.NONE, None, "creating", "here")
    codes.check_change(codes.NONE, None, "creating", "here")


def test_an_error_says_what_where_and_why_and_carries_the_name() -> None:
    with pytest.raises(KafkaError) as caught:
        codes.check(36, "Topic 'orders' already exists.", "creating topic 'orders'", "127.0.0.1:9092")
    assert str(caught.value) == (
        "127.0.0.1:9092: creating topic 'orders': TOPIC_ALREADY_EXISTS: Topic 'orders' already exists."
    )
    assert caught.value.code == "TOPIC_ALREADY_EXISTS"
    assert "twinlog plan" in caught.value.hint
    assert not caught.value.retriable


@given(st.integers(-(2**15), 2**15 - 1))
def test_every_code_is_fine_or_retriable_or_permanent(code: int) -> None:
    assert [code == codes.NONE, codes.is_retriable(code), codes.is_permanent(code)].count(True) == 1


def test_a_code_newer_than_the_table_is_permanent_and_named_by_its_number() -> None:
    assert codes.name_of(9999) == "CODE_9999"
    assert codes.is_permanent(9999)


def test_a_hint_and_a_refusal_belong_to_names_that_exist() -> None:
    names = {codes.name_of(code) for code in range(-1, 134)}
    assert set(codes._HINTS) | codes._RETRIABLE | codes._REFUSED_BEFORE_APPEND <= names


@pytest.mark.parametrize("code", [6, 7, 20, 56, -1])
def test_an_error_that_can_follow_the_append_leaves_a_write_unknown(code: int) -> None:
    assert not codes.is_refused_before_append(code)


@pytest.mark.parametrize("code", [10, 19, 29, 45, 87])
def test_an_error_that_comes_before_the_append_means_not_done(code: int) -> None:
    assert codes.is_refused_before_append(code)


def test_a_change_that_the_controller_did_not_answer_is_unknown() -> None:
    with pytest.raises(UnknownOutcome):
        codes.check_change(codes.REQUEST_TIMED_OUT, None, "creating topic 'orders'", "here")


def test_a_topic_that_the_controller_does_not_know_is_not_waited_for() -> None:
    with pytest.raises(KafkaError) as caught:
        codes.check_change(codes.UNKNOWN_TOPIC_OR_PARTITION, None, "widening", "here")
    assert not caught.value.retriable
