"""Records of one key stay in order: the key decides the partition, as Kafka's Java clients decide it.

Run beside a bus that is up: python examples/by_key.py twinlog.yaml USER TOPIC
"""

from __future__ import annotations

import sys

from twinlog import INT64, STRING, Done, Producer, Topic


def main(file: str, user: str, topic: str) -> int:
    """Write events of three customers and show that each customer has one partition."""
    events = Topic(topic, key=INT64, value=STRING)
    with Producer.of_bus(file, user) as producer:
        records = [events.outgoing(f"event {number}", key=number % 3) for number in range(9)]
        outcomes = producer.send_many(records)
    partitions: dict[int, set[int]] = {}
    for number, outcome in enumerate(outcomes):
        if not isinstance(outcome, Done):
            print(f"event {number}: {outcome}")
            return 1
        partitions.setdefault(number % 3, set()).add(outcome.partition)
        print(f"customer {number % 3}, event {number}: partition {outcome.partition} offset {outcome.offset}")
    return 0 if all(len(one) == 1 for one in partitions.values()) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
