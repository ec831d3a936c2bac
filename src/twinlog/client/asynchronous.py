"""The producer and the consumer for asyncio: thin forms around the others, which do the work.

Users import them as `from twinlog import AsyncProducer, AsyncConsumer`. Neither blocks the loop: what may
wait (the first record of a topic, a full queue, reading, committing) happens in a thread of its own.
Outcomes come to the loop in bundles, because waking it costs more than a record.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from twinlog.client.consumer import MOST_AT_ONCE, WAIT_S, Consumer
from twinlog.client.outcomes import Outcome
from twinlog.client.producer import Acks, Producer
from twinlog.client.sent import Sent
from twinlog.wire.driver import Headers, Outgoing
from twinlog.wire.received import Received

T = TypeVar("T")


class AsyncProducer:
    """A Producer whose writes are awaited. Belongs to one loop, and closes what it was made of."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="twinlog-async-producer")
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
        """Write a record and wait for its outcome."""
        record = Outgoing(topic, value, key, headers, partition, timestamp_ms)
        return (await self.send_many([record], acks))[0]

    async def send_many(self, records: Iterable[Outgoing], acks: Acks | None = None) -> list[Outcome]:
        """Write records and wait for their outcomes, which come in the same order."""
        loop = asyncio.get_running_loop()
        futures = [self._future(await self._sent(record, acks), loop) for record in records]
        return [await future for future in futures]

    async def flush(self, timeout_s: float | None = None) -> int:
        """Wait until every write has ended, or for so long; returns how many have not."""
        return await asyncio.to_thread(self._producer.flush, timeout_s)

    async def close(self) -> None:
        """Flush and end."""
        await asyncio.to_thread(self._producer.close)
        self._thread.shutdown()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _sent(self, record: Outgoing, acks: Acks | None) -> Sent:
        """Send a record, in the other thread if that may take a while."""
        if acks is None and self._producer.takes_at_once(record.topic):
            return self._producer.send_record(record)
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
    """A Consumer that is awaited; iterate over it. Belongs to one task, and closes what it opened."""

    def __init__(self, opened: Callable[[], Consumer]) -> None:
        self._opened = opened
        self._consumer: Consumer | None = None
        # One thread for all calls that may wait: a Consumer belongs to one.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="twinlog-async-consumer")

    async def poll(self, timeout_s: float) -> Received | None:
        """The next record, or None if none could be handed out in time."""
        if self._consumer is not None and self._consumer.has_some:
            return self._consumer.poll(0.0)
        return await self.call(lambda consumer: consumer.poll(timeout_s))

    async def poll_many(self, timeout_s: float, most: int = MOST_AT_ONCE) -> list[Received]:
        """The next records, as many as are there; none if none could be handed out in time."""
        return await self.call(lambda consumer: consumer.poll_many(timeout_s, most))

    async def __aiter__(self) -> AsyncIterator[Received]:
        while True:
            record = await self.poll(WAIT_S)
            if record is not None:
                yield record

    async def commit(self) -> None:
        """Let the group go on behind what was handed out."""
        await self.call(lambda consumer: consumer.commit())

    async def call(self, how: Callable[[Consumer], T]) -> T:
        """Do something with the consumer, in its thread: seek, pause, rewind."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: how(self._open()))

    async def close(self) -> None:
        """Leave the group without committing."""
        if self._consumer is not None:
            await self.call(lambda consumer: consumer.close())
        self._thread.shutdown()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _open(self) -> Consumer:
        if self._consumer is None:
            self._consumer = self._opened()
        return self._consumer
