"""A queue: the members of one group share a topic, and each record goes to one of them.

Two workers wait until both have partitions of the topic, which has three; then jobs are written. It ends
well if each job was done once, and both have done some.
Run beside a bus that is up: python examples/work_queue.py twinlog.yaml USER TOPIC GROUP
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter

from twinlog import Consumer, Outgoing, Producer

RECORDS = 60
PARTITIONS = 3
WORKERS = ("first", "second")
TIMEOUT_S = 60.0


def main(file: str, user: str, topic: str, group: str) -> int:
    """Let two workers of one group deal with what is written, and count who did what."""
    run = str(time.time_ns()).encode()  # the key of this run's records
    jobs = [b"job %d" % number for number in range(RECORDS)]
    done: Counter[bytes | None] = Counter()
    by_worker, partitions = Counter[str](), Counter[str]()
    changed, deadline = threading.Condition(), time.monotonic() + TIMEOUT_S

    def work(name: str) -> None:
        with Consumer.of_bus(file, user, group, [topic]) as consumer:
            while done.total() < RECORDS and time.monotonic() < deadline:
                record = consumer.poll(0.2)
                if record is not None:
                    # Here the work would be done.
                    consumer.commit()  # after the work: a worker that dies before leaves it to the other
                with changed:
                    partitions[name] = len(consumer.assigned(timeout_s=0.0))
                    if record is not None and record.key == run:
                        done[record.value] += 1
                        by_worker[name] += 1
                    changed.notify_all()

    def all_read_and_both_reading() -> bool:
        return partitions.total() == PARTITIONS and all(partitions[name] for name in WORKERS)

    workers = [threading.Thread(target=work, args=(name,)) for name in WORKERS]
    for worker in workers:
        worker.start()
    with changed:
        is_shared = changed.wait_for(all_read_and_both_reading, TIMEOUT_S)
        shares = dict(partitions)
    if is_shared:
        with Producer.of_bus(file, user) as producer:
            producer.send_many(
                Outgoing(topic, job, run, partition=number % PARTITIONS) for number, job in enumerate(jobs)
            )
    for worker in workers:
        worker.join()
    for name in WORKERS:
        print(f"the {name} worker: {shares.get(name, 0)} partitions, {by_worker[name]} jobs")
    print(f"{len(done)} of {RECORDS} jobs done, {done.total() - len(done)} of them more than once")
    return 0 if done == Counter(jobs) and all(by_worker[name] for name in WORKERS) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
