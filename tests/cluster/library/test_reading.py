"""How a consumer moves, shares and reads: offsets, times, members of a group, transactions."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.cluster.conftest import Bus
from tests.cluster.library.conftest import PARTITIONS, USER, WAIT_S, MakeTopic, take
from twinlog import (
    Consumer,
    Done,
    Outgoing,
    Producer,
    Received,
    Relay,
    Retries,
    TransactionalProducer,
    Worker,
)
from twinlog.client.balance import BALANCES, Balance

pytestmark = pytest.mark.cluster

START_MS = 1_700_000_000_000


def write(producer: Producer, topic: str, count: int) -> None:
    """Records with their numbers, dealt out to the partitions, one second apart."""
    outcomes = producer.send_many(
        Outgoing(topic, b"%d" % n, partition=n % PARTITIONS, timestamp_ms=START_MS + 1000 * n)
        for n in range(count)
    )
    assert all(isinstance(outcome, Done) for outcome in outcomes)


def numbers(records: list[Received]) -> list[int]:
    return sorted(int(record.value or b"-1") for record in records)


@pytest.mark.parametrize("balance", BALANCES)
def test_a_consumer_goes_on_where_it_was_moved_to(
    balance: Balance, work: Bus, topic: str, producer: Producer
) -> None:
    write(producer, topic, 30)
    with Consumer.of_bus(work.file, USER, f"movers-{balance}", [topic], balance=balance) as consumer:
        assert len(consumer.assigned()) == PARTITIONS
        consumer.seek_to_time(START_MS + 21_000)
        assert numbers(take(consumer, 9)) == list(range(21, 30))
        consumer.seek_to_time(START_MS + 10**9)
        assert consumer.poll(1.0) is None
        consumer.seek({(topic, 1): 8})
        assert numbers(take(consumer, 2)) == [25, 28]
        consumer.commit()
        take_two = [(topic, 1)]
        consumer.pause({(topic, 1): 0})
        assert consumer.poll(1.0) is None
        consumer.resume(take_two)
        assert numbers(take(consumer, 10)) == list(range(1, 30, 3))


def test_what_was_not_committed_is_handed_out_again_after_a_rewind(
    work: Bus, topic: str, producer: Producer
) -> None:
    write(producer, topic, 30)
    with Consumer.of_bus(work.file, USER, "rewinders", [topic]) as consumer:
        first = take(consumer, 10)
        consumer.commit()
        second = take(consumer, 10)
        consumer.rewind()
        assert numbers([*first, *take(consumer, 20)]) == list(range(30))
        assert set(second).isdisjoint(first)
        assert consumer.poll(0.5) is None


@pytest.mark.parametrize("balance", BALANCES)
def test_members_of_a_group_share_a_topic_and_one_that_leaves_is_replaced(
    balance: Balance, work: Bus, topic: str, producer: Producer
) -> None:
    seen: Counter[bytes | None] = Counter()
    stop, lock = threading.Event(), threading.Lock()

    def member(assignments: list[int], until: threading.Event) -> None:
        group = f"members-{balance}"
        with Consumer.of_bus(work.file, USER, group, [topic], balance=balance) as consumer:
            while not until.is_set():
                records = consumer.poll_many(0.1)
                with lock:
                    seen.update(record.value for record in records)
                consumer.commit()
                assignments.append(len(consumer.assigned(0.0)))

    first: list[int] = []
    second: list[int] = []
    leave = threading.Event()
    threads = [
        threading.Thread(target=member, args=(first, stop)),
        threading.Thread(target=member, args=(second, leave)),
    ]
    threads[0].start()
    wait_for("the first has all partitions", lambda: PARTITIONS in first)
    threads[1].start()
    wait_for("the second has some", lambda: bool(second) and second[-1] > 0)
    while_shared = first[first.index(PARTITIONS) :]
    write(producer, topic, 300)
    wait_for("all was read", lambda: len(seen) == 300)
    leave.set()
    threads[1].join()
    wait_for("the first has all again", lambda: first[-1] == PARTITIONS)
    stop.set()
    threads[0].join()
    assert set(seen.values()) == {1}
    if balance != "eager":
        assert min(while_shared) >= 1  # it never let go of everything


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {WAIT_S:g} s"
        pause.wait(0.02)


def test_an_aborted_transaction_is_seen_by_those_only_who_want_to(
    work: Bus, topic: str, producer: Producer
) -> None:
    with TransactionalProducer.of_bus(work.file, USER, "aborting") as writer:
        with pytest.raises(ValueError, match="on purpose"), writer.transaction() as transaction:
            for number in range(3):
                transaction.send(Outgoing(topic, b"aborted %d" % number, partition=0))
            writer._producer.flush(WAIT_S)
            raise ValueError("on purpose")
        with writer.transaction() as transaction:
            transaction.send(Outgoing(topic, b"committed", partition=0))
    with Consumer.of_bus(work.file, USER, "committed", [topic]) as consumer:
        assert [record.value for record in take(consumer, 1)] == [b"committed"]
    with Consumer.of_bus(work.file, USER, "uncommitted", [topic], uncommitted=True) as consumer:
        assert [record.value for record in take(consumer, 4)][-1] == b"committed"


def test_a_turn_whose_work_fails_leaves_nothing_behind_and_is_done_again(
    work: Bus, topic: str, producer: Producer, make_topic: MakeTopic
) -> None:
    target = make_topic("doubled")
    write(producer, topic, 30)
    failures = [17, 23]

    def double(record: Received) -> Iterator[Outgoing]:
        number = int(record.value or b"")
        if number in failures:
            failures.remove(number)
            raise ValueError(f"{number} on purpose")
        yield Outgoing(target, b"%d" % (2 * number))

    def opened() -> TransactionalProducer:
        return TransactionalProducer.of_bus(work.file, USER, "doubling")

    with Consumer.of_bus(work.file, USER, "doubling", [topic]) as consumer:
        relay = Relay(consumer, opened, double)
        done, end = 0, time.monotonic() + WAIT_S
        while done < 30:
            assert time.monotonic() < end, f"{done} of 30"
            try:
                done += relay.run_once(1.0)
            except ValueError as error:
                assert "on purpose" in str(error)
        relay.close()
    assert not failures
    with Consumer.of_bus(work.file, USER, "doubled", [target]) as reader:
        assert numbers(take(reader, 30)) == list(range(0, 60, 2))
        assert reader.poll(0.5) is None


def test_a_dead_worker_s_record_is_not_committed_before_its_retry_is_written(
    work: Bus, topic: str, producer: Producer
) -> None:
    # There is no retry topic: the worker ends with an error and leaves the record to the next one.
    write(producer, topic, 1)

    def fails(_: Received) -> None:
        raise ValueError("on purpose")

    with Consumer.of_bus(work.file, USER, "strict", [topic]) as consumer:
        worker = Worker(consumer, producer, fails, Retries(topic))
        with pytest.raises(Exception, match="may not have been written"):
            for _ in range(30):
                worker.run_once(2.0)
    with Consumer.of_bus(work.file, USER, "strict", [topic]) as heir:
        assert numbers(take(heir, 1)) == [0]
