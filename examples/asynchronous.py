"""Writing and reading with asyncio: a hundred writes at a time, and records as they come.

Run beside a bus that is up: python examples/asynchronous.py twinlog.yaml USER TOPIC GROUP
"""

from __future__ import annotations

import asyncio
import sys
import time

from twinlog import AsyncConsumer, AsyncProducer, Consumer, Done, Producer

RECORDS = 100
TIMEOUT_S = 60.0


async def write(file: str, user: str, topic: str, run: bytes) -> int:
    """Write all records at the same time; returns how many are done."""
    async with AsyncProducer(Producer.of_bus(file, user)) as producer:
        writes = (producer.send(topic, b"event %d" % number, run) for number in range(RECORDS))
        outcomes = await asyncio.gather(*writes)
    return sum(isinstance(outcome, Done) for outcome in outcomes)


async def read(file: str, user: str, topic: str, group: str, run: bytes) -> int:
    """Read until all records of this run were seen; returns how many were."""
    seen: set[bytes | None] = set()
    async with AsyncConsumer(lambda: Consumer.of_bus(file, user, group, [topic])) as consumer:
        async for record in consumer:
            if record.key == run:
                seen.add(record.value)
            if len(seen) == RECORDS:
                await consumer.commit()
                break
    return len(seen)


async def main(file: str, user: str, topic: str, group: str) -> int:
    """Write and read side by side."""
    run = str(time.time_ns()).encode()  # the key of this run's records
    async with asyncio.timeout(TIMEOUT_S):
        written, seen = await asyncio.gather(
            write(file, user, topic, run), read(file, user, topic, group, run)
        )
    print(f"{written} events written, {seen} read")
    return 0 if written == seen == RECORDS else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:5])))
