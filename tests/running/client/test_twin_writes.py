"""Writes for acks=twin on librdkafka's own broker for tests, with a standby that says what it is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import pytest

from twinlog import Done, NotDone, Outgoing, Producer, Sent, UnknownAtTwin
from twinlog.client.standby import Standby
from twinlog.client.ways import Ways
from twinlog.spec.model import Role
from twinlog.wire.access import Access, Protocol
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.roles import Standing

STANDING = Standing("bus", "b", Role.STANDBY, 1)
WAIT_S = 60.0


class Told:
    """A standby whose copies are complete, or as far as is said."""

    def __init__(self, end: int = 1_000_000) -> None:
        self.end = end
        self.ends: Mapping[TopicPartition, int] = {}

    def admit(self, _: str) -> Standing:
        return STANDING

    def watermarks(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, self.end)

    def standing(self) -> Standing:
        return STANDING

    def close(self) -> None:
        pass


@contextmanager
def writing(standby: Told, timeout_s: float = WAIT_S) -> Iterator[Producer]:
    settings = {"test.mock.num.brokers": 1, "log_level": 0}
    access = Access(("localhost:1",), Protocol.PLAINTEXT)
    with Producer(access, acks="twin", timeout_s=timeout_s, ways=Ways(settings=settings)) as producer:
        producer._standby = cast(Standby, standby)
        yield producer


def test_writes_that_the_standby_has_are_done_there_and_called_back_once() -> None:
    calls: list[Sent] = []
    with writing(Told()) as producer:
        sent = [producer.send("orders", b"%d" % number) for number in range(1000)]
        for one in sent:
            one.add_done_callback(calls.append)
        outcomes = [one.result(WAIT_S) for one in sent]
        assert producer.flush(WAIT_S) == 0
    assert all(isinstance(outcome, Done) and outcome.twin for outcome in outcomes)
    assert len(calls) == len(set(calls)) == 1000


def test_a_write_that_the_standby_lacks_runs_out_of_time_and_says_where_it_is() -> None:
    with writing(Told(end=0), timeout_s=2.0) as producer:
        outcome = producer.send("orders", b"1", partition=0).result(WAIT_S)
        assert producer.flush(WAIT_S) == 0
    assert isinstance(outcome, UnknownAtTwin) and (outcome.partition, outcome.offset) == (0, 0)


def test_a_write_that_the_active_refuses_ends_without_the_standby() -> None:
    with writing(Told(end=0)) as producer:
        refused, fine = producer.send_many(
            [Outgoing("orders", b"1", partition=99), Outgoing("orders", b"1")], acks="all"
        )
        alone = producer.send("orders", b"1", partition=99).result(WAIT_S)
        assert producer.flush(WAIT_S) == 0
    assert isinstance(fine, Done) and not fine.twin
    assert not isinstance(refused, Done | UnknownAtTwin)
    assert not isinstance(alone, Done | UnknownAtTwin)


def test_closing_ends_what_still_waits_for_the_standby() -> None:
    with writing(Told(end=0)) as producer:
        sent = producer.send("orders", b"1")
        producer.close(timeout_s=1.0)
    assert isinstance(sent.result(0), UnknownAtTwin)


def test_a_write_for_which_too_many_wait_already_is_not_sent_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinlog.client.producer.MOST_AT_TWIN", 1)
    with writing(Told(end=0), timeout_s=1.0) as producer:
        first = producer.send("orders", b"1", partition=0)
        producer._timeout_s = 0.01  # shorter than what the first one waits
        second = producer.send("orders", b"2", partition=0).result(0)
        third = producer.send("orders", b"3", partition=0, acks="all").result(WAIT_S)
        assert isinstance(first.result(WAIT_S), UnknownAtTwin)
    assert isinstance(second, NotDone)
    assert third == Done(0, 1)
