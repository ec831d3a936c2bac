"""Properties of Java clients, and what they mean to librdkafka."""

from __future__ import annotations

import confluent_kafka
import pytest

from twinlog.errors import UsageError
from twinlog.perf import clients
from twinlog.perf.properties import given, translated

BASE = {"bootstrap.servers": "127.0.0.1:1"}
# The properties on the command lines that this product grew from.
OF_THE_FIRST = ("acks=-1", "buffer.memory=67108864", "batch.size=64000")
OF_THE_SECOND = ("acks=1", "buffer.memory=67108864", "compression.type=none", "batch.size=8196")


@pytest.mark.parametrize("pairs", [OF_THE_FIRST, OF_THE_SECOND])
def test_properties_of_a_known_command_line_are_taken_by_librdkafka(pairs: tuple[str, ...]) -> None:
    settings = clients.producer(BASE, given(pairs))
    assert settings["queue.buffering.max.kbytes"] == 65536
    confluent_kafka.Producer(dict(settings))


def test_acks_of_one_alone_turns_idempotence_off_as_in_java() -> None:
    assert clients.producer(BASE, {})["enable.idempotence"] is True
    assert clients.producer(BASE, {"acks": "1"})["enable.idempotence"] is False
    assert clients.producer(BASE, {"acks": "1", "enable.idempotence": "true"})["enable.idempotence"] == "true"


def test_a_record_in_a_transaction_waits_no_longer_than_the_transaction() -> None:
    settings = clients.producer(BASE, {"transactional.id": "t", "delivery.timeout.ms": "120000"})
    assert settings["message.timeout.ms"] == 60_000
    confluent_kafka.Producer(dict(settings))


def test_names_that_mean_something_else_in_librdkafka_are_not_passed_on() -> None:
    assert translated({"request.timeout.ms": "3000"}) == {"socket.timeout.ms": "3000"}
    assert translated({"receive.buffer.bytes": "-1"}) == {"socket.receive.buffer.bytes": 0}


def test_serializers_are_the_tools_own_and_assignors_go_by_their_short_names() -> None:
    assert translated({"key.serializer": "org.example.Any"}) == {}
    name = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert translated({"partition.assignment.strategy": name}) == {
        "partition.assignment.strategy": "cooperative-sticky"
    }


@pytest.mark.parametrize("key", ["max.block.ms", "partitioner.class", "interceptor.classes"])
def test_a_property_without_a_counterpart_is_an_error_that_names_it(key: str) -> None:
    with pytest.raises(UsageError, match=key):
        translated({key: "1"})


def test_words_that_are_no_properties_are_errors() -> None:
    for word in ("acks", "=1", ""):
        with pytest.raises(UsageError):
            given((word,))
    with pytest.raises(UsageError, match="whole number"):
        translated({"buffer.memory": "much"})
