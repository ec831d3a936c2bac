"""Where a Producer puts records, on the broker that librdkafka brings along for tests."""

from __future__ import annotations

import random

from twinlog import Done, Outgoing, Producer
from twinlog.client.partitioning import partition_of
from twinlog.client.producer import Keyless
from twinlog.client.ways import Ways
from twinlog.wire.access import Access, Protocol

PARTITIONS = 4  # of every topic of that broker


def on_own_broker(keyless: Keyless = "sticky") -> Producer:
    settings = {"test.mock.num.brokers": 1, "log_level": 0}
    access = Access(("localhost:1",), Protocol.PLAINTEXT)
    return Producer(access, keyless=keyless, ways=Ways(settings=settings))


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
