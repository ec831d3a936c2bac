"""A queue: the members of one group share a topic, and each record goes to one of them.

Run beside a bus that is up: python examples/work_queue.py twinlog.yaml USER TOPIC GROUP
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter

from twinlog import Consumer, Outgoing, Producer

RECORDS = 60
TIMEOUT_S = 60.0


def main(file: str, user: str, topic: str, group: str) -> int:
    """Write records, let two workers of one group deal with them, and count."""
    run = str(time.time_ns()).encode()  # the key of this run's records
    done: Counter[bytes | None] = Counter()
    by_worker: Counter[str] = Counter()
    lock, deadline = threading.Lock(), time.monotonic() + TIMEOUT_S

    def work(name: str) -> None:
        with Consumer.of_bus(file, user, group, [topic]) as consumer:
            while len(done) < RECORDS and time.monotonic() < deadline:
                record = consumer.poll(0.2)
                if record is None:
                    continue
                with lock:  # here the work would be done
                    if record.key == run:
                        done[record.value] += 1
                        by_worker[name] += 1
                consumer.commit()  # after the work: a worker that dies before leaves it to the other

    workers = [threading.Thread(target=work, args=(name,)) for name in ("first", "second")]
    for worker in workers:
        worker.start()
    with Producer.of_bus(file, user) as producer:
        producer.send_many(
            Outgoing(topic, b"job %d" % number, run, partition=number % 3) for number in range(RECORDS)
        )
    for worker in workers:
        worker.join()
    for name, count in sorted(by_worker.items()):
        print(f"the {name} worker: {count} jobs")
    return 0 if len(done) == RECORDS else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
