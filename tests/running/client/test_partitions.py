"""Where a Producer puts records, on the broker that librdkafka brings along for tests."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from twinlog import Done, NotDone, Outgoing, Producer, TransactionalProducer
from twinlog.client.partitioning import partition_of
from twinlog.client.producer import Keyless
from twinlog.client.ways import Ways
from twinlog.wire.access import Access, Protocol
from twinlog.wire.driver import Settings

WAIT_S = 60.0
PARTITIONS = 4  # of every topic of that broker


def on_own_broker(keyless: Keyless = "sticky", settings: Settings | None = None) -> Producer:
    used = {"test.mock.num.brokers": 1, "log_level": 0, **(settings or {})}
    access = Access(("localhost:1",), Protocol.PLAINTEXT)
    return Producer(access, keyless=keyless, timeout_s=WAIT_S, ways=Ways(settings=used))


def partitions_of(producer: Producer, records: list[Outgoing]) -> list[int]:
    outcomes = producer.send_many(records)
    return [one.partition for one in outcomes if isinstance(one, Done)]


def test_a_producer_puts_keys_where_the_rule_says() -> None:
    dice = random.Random(5)
    keys = [b"", *(dice.randbytes(dice.randrange(1, 30)) for _ in range(2000))]
    with on_own_broker() as producer:
        found = partitions_of(producer, [Outgoing("orders", b"v", key) for key in keys])
    assert found == [partition_of(key, PARTITIONS) for key in keys]


def test_records_without_a_key_go_around_when_they_are_dealt_out_in_turns() -> None:
    with on_own_broker("turns") as producer:
        found = partitions_of(producer, [Outgoing("orders", b"v")] * 10)
    assert found == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]


def test_in_turns_a_key_and_a_partition_that_was_named_still_count() -> None:
    records = [
        Outgoing("orders", b"v", b"abc"),
        Outgoing("orders", b"v", partition=3),
        Outgoing("orders", b"v"),
    ]
    with on_own_broker("turns") as producer:
        assert partitions_of(producer, records) == [partition_of(b"abc", PARTITIONS), 3, 0]


def test_a_batch_has_its_outcomes_in_order_with_one_failure_among_them() -> None:
    records = [Outgoing("orders", b"%d" % number, partition=0) for number in range(600)]
    records[300] = Outgoing("orders", b"x", partition=99)
    with on_own_broker() as producer:
        outcomes = producer.send_many(records)
    assert not isinstance(outcomes[300], Done)
    offsets = [one.offset for one in outcomes if isinstance(one, Done)]
    assert offsets == sorted(offsets) and len(offsets) == 599


def test_records_with_headers_and_times_of_their_own_have_outcomes_too() -> None:
    records = [
        Outgoing("orders", b"v", headers=[("a", b"1"), ("b", None)], partition=1),
        Outgoing("orders", b"v", timestamp_ms=1_700_000_000_000, partition=1),
        Outgoing("orders", None, b"key", partition=1),
    ]
    with on_own_broker() as producer:
        together = producer.send_many(records)
        alone = [producer.send_record(record).result(WAIT_S) for record in records]
    assert [*together, *alone] == [Done(1, offset) for offset in range(6)]


def test_more_records_than_the_driver_takes_wait_for_room() -> None:
    records = [Outgoing("orders", b"%d" % number, partition=0) for number in range(500)]
    with on_own_broker(settings={"queue.buffering.max.messages": 10}) as producer:
        together = producer.send_many(records)
        alone = [producer.send_record(record) for record in records]
        assert producer.flush(WAIT_S) == 0
    assert together == [Done(0, offset) for offset in range(500)]
    assert [one.result(0) for one in alone] == [Done(0, offset) for offset in range(500, 1000)]


def test_several_threads_that_send_together_each_have_their_own_outcomes() -> None:
    with on_own_broker() as producer, ThreadPoolExecutor(4) as threads:
        batches = [[Outgoing("orders", b"v", partition=number)] * 300 for number in range(4)]
        found = list(threads.map(producer.send_many, batches))
    assert found == [[Done(number, offset) for offset in range(300)] for number in range(4)]


def test_threads_that_wait_for_each_of_their_writes_all_hear_of_them() -> None:
    with on_own_broker() as producer, ThreadPoolExecutor(16) as threads:

        def write(number: int) -> int:
            outcomes = [producer.send("orders", b"v", partition=number % 4).result(WAIT_S) for _ in range(20)]
            return sum(isinstance(outcome, Done) for outcome in outcomes)

        assert list(threads.map(write, range(16))) == [20] * 16


def test_a_batch_for_a_closed_producer_is_not_done() -> None:
    producer = on_own_broker()
    producer.send_many([Outgoing("orders", b"v")])
    producer.close()
    assert [type(one) for one in producer.send_many([Outgoing("orders", b"v")] * 2)] == [NotDone, NotDone]


def test_what_is_no_record_raises_as_the_driver_does() -> None:
    with on_own_broker() as producer:
        producer.send("orders", b"v")
        with pytest.raises(TypeError):
            producer.send("orders", 5)  # type: ignore[arg-type]


def test_records_of_a_transaction_are_written_when_it_is_committed() -> None:
    settings = {"test.mock.num.brokers": 1, "log_level": 0}
    access = Access(("localhost:1",), Protocol.PLAINTEXT)
    producer = TransactionalProducer(access, "relay", timeout_s=WAIT_S, ways=Ways(settings=settings))
    with producer:
        for _ in range(2):
            with producer.transaction() as transaction:
                transaction.send(Outgoing("orders", b"1", partition=0))
                transaction.send(Outgoing("orders", b"2", b"key", [("a", b"1")]))
        with pytest.raises(ValueError, match="no"), producer.transaction() as transaction:
            transaction.send(Outgoing("orders", b"3"))
            raise ValueError("no")
