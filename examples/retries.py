"""What fails is tried again later, then put aside as a dead letter, and can be sent back when it is mended.

The topics TOPIC.retry and TOPIC.dead must be there.
Run beside a bus that is up: python examples/retries.py twinlog.yaml USER TOPIC GROUP
"""

from __future__ import annotations

import sys
import time
from collections import Counter

from twinlog import Consumer, Outgoing, Producer, Received, Retries, Worker, redrive

TIMEOUT_S = 60.0


def main(file: str, user: str, topic: str, group: str) -> int:
    """Work on ten orders of which one fails twice and one until it is mended."""
    run = str(time.time_ns()).encode()  # the key of this run's orders
    attempts: Counter[bytes | None] = Counter()
    done: list[bytes | None] = []
    mended = False

    def work(order: Received) -> None:
        if order.key != run:
            return
        attempts[order.value] += 1
        if order.value == b"order 3" and attempts[order.value] < 3:
            raise ValueError("the stock is being counted")
        if order.value == b"order 7" and not mended:
            raise ValueError("no such article")
        done.append(order.value)

    retries = Retries(topic, delays_s=(0.1, 0.5))
    deadline = time.monotonic() + TIMEOUT_S
    with Producer.of_bus(file, user) as producer:
        producer.send_many(Outgoing(topic, b"order %d" % number, run) for number in range(10))
        with Consumer.of_bus(file, user, group, [topic, retries.retry_topic]) as consumer:
            worker = Worker(consumer, producer, work, retries)

            def work_until(orders_done: int, tries: int) -> None:
                while (
                    len(done) < orders_done or attempts[b"order 7"] < tries
                ) and time.monotonic() < deadline:
                    worker.run_once(1.0)

            work_until(9, tries=3)
            print(f"{len(done)} orders are done, order 3 after {attempts[b'order 3']} attempts")
            with Consumer.of_bus(file, user, f"{group}-redrive", [retries.dead_topic]) as dead:
                print(f"{redrive(dead, producer, idle_s=3.0)} dead letters are sent back")
            mended = True
            work_until(10, tries=4)
    print(f"{len(done)} orders are done")
    return 0 if sorted(done, key=str) == [b"order %d" % number for number in range(10)] else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
