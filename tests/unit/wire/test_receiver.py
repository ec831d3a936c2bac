"""What a Receiver returns when a rebalance falls into the middle of a batch."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message

from twinlog.wire.access import Access, Protocol
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.messages import without_stale
from twinlog.wire.receiver import Receiver


def message(partition: int, offset: int) -> Any:
    return Message(topic="orders", partition=partition, offset=offset, value=b"v", timestamp=(1, 5))


class Driver:
    """librdkafka's consumer, which loses partition 0 after it has collected some of its records."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._gone: Callable[[Any, Any], None] = lambda *_: None

    def subscribe(self, _: list[str], *, on_revoke: Any, on_lost: Any) -> None:
        assert on_revoke is on_lost
        self._gone = on_revoke

    def assignment(self) -> list[Any]:
        return [SimpleNamespace(topic="orders", partition=1)]

    def poll(self, _: float) -> Any:
        return message(0, 10)

    def consume(self, _: int, __: float) -> list[Any]:
        collected = [message(0, 11), message(1, 7)]
        self._gone(self, [SimpleNamespace(topic="orders", partition=0)])
        return [*collected, message(1, 8)]


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


class Returning(Driver):
    """The same, which is given partition 0 again before its first record comes."""

    def assignment(self) -> list[Any]:
        return [SimpleNamespace(topic="orders", partition=number) for number in (0, 1)]

    def poll(self, _: float) -> Any:
        self._gone(self, [SimpleNamespace(topic="orders", partition=0)])
        return message(0, 10)

    def consume(self, _: int, __: float) -> list[Any]:
        return [message(0, 11)]


def test_partition_that_came_back_before_its_first_record_nothing_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("confluent_kafka.Consumer", Returning)
    made = Receiver(
        Access(("localhost:1",), Protocol.PLAINTEXT), group="g", start="earliest", tuning=Tuning()
    )
    made.subscribe(["orders"], lambda _: None)
    assert [record.offset for record in made.take(500, 1.0)] == [10, 11]


@pytest.mark.parametrize(
    ("offsets", "kept"),
    [([10, 11, 8, 9], [8, 9]), ([10, 11], [10, 11]), ([8, 9, 10], [8, 9, 10]), ([10, 10], [10])],
)
def test_partition_that_is_back_goes_on_where_its_offsets_went_back(
    offsets: list[int], kept: list[int]
) -> None:
    place = ("orders", 0)
    found = without_stale([message(0, one) for one in offsets], {place}, [place])
    assert [one.offset() for one in found] == kept
