"""How writes end that a site does not take."""

from __future__ import annotations

import pytest

from tests.cluster.conftest import Bus
from tests.cluster.library.conftest import USER, WAIT_S, take
from twinlog import Consumer, Done, NotDone, Outgoing, Producer

pytestmark = pytest.mark.cluster


def test_a_user_who_may_write_nowhere_has_sent_nothing_and_is_told_so(work: Bus, topic: str) -> None:
    with Producer.of_bus(work.file, "reader", timeout_s=WAIT_S) as producer:
        outcomes = producer.send_many(Outgoing(topic, b"%d" % number) for number in range(100))
        later = producer.send(topic, b"later").result(WAIT_S)
        assert producer.has_given_up
    for outcome in outcomes:
        assert isinstance(outcome, NotDone) and "CLUSTER_AUTHORIZATION_FAILED" in outcome.reason
        assert "twinlog user rights" in outcome.hint
    assert isinstance(later, NotDone) and "twinlog user rights" in later.hint
    with Producer.of_bus(work.file, USER) as producer:
        assert isinstance(producer.send(topic, b"first").result(WAIT_S), Done)
        assert not producer.has_given_up
    with Consumer.of_bus(work.file, USER, "looking", [topic]) as consumer:
        assert [record.value for record in take(consumer, 1)] == [b"first"]
        assert consumer.poll(0.5) is None


def test_a_producer_is_idempotent_unless_it_is_told_otherwise(work: Bus, topic: str) -> None:
    for settings in (None, {"enable.idempotence": False}):
        with Producer.of_bus(work.file, USER, timeout_s=WAIT_S, settings=settings) as producer:
            for number in range(3):
                assert isinstance(producer.send(topic, b"%d" % number, partition=0).result(WAIT_S), Done)
    (remembered,) = work.json("producers", topic, "--partition", "0")
    assert remembered["producer_id"] >= 0 and remembered["last_sequence"] == 2
    assert [row["end"] for row in work.json("topic", "offsets", topic)] == [6, 0, 0]
