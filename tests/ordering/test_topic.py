"""A topic without a broker: librdkafka takes every patience that a file can give."""

from __future__ import annotations

import pytest

from twinlog.ordering.localconfig import (
    ConsumerRetry,
    MetadataRetry,
    NetworkTimeouts,
    ProducerRetry,
    Retry,
)
from twinlog.ordering.support import Unavailable
from twinlog.ordering.topic import Reach, Topic
from twinlog.wire.access import Access, Protocol

_NOBODY = Access(("127.0.0.1:1",), Protocol.PLAINTEXT)
_TINY = Retry(
    network_timeouts=NetworkTimeouts(0.001, 0.001, 0.001),
    metadata=MetadataRetry(0.001, 1),
    producer=ProducerRetry(0.001, 1),
    consumer=ConsumerRetry(0.001),
)
_HUGE = Retry(
    network_timeouts=NetworkTimeouts(9e4, 9e4, 9e4),
    metadata=MetadataRetry(9e4, 1000),
    producer=ProducerRetry(9e4, 1000),
)


@pytest.mark.parametrize("retry", [Retry(), _TINY, _HUGE])
def test_any_patience_makes_a_topic_that_can_be_opened_and_closed(retry: Retry) -> None:
    topic = Topic("foo", Reach(_NOBODY, retry))
    topic.open()
    topic.insist(b"again")
    assert not topic.settle(0.0)
    topic.close()


def test_nobody_answers_in_time_is_unavailable() -> None:
    topic = Topic("foo", Reach(_NOBODY, _TINY))
    topic.open()
    future = topic.post(b"value")
    with pytest.raises(Unavailable, match="cannot enqueue"):
        future.result(30.0)
    topic.close()


def test_topic_is_closed_tells_what_was_not_answered_and_takes_nothing() -> None:
    topic = Topic("foo", Reach(_NOBODY, Retry()))
    with pytest.raises(Unavailable, match="not open"):
        topic.post(b"early")
    topic.open()
    future = topic.post(b"value")
    assert not future.cancel()
    topic.close()
    with pytest.raises(Unavailable):
        future.result(0.0)
    with pytest.raises(Unavailable, match="not open"):
        topic.post(b"late")


def test_record_is_bigger_than_any_broker_takes_is_unavailable() -> None:
    topic = Topic("foo", Reach(_NOBODY, Retry()))
    topic.open()
    with pytest.raises(Unavailable, match="too large"):
        topic.post(bytes(100 * 1024 * 1024)).result(0.0)
    topic.close()
