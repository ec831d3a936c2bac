"""When a channel is called errored, what is done about it, and who is woken."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import cast

import pytest

from twinlog.errors import KafkaError, SiteError, TwinlogError
from twinlog.ordering.localconfig import ConsumerRetry, NetworkTimeouts, Retry
from twinlog.ordering.support import Unavailable
from twinlog.ordering.watch import Watch
from twinlog.wire.tail import Tail

_GRACE_S, _AGAIN_S, _NEXT = 10.0, 2.0, 17


@dataclass
class Reader:
    """A tail whose troubles the test makes."""

    troubles: list[KafkaError] = field(default_factory=list)
    is_reached: bool = True
    started: list[int] = field(default_factory=list)

    def trouble(self) -> KafkaError | None:
        return self.troubles.pop() if self.troubles else None

    def reach(self, timeout_s: float) -> range:
        if not self.is_reached:
            raise KafkaError("no leader")
        return range(_NEXT)

    def start(self, offset: int) -> None:
        self.started.append(offset)


class Log:
    """A channel's log in a world without time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.wakes = 0
        self.reader = Reader()
        self.connects: list[Future[int]] = []
        self.refusal = ""
        retry = Retry(network_timeouts=NetworkTimeouts(1.0, _GRACE_S, 1.0), consumer=ConsumerRetry(_AGAIN_S))
        self.watch = Watch("trades", retry, self._wake, lambda: self.now_s)
        self.watch.begun()

    def _wake(self) -> None:
        self.wakes += 1

    def _connect(self) -> Future[int]:
        if self.refusal:
            raise Unavailable(self.refusal)
        self.connects.append(Future())
        return self.connects[-1]

    def look(self, after_s: float = 0.0, standby: TwinlogError | None = None) -> None:
        self.now_s += after_s
        self.watch.look(cast(Tail, self.reader), _NEXT, standby, self._connect)


@pytest.fixture
def log() -> Log:
    return Log()


def test_error_that_passes_is_no_outage(log: Log) -> None:
    log.reader.troubles.append(KafkaError("a line broke"))
    log.look()
    assert log.watch.trouble == "a line broke"
    log.look(after_s=_GRACE_S)  # the leader answers
    assert not log.watch.errored.is_set()
    log.watch.heard()
    assert log.watch.trouble == ""


def test_leader_does_not_answer_at_the_end_of_the_grace_wakes_readers_and_connects_once_at_a_time(
    log: Log,
) -> None:
    log.reader.troubles.append(KafkaError("a line broke"))
    log.reader.is_reached = False
    log.look()
    assert not log.watch.errored.is_set()
    log.look(after_s=_GRACE_S)
    assert log.watch.errored.is_set() and log.wakes == 1
    log.look()
    log.look(after_s=_AGAIN_S)
    assert (len(log.connects), log.reader.started) == (1, [_NEXT])
    log.connects[0].set_exception(Unavailable("cannot enqueue"))
    log.look()
    assert len(log.connects) == 2
    log.watch.heard()
    assert not log.watch.errored.is_set()


def test_offset_out_of_range_is_an_outage_at_once(log: Log) -> None:
    log.reader.troubles.append(KafkaError("the log was cut", code="OFFSET_OUT_OF_RANGE"))
    log.look()
    assert log.watch.errored.is_set()


def test_connect_cannot_be_posted_is_tried_again(log: Log) -> None:
    log.refusal = "the channel is not open"
    log.watch.stuck("nothing is taken")
    log.look()
    assert log.watch.trouble == "the channel is not open"
    log.refusal = ""
    log.look(after_s=_AGAIN_S)
    assert len(log.connects) == 1


def test_standby_does_not_say_what_it_has_is_told_and_no_outage(log: Log) -> None:
    log.look(standby=SiteError("it is away"))
    assert log.watch.trouble == "waiting for the standby: it is away"
    assert not log.watch.errored.is_set()


def test_channel_has_ended_stays_errored_with_the_first_reason(log: Log) -> None:
    log.watch.ended("a record that makes no sense")
    log.watch.ended("the channel has ended")
    assert (log.watch.trouble, log.watch.errored.is_set()) == ("a record that makes no sense", True)
    assert log.wakes == 2
