"""Lanes of jobs on a real site, without Spark: whoever tries, each batch is written once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from tests.cluster import jobs
from tests.cluster.conftest import Bus, MakeBus
from twinlog.streams.lanes import Writing, write
from twinlog.streams.progress import Lane, end_left_open, last_batch, note
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.transactional import Transactional, TransactionFailed

pytestmark = pytest.mark.cluster

FILE = """\
bus: lanes
kafka: {offsets.topic.num.partitions: 3, transaction.state.log.num.partitions: 3}
sites:
  a: {brokers: 1}
topics: {lines: {}, dead: {}}
streams:
  loud:
    read: {lines: {topic: lines}}
    sql: SELECT value FROM lines
    write: {topic: dead}
"""


class Result(NamedTuple):
    """A row as a query gives it."""

    value: bytes
    key: bytes = b"lanes"
    headers: None = None
    lane: str = "lines-0"


@dataclass
class Lanes:
    """One lane, written without Spark."""

    bus: Bus
    access: Access

    def write(self, batch: int, *values: bytes) -> None:
        writing = Writing(self.access, Tuning(), "lanes", "run", "dead", batch)
        write(writing, [Result(value) for value in values])

    def other(self, lane: str) -> Transactional:
        """A producer in the middle of a transaction of this or another lane, with a note of it in the log."""
        named = Lane("lanes", "run", lane)
        producer = Transactional(self.access, name=named.transactional_id, timeout_s=60.0, tuning=Tuning())
        producer.prepare(60.0)
        producer.begin()
        producer.queue("dead", b"never", b"lanes", (), None, None, None)
        producer.queue(*note(named, 99), None)
        assert producer.flush(60.0) == 0
        return producer

    def values(self) -> list[str]:
        return [record["value"] for record in jobs.read(self.bus, "dead", "--key", "lanes")]


@pytest.fixture(scope="module")
def lanes(make_bus: MakeBus) -> Lanes:
    bus = make_bus(FILE)
    return Lanes(bus, bus.home().user_access("streams", "a"))


def test_batch_of_a_lane_is_written_once_whoever_else_tries(lanes: Lanes) -> None:
    lanes.write(0, b"0", b"1")
    lanes.write(0, b"0", b"1")
    assert lanes.values() == ["0", "1"]
    left_open = lanes.other("lines-0")
    lanes.write(1, b"2")
    with pytest.raises(TransactionFailed):
        left_open.commit(60.0)
    left_open.close()
    lanes.write(0, b"0", b"1")  # a driver that was thought dead
    assert lanes.values() == ["0", "1", "2"]


def test_note_of_a_lane_is_found_behind_a_transaction_that_hides_it(lanes: Lanes) -> None:
    hiding = lanes.other("lines-1")
    lane = Lane("lanes", "run", "lines-2")
    with ThreadPoolExecutor(1) as pool:
        producer = Transactional(lanes.access, name=lane.transactional_id, timeout_s=60.0, tuning=Tuning())
        producer.prepare(60.0)
        producer.begin()
        producer.queue(*note(lane, 7), None)
        producer.commit(60.0)
        producer.close()
        asked = pool.submit(last_batch, lanes.access, lane, 60.0)
        hiding.abort(60.0)
        assert asked.result() == 7
    hiding.close()


def test_what_a_dead_runner_left_open_is_ended(lanes: Lanes) -> None:
    left = lanes.other("lines-9")
    assert "streams-lanes-lines-9" in end_left_open(lanes.access)
    with pytest.raises(TransactionFailed):
        left.commit(60.0)
    left.close()
