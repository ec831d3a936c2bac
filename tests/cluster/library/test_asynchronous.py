"""The client for asyncio on a real site: order, full queues, cancelling and closing while something waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from tests.cluster.conftest import Bus
from tests.cluster.library.conftest import USER, WAIT_S, MakeTopic, take
from twinlog import (
    AsyncConsumer,
    AsyncProducer,
    Consumer,
    Done,
    NotDone,
    Outcome,
    Outgoing,
    Producer,
    Received,
)
from twinlog.errors import KafkaError, UsageError

pytestmark = pytest.mark.cluster

T = TypeVar("T")
LONG_S = 10 * WAIT_S  # of a poll that something else must end
LINGER = {"linger.ms": 60_000}  # records stay in the queue until somebody flushes
MOMENT_S = 0.001


def run(work: Coroutine[Any, Any, T]) -> T:
    """In a loop of its own, within the time of a busy machine."""

    async def limited() -> T:
        async with asyncio.timeout(WAIT_S):
            return await work

    return asyncio.run(limited())


def reading(work: Bus, topic: str, group: str) -> AsyncConsumer:
    return AsyncConsumer(lambda: Consumer.of_bus(work.file, USER, group, [topic]))


async def hasty(work: Coroutine[Any, Any, T]) -> T | None:
    """What comes of it in a moment; then it is cancelled."""
    try:
        return await asyncio.wait_for(work, MOMENT_S)
    except TimeoutError:
        return None


def write(producer: Producer, topic: str, count: int) -> list[bytes]:
    values = [b"%d" % number for number in range(count)]
    outcomes = producer.send_many([Outgoing(topic, value, partition=0) for value in values])
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    return values


def offsets(outcomes: list[Outcome]) -> list[int]:
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    return [outcome.offset for outcome in outcomes if isinstance(outcome, Done)]


# Writing


def test_what_was_awaited_is_read_where_its_outcome_says(work: Bus, topic: str) -> None:
    headers = (("kind", b"late"),)

    async def both() -> tuple[Outcome, Received | None]:
        async with AsyncProducer(Producer.of_bus(work.file, USER, timeout_s=WAIT_S)) as producer:
            outcome = await producer.send(topic, b"v", b"k", headers, partition=2)
        async with reading(work, topic, "awaiting") as consumer:
            return outcome, await consumer.poll(WAIT_S)

    outcome, record = run(both())
    assert outcome == Done(2, 0)
    assert record is not None and record[:6] == (topic, 2, 0, b"k", b"v", headers)


def test_sends_at_the_same_time_keep_their_order_from_the_first_record_of_a_topic_on(
    work: Bus, topic: str
) -> None:
    async def write_all() -> list[Outcome]:
        async with AsyncProducer(Producer.of_bus(work.file, USER, timeout_s=WAIT_S)) as producer:
            sends = (producer.send(topic, b"%d" % number, partition=0) for number in range(5000))
            return await asyncio.gather(*sends)

    assert offsets(run(write_all())) == list(range(5000))


def test_a_full_queue_holds_senders_back_and_loses_nothing(work: Bus, topic: str) -> None:
    small = {"queue.buffering.max.messages": 50}

    async def write_all() -> list[Outcome]:
        producer = AsyncProducer(Producer.of_bus(work.file, USER, timeout_s=WAIT_S, settings=small))
        async with producer:
            sends = (producer.send(topic, b"%d" % number, partition=0) for number in range(3000))
            return await asyncio.gather(*sends)

    assert offsets(run(write_all())) == list(range(3000))
    with Consumer.of_bus(work.file, USER, "held-back", [topic]) as consumer:
        assert [record.value for record in take(consumer, 3000)] == [b"%d" % n for n in range(3000)]


def test_a_full_queue_does_not_block_the_loop(work: Bus, topic: str) -> None:
    inner = Producer.of_bus(
        work.file, USER, timeout_s=WAIT_S, settings={**LINGER, "queue.buffering.max.messages": 10}
    )

    async def fill_and_look() -> Outcome:
        async with AsyncProducer(inner) as producer:
            queued = [inner.send(topic, b"%d" % number) for number in range(10)]
            late = asyncio.create_task(producer.send(topic, b"late"))
            await asyncio.sleep(0)
            assert not any(sent.done() for sent in queued)  # the loop did not wait for room
            while not late.done():
                await producer.flush()
            return await late

    assert isinstance(run(fill_and_look()), Done)


def test_a_cancelled_send_leaves_the_producer_usable(work: Bus, topic: str) -> None:
    async def cancel_some() -> list[Outcome]:
        inner = Producer.of_bus(work.file, USER, timeout_s=WAIT_S, settings=LINGER)
        async with AsyncProducer(inner) as producer:
            # The first waits in the other thread until the site was asked for the topic, the others for it.
            tasks = [asyncio.create_task(producer.send(topic, b"cancelled")) for _ in range(20)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ends)
            later = [asyncio.create_task(producer.send(topic, b"later")) for _ in range(20)]
            while not all(task.done() for task in later):
                await producer.flush()
            return await asyncio.gather(*later)

    assert len(offsets(run(cancel_some()))) == 20


def test_a_twin_write_without_a_standby_is_refused_and_others_are_not(work: Bus, topic: str) -> None:
    async def write_both() -> list[Outcome]:
        async with AsyncProducer(Producer.of_bus(work.file, USER, timeout_s=WAIT_S)) as producer:
            return [await producer.send(topic, b"1", acks="twin"), await producer.send(topic, b"2")]

    refused, taken = run(write_both())
    assert isinstance(refused, NotDone) and refused.hint
    assert isinstance(taken, Done)


def test_a_send_after_the_end_is_refused(work: Bus, topic: str, make_topic: MakeTopic) -> None:
    unknown = make_topic(f"{topic}.unknown")

    async def send_late() -> list[Outcome]:
        async with AsyncProducer(Producer.of_bus(work.file, USER, timeout_s=WAIT_S)) as producer:
            assert isinstance(await producer.send(topic, b"1"), Done)
        await producer.close()
        return [await producer.send(name, b"late") for name in (topic, unknown)]

    for outcome in run(send_late()):
        assert isinstance(outcome, NotDone) and "closed" in outcome.reason


def test_a_producer_of_another_loop_is_refused(work: Bus, topic: str) -> None:
    producer = AsyncProducer(Producer.of_bus(work.file, USER, timeout_s=WAIT_S))
    assert isinstance(run(producer.send(topic, b"1")), Done)
    with pytest.raises(UsageError, match="another loop"):
        run(producer.send(topic, b"2"))
    run(producer.close())


# Reading


def test_an_iteration_goes_on_where_the_one_before_has_committed(
    work: Bus, topic: str, producer: Producer
) -> None:
    values = write(producer, topic, 30)

    async def read(count: int) -> list[bytes | None]:
        got: list[bytes | None] = []
        async with reading(work, topic, "iterating") as consumer:
            async for record in consumer:
                got.append(record.value)
                if len(got) == count:
                    await consumer.commit()
                    break
        return got

    assert run(read(10)) + run(read(20)) == values


def test_many_are_polled_and_moved_back(work: Bus, topic: str, producer: Producer) -> None:
    values = write(producer, topic, 1000)

    async def read() -> list[bytes | None]:
        got: list[Received] = []
        async with reading(work, topic, "many") as consumer:
            while len(got) < 1000:
                some = await consumer.poll_many(1.0, most=300)
                assert len(some) <= 300
                got += some
            await consumer.call(lambda it: it.seek({(topic, 0): 999}))
            while len(got) < 1001:
                got += await consumer.poll_many(1.0)
            assert await consumer.poll_many(0.0) == []
        return [record.value for record in got]

    assert run(read()) == [*values, values[-1]]


def test_polls_that_are_cancelled_lose_no_record(work: Bus, topic: str, producer: Producer) -> None:
    async def read() -> tuple[list[bytes | None], list[bytes]]:
        got: list[bytes | None] = []
        async with reading(work, topic, "cancelling") as consumer:
            await consumer.call(lambda it: it.assigned())
            assert await hasty(consumer.poll(LONG_S)) is None
            assert await hasty(consumer.poll_many(LONG_S)) is None
            values = await asyncio.to_thread(write, producer, topic, 2000)
            while len(got) < len(values):
                one = await hasty(consumer.poll(LONG_S))
                some = await hasty(consumer.poll_many(LONG_S, most=7))
                got += [record.value for record in (one, *(some or ())) if record is not None]
            await consumer.commit()
        return got, values

    got, values = run(read())
    assert got == values


@pytest.mark.parametrize("is_open", [True, False])
def test_a_poll_that_waits_ends_when_the_consumer_is_closed(is_open: bool, work: Bus, topic: str) -> None:
    opened: list[Consumer] = []

    def open_one() -> Consumer:
        opened.append(Consumer.of_bus(work.file, USER, "closing", [topic]))
        return opened[-1]

    async def close_meanwhile() -> None:
        consumer = AsyncConsumer(open_one)
        if is_open:
            await consumer.call(lambda it: it.assigned())
        poll = asyncio.create_task(consumer.poll(LONG_S))
        await asyncio.sleep(0)
        await consumer.close()
        assert await poll is None
        assert [record async for record in consumer] == []
        await consumer.close()
        with pytest.raises(KafkaError, match="closed"):
            await consumer.poll(0.0)

    run(close_meanwhile())
    (inner,) = opened
    assert list(inner) == []  # it was closed too
