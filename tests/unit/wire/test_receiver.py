"""What a Receiver returns when a rebalance falls into the middle of a batch."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from twinlog.wire.access import Access, Protocol
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.receiver import Receiver


class Message:
    def __init__(self, partition: int, offset: int) -> None:
        self._place = (partition, offset)

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return self._place[0]

    def offset(self) -> int:
        return self._place[1]

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return b"v"

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return (1, 5)


class Driver:
    """librdkafka's consumer, which loses partition 0 after it has collected some of its records."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._gone: Callable[[Any, Any], None] = lambda *_: None

    def subscribe(self, _: list[str], *, on_revoke: Any, on_lost: Any) -> None:
        assert on_revoke is on_lost
        self._gone = on_revoke

    def poll(self, _: float) -> Message:
        return Message(0, 10)

    def consume(self, _: int, __: float) -> list[Message]:
        collected = [Message(0, 11), Message(1, 7)]
        self._gone(self, [SimpleNamespace(topic="orders", partition=0)])
        return [*collected, Message(1, 8)]


def test_records_of_a_partition_that_is_lost_during_a_batch_are_not_handed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("confluent_kafka.Consumer", Driver)
    made = Receiver(
        Access(("localhost:1",), Protocol.PLAINTEXT), group="g", start="earliest", tuning=Tuning()
    )
    lost: list[tuple[str, int]] = []
    made.subscribe(["orders"], lost.extend)
    assert [(record.partition, record.offset) for record in made.take(500, 1.0)] == [(1, 7), (1, 8)]
    assert lost == [("orders", 0)]
