"""Kafka's settings: names, kinds and values as Kafka takes them."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.spec import refused
from twinlog.spec.kafka_settings import (
    SettingError,
    canonical,
    default_of,
    is_dynamic,
    is_known,
    kind_of,
    names,
    nearest,
)
from twinlog.spec.model import KAFKA_VERSION


def test_facts_are_of_the_version_that_sites_run() -> None:
    text = files("twinlog.spec").joinpath("kafka_settings.json").read_text()
    assert json.loads(text)["version"] == KAFKA_VERSION


def test_facts_hold_what_the_rules_rest_on() -> None:
    assert default_of("message.max.bytes") == "1048588"
    assert default_of("replica.fetch.max.bytes") == "1048576"
    assert default_of("socket.request.max.bytes") == "104857600"
    assert kind_of("log.retention.bytes") == "long"
    assert is_dynamic("message.max.bytes")
    assert not is_dynamic("replica.fetch.max.bytes")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("message.max.bytes", 15728640, "15728640"),
        ("message.max.bytes", "15MiB", "15728640"),
        ("log.retention.ms", "7d", "604800000"),
        ("log.retention.hours", "7d", "168"),
        ("offsets.retention.minutes", "7d", "10080"),
        ("leader.imbalance.check.interval.seconds", "5m", "300"),
        ("log.retention.bytes", -1, "-1"),
        ("log.cleaner.dedupe.buffer.size", "128MiB", "134217728"),
        ("log.cleaner.io.max.bytes.per.second", "5MB/s", "5000000"),
        ("log.cleaner.min.cleanable.ratio", 0.3, "0.3"),
        ("auto.create.topics.enable", False, "false"),
        ("log.cleanup.policy", "compact, delete", "compact,delete"),
        ("group.consumer.migration.policy", "upgrade", "upgrade"),
        ("listener.name.client_tls.max.connections", 10, "10"),
        ("rsm.config.bucket", "records", "records"),
    ],
)
def test_value_is_written_as_kafka_takes_it(name: str, value: object, text: str) -> None:
    assert canonical(name, value) == text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("message.max.bytes", "3GiB"),
        ("message.max.bytes", "7d"),
        ("log.retention.hours", "90m"),
        ("num.io.threads", 2.5),
        ("log.cleaner.min.cleanable.ratio", 2),
        ("log.cleaner.min.cleanable.ratio", "nan"),
        ("auto.create.topics.enable", "yes"),
        ("compression.type", "zip"),
        ("security.providers", "a\nauthorizer.class.name=x"),
        ("no.such.setting", 1),
    ],
)
def test_value_that_kafka_would_refuse_is_refused(name: str, value: object) -> None:
    with pytest.raises(SettingError):
        canonical(name, value)


def test_secret_value_is_not_repeated() -> None:
    with pytest.raises(SettingError) as caught:
        canonical("delegation.token.secret.key", "hunter2\nx")
    assert "hunter2" not in caught.value.what + caught.value.hint


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("mesage.max.bytes", "message.max.bytes"),
        ("message_max_bytes", "message.max.bytes"),
        ("retention.ms", "log.retention.ms"),
        ("xyzzy", None),
    ],
)
def test_unknown_name_has_a_nearest_one(name: str, near: str | None) -> None:
    assert nearest(name) == near


def test_broker_word_for_a_topic_setting_is_translated() -> None:
    assert nearest("message.max.bytes", "topic") == "max.message.bytes"
    assert is_known("max.message.bytes", "topic") and not is_known("max.message.bytes")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("process.roles", "set by Twinlog"),
        ("ssl.keystore.password", "set by Twinlog"),
        ("sasl.enabled.mechanisms", "set by Twinlog"),
        ("inter.broker.listener.name", "set by Twinlog"),
        ("super.users", "set by Twinlog"),
        ("listener.name.client.ssl.client.auth", "set by Twinlog"),
        ("listener.name.link.max.connections", "set by Twinlog"),
        ("inter.broker.protocol.version", "gone since"),
        ("zookeeper.connect", "gone since"),
        ("fetch.message.max.bytes", "of clients"),
    ],
)
def test_setting_that_the_file_cannot_set_is_refused_with_the_reason(name: str, reason: str) -> None:
    found = refused.refusal(name)
    assert found is not None
    assert reason in found.what and found.hint


def test_removed_and_client_settings_are_none_that_kafka_has() -> None:
    listed = {*refused._REMOVED, *refused._CLIENTS}
    assert not listed & set(names())


def test_most_settings_are_free_to_set() -> None:
    free = [name for name in names() if refused.refusal(name) is None]
    assert len(free) > 250
    assert "message.max.bytes" in free and "listener.name.client.max.connections" not in names()


@given(st.sampled_from(names()), st.one_of(st.text(), st.integers(), st.floats(), st.booleans()))
def test_any_value_is_taken_or_refused_and_canonical_stays_canonical(name: str, value: object) -> None:
    try:
        text = canonical(name, value)
    except SettingError as error:
        assert error.what
    else:
        assert canonical(name, text) == text
