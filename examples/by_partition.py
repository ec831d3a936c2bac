"""Records go to the partition that the program names, at the time that it names, and wait for each other.

Run beside a bus that is up: python examples/by_partition.py twinlog.yaml USER TOPIC
"""

from __future__ import annotations

import sys
import time

from twinlog import INT64, STRING, Done, Producer, Topic

PARTITION = 1


def main(file: str, user: str, topic: str) -> int:
    """Write ten events to one partition, one after the other."""
    events = Topic(topic, key=INT64, value=STRING)
    with Producer.of_bus(file, user) as producer:
        for number in range(10):
            now_ms = int(time.time() * 1000)
            record = events.outgoing(f"event {number}", key=number, partition=PARTITION, timestamp_ms=now_ms)
            outcome = producer.send_record(record).result()
            if not isinstance(outcome, Done) or outcome.partition != PARTITION:
                print(f"event {number}: {outcome}")
                return 1
            print(f"event {number}: partition {outcome.partition} offset {outcome.offset}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
