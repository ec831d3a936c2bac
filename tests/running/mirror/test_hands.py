"""Readers and writers whose broker does not answer, or that are told to end: nobody waits for them."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.unit.mirror.test_intake import begun
from twinlog.mirror.hand import Hand
from twinlog.mirror.pace import Pace
from twinlog.mirror.reader import Reader
from twinlog.mirror.track import Track
from twinlog.mirror.twin import Twin
from twinlog.mirror.writer import Drop, Writer
from twinlog.wire.access import Access, Protocol
from twinlog.wire.addresses import HostPort
from twinlog.wire.cluster import BrokerAddress
from twinlog.wire.connection import Connection

WAIT_S = 10.0

Told = list[tuple[int, str, bool]]


@pytest.fixture
def nobody() -> Iterator[BrokerAddress]:
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield BrokerAddress(7, HostPort("127.0.0.1", taken.getsockname()[1]))


def access(broker: BrokerAddress) -> Access:
    return Access((str(broker.address),), Protocol.PLAINTEXT)


def hearing(told: Told, track: Track, _: Twin, why: str, stop: bool) -> None:
    told.append((track.partition, why, stop))


def test_reader_without_a_broker_tells_of_every_partition_and_takes_no_more(nobody: BrokerAddress) -> None:
    told: Told = []
    reader = Reader(
        nobody,
        access(nobody),
        {},
        Pace(None),
        keep_identity=True,
        offered=lambda track, twin: None,
        surprised=lambda *what: hearing(told, *what),
    )
    for number in range(2):
        reader.read(*begun(number))
    reader.start()
    reader.join(WAIT_S)
    assert not reader.is_alive()
    assert reader.has_ended
    assert [(partition, stop) for partition, _, stop in told] == [(0, False), (1, False)]
    assert all(why.startswith("reading from the active: ") for _, why, _ in told)


def test_writer_without_a_broker_tells_of_every_partition_once(nobody: BrokerAddress) -> None:
    told: Told = []
    writer = Writer(
        nobody,
        access(nobody),
        {},
        may_write=lambda: True,
        surprised=lambda *what: hearing(told, *what),
        deposed=lambda why: None,
    )
    (track, twin), dropped = begun(0), begun(1)
    writer.wake(track, twin)
    writer.wake(track, twin)
    writer.wake(*dropped)
    writer.drop(Drop(*dropped, "it cannot be read", True))
    writer.start()
    writer.join(WAIT_S)
    assert not writer.is_alive()
    assert sorted(told)[0][0] == 0
    assert (1, "it cannot be read", True) in told
    assert len(told) == 2


class Listening(Hand[str]):
    """Hears and does nothing."""

    def heard(self, wait_s: float = 0.0) -> list[str]:
        return list(self._messages(wait_s))

    def tell(self, message: str) -> None:
        self._inbox.put(message)

    def _work(self, connection: Connection) -> None:
        raise AssertionError("nobody listens there")

    def _give_up(self, why: str) -> None:
        self.tell(why)


def test_messages_come_all_together_and_in_order(nobody: BrokerAddress) -> None:
    hand = Listening("listener", nobody, access(nobody))
    assert hand.heard() == []
    for message in ("one", "two"):
        hand.tell(message)
    assert hand.heard(WAIT_S) == ["one", "two"]
    assert hand.heard(0.01) == []


def test_end_wakes_a_hand_that_waits_for_messages(nobody: BrokerAddress) -> None:
    hand = Listening("listener", nobody, access(nobody))
    hand.tell("one")
    hand.end()
    assert hand.has_ended
    assert hand.heard(WAIT_S) == ["one"]
    hand.end()
    assert hand.heard(WAIT_S) == []  # at once: the end itself is what was waited for


def test_hand_without_a_broker_says_why_it_gives_up(nobody: BrokerAddress) -> None:
    hand = Listening("listener", nobody, access(nobody))
    hand.run()
    (why,) = hand.heard()
    assert str(nobody.address) in why
