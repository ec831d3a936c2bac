"""The pure part of settings: names in messages, and secrets kept out of them."""

import pytest

from twinlog.wire.configs import EVERY_BROKER, Kind, label, without_secrets


def test_the_value_of_a_sensitive_setting_is_taken_out_of_a_message() -> None:
    values = {"ssl.keystore.password": "hunter2", "log.retention.ms": "5"}
    said = "Invalid value hunter2 for ssl.keystore.password; 5 is fine"
    assert without_secrets(said, values) == "Invalid value (hidden) for ssl.keystore.password; 5 is fine"


def test_no_message_stays_no_message() -> None:
    assert without_secrets(None, {"sasl.jaas.config": "x"}) is None


@pytest.mark.parametrize(
    ("kind", "name", "shown"),
    [
        (Kind.BROKER, EVERY_BROKER, "every broker"),
        (Kind.BROKER, "3", "broker '3'"),
        (Kind.LOGGER, "3", "the loggers of broker 3"),
        (Kind.TOPIC, "orders", "topic 'orders'"),
    ],
)
def test_messages_name_the_owner_of_a_setting(kind: Kind, name: str, shown: str) -> None:
    assert label(kind, name) == shown
