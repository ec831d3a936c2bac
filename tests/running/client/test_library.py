"""The library as it is imported, and its small pure parts."""

from __future__ import annotations

import subprocess
import sys

import pytest

import twinlog
from tests.conftest import program_environment
from twinlog.errors import UsageError
from twinlog.wire.access import Access, Protocol
from twinlog.wire.driver import is_certain

NOWHERE = Access(("127.0.0.1:1",), Protocol.PLAINTEXT)


def test_importing_the_package_imports_no_driver(tmp_path_factory: pytest.TempPathFactory) -> None:
    code = "import sys, twinlog; print({'confluent_kafka', 'kafka', 'pydantic'} & set(sys.modules))"
    environment = program_environment(tmp_path_factory.mktemp("cache"))
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "set()"


def test_every_exported_name_is_there() -> None:
    for name in twinlog.__all__:
        assert getattr(twinlog, name) is not None


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Broker"):
        twinlog.Broker  # noqa: B018


@pytest.mark.parametrize(
    ("code", "certain"),
    [
        ("MESSAGE_TOO_LARGE", True),
        ("INVALID_RECORD", True),
        ("TOPIC_AUTHORIZATION_FAILED", False),  # it may have been allowed at the first attempt
        ("NOT_ENOUGH_REPLICAS", False),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", False),
        ("MSG_TIMED_OUT", False),
        ("PURGE_QUEUE", False),
    ],
)
def test_only_what_is_about_the_record_itself_proves_that_it_was_not_written(
    code: str, certain: bool
) -> None:
    assert is_certain(code) is certain


def test_unknown_acks_are_refused_before_anything_is_opened() -> None:
    with pytest.raises(UsageError, match="one"):
        twinlog.Producer(NOWHERE, acks="one")  # type: ignore[arg-type]


def test_reading_as_twin_without_a_standby_is_refused() -> None:
    with pytest.raises(UsageError, match="standby"):
        twinlog.Consumer(NOWHERE, group="g", topics=["orders"], read="twin")


def test_without_a_standby_a_twin_write_is_not_done() -> None:
    with twinlog.Producer(NOWHERE, acks="twin", timeout_s=1.0) as producer:
        outcome = producer.send("orders", b"1").result(timeout=5)
    assert isinstance(outcome, twinlog.NotDone)
    assert "standby" in outcome.reason and "degrade" in outcome.hint


def test_an_active_that_does_not_answer_makes_a_write_not_done_because_nothing_was_sent() -> None:
    with twinlog.Producer(NOWHERE, timeout_s=1.0) as producer:
        outcome = producer.send("orders", b"1").result(timeout=5)
    assert isinstance(outcome, twinlog.NotDone)
    assert outcome.hint


def test_a_closed_producer_sends_nothing() -> None:
    producer = twinlog.Producer(NOWHERE, timeout_s=1.0)
    producer.close()
    producer.close()
    assert isinstance(producer.send("orders", b"1").result(timeout=5), twinlog.NotDone)
    assert producer.flush(1.0) == 0
