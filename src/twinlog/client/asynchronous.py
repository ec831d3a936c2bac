"""The producer and the consumer for asyncio: thin forms around the others, which do the work.

Users import them as `from twinlog import AsyncProducer, AsyncConsumer`. Neither blocks the loop: what may
wait (the first record of a topic, a full queue, reading, committing) happens in a thread of its own.
Outcomes come to the loop in bundles, because waking it costs more than a record. Whoever is cancelled loses
nothing: what a thread does goes on, and records that it has read by then are handed out to the next who asks.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from twinlog.client.consumer import MOST_AT_ONCE, WAIT_S, Consumer
from twinlog.client.outcomes import Outcome
from twinlog.client.producer import Acks, Producer
from twinlog.client.sent import Sent
from twinlog.errors import KafkaError, UsageError
from twinlog.wire.driver import Headers, Outgoing
from twinlog.wire.received import Received

T = TypeVar("T")


class AsyncProducer:
    """A Producer whose writes are awaited. Belongs to one loop, and closes what it was made of."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._loop: asyncio.AbstractEventLoop | None = None  # that of its first write
        self._thread: ThreadPoolExecutor | None = ThreadPoolExecutor(
            1, thread_name_prefix="twinlog-async-producer"
        )
        # For each topic: a lock hands itself on in the order in which it was asked for.
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._ended: deque[tuple[asyncio.Future[Outcome], Sent]] = deque()
        self._is_called = False

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
        acks: Acks | None = None,
    ) -> Outcome:
        """Write a record and wait for its outcome; if that is cancelled it may be written all the same."""
        record = Outgoing(topic, value, key, headers, partition, timestamp_ms)
        return (await self.send_many([record], acks))[0]

    async def send_many(self, records: Iterable[Outgoing], acks: Acks | None = None) -> list[Outcome]:
        """Write records and wait for their outcomes, which come in the same order."""
        loop = self._own_loop()
        futures = [self._future(await self._sent(record, acks), loop) for record in records]
        return [await future for future in futures]

    async def flush(self, timeout_s: float | None = None) -> int:
        """Wait until every write has ended, or for so long; returns how many have not."""
        return await asyncio.to_thread(self._producer.flush, timeout_s)

    async def close(self) -> None:
        """Flush and end. Harmless if it is closed."""
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None
        await asyncio.to_thread(self._producer.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise UsageError(
                "this AsyncProducer belongs to another loop, which would be told of its writes",
                hint="make one for each asyncio.run",
            )
        return loop

    async def _sent(self, record: Outgoing, acks: Acks | None) -> Sent:
        """Send a record, in the other thread if that may take a while; none of its topic overtakes it."""
        async with self._turns[record.topic]:
            sent = self._producer.send_at_once(record) if acks is None else None
            if sent is not None:
                return sent
            # Without the thread it is closed; one of the loop's own hears that.
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._producer.send_record, record, acks
            )

    def _future(self, sent: Sent, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Outcome]:
        future: asyncio.Future[Outcome] = loop.create_future()

        def ended(one: Sent) -> None:
            self._ended.append((future, one))
            if not self._is_called:
                self._is_called = True
                loop.call_soon_threadsafe(self._tell)

        sent.add_done_callback(ended)
        return future

    def _tell(self) -> None:
        # First: what is added from now on makes a call of its own.
        self._is_called = False
        while self._ended:
            future, sent = self._ended.popleft()
            if not future.done():
                future.set_result(sent.result())


class AsyncConsumer:
    """A Consumer that is awaited; iterate over it. Belongs to one task, and closes what it opened.

    Another task may close it: what waits for a record then gets none.
    """

    def __init__(self, opened: Callable[[], Consumer]) -> None:
        self._opened = opened
        self._consumer: Consumer | None = None
        self._is_closed = False
        # One thread for all calls that may wait: a Consumer belongs to one.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="twinlog-async-consumer")
        self._last: asyncio.Future[Any] | None = None  # the last call; the thread is idle when it is done

    async def poll(self, timeout_s: float) -> Received | None:
        """The next record, or None if none could be handed out in time."""
        consumer = await self._filled(timeout_s)
        return None if consumer is None else consumer.poll(0.0)

    async def poll_many(self, timeout_s: float, most: int = MOST_AT_ONCE) -> list[Received]:
        """The next records, as many as are there; none if none could be handed out in time."""
        consumer = await self._filled(timeout_s)
        return [] if consumer is None else consumer.poll_many(0.0, most)

    async def __aiter__(self) -> AsyncIterator[Received]:
        while not self._is_closed:
            record = await self.poll(WAIT_S)
            if record is not None:
                yield record

    async def commit(self) -> None:
        """Let the group go on behind what was handed out."""
        await self.call(lambda consumer: consumer.commit())

    async def call(self, how: Callable[[Consumer], T]) -> T:
        """Do something with the consumer, in its thread: seek, pause, rewind."""
        if self._is_closed:
            raise KafkaError("the consumer is closed", code="STATE", hint="open a new one")
        return await self._in_thread(lambda: how(self._open()))

    async def close(self) -> None:
        """Leave the group without committing. Harmless if it is closed."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._in_thread(self._close)
        finally:
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _filled(self, timeout_s: float) -> Consumer | None:
        """The consumer when it has a record at hand; None if it has none in time, or is closed meanwhile.

        The thread reads and the loop hands out: what a cancelled call has read is not lost with it. And the
        thread waits for a short time at once, or whoever cancels or closes would wait for the rest of it.
        """
        if self._consumer is not None and self._is_idle and self._consumer.has_some:
            return self._consumer
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout_s
        while True:
            left_s = max(0.0, end - loop.time())
            has_some = await self._look(min(left_s, WAIT_S))
            if self._is_closed:
                return None
            if has_some or left_s <= WAIT_S:
                return self._consumer if has_some else None

    async def _look(self, wait_s: float) -> bool:
        return await self.call(lambda consumer: consumer.wait(wait_s))

    @property
    def _is_idle(self) -> bool:
        """True if the consumer is not in the hands of its thread."""
        return self._last is None or self._last.done()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        self._last = last = asyncio.get_running_loop().run_in_executor(self._thread, work)
        return await asyncio.shield(last)  # `_last` must not look done while the thread is at it

    def _open(self) -> Consumer:
        if self._consumer is None:
            self._consumer = self._opened()
        return self._consumer

    def _close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
