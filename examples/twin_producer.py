"""Ten orders that survive the loss of a site, and what became of each.

Run beside a bus that is up, with its link: python examples/twin_producer.py twinlog.yaml USER TOPIC
"""

from __future__ import annotations

import sys

from twinlog import Done, NotDone, Outcome, Producer, Unknown, UnknownAtTwin


def told(outcome: Outcome) -> str:
    """What a program may conclude from an outcome."""
    match outcome:
        case Done(partition, offset, twin=True):
            return f"at both sites, partition {partition} offset {offset}"
        case Done(partition, offset):
            return f"at the active only, partition {partition} offset {offset}"
        case UnknownAtTwin(partition, offset, reason):
            return f"at the active, partition {partition} offset {offset}; the standby may lack it: {reason}"
        case NotDone(reason, hint):
            return f"not written, send it again if you like: {reason} ({hint})"
        case Unknown(reason):
            return f"it may have been written or not: {reason}"


def main(file: str, user: str, topic: str) -> int:
    """Write the orders, print their outcomes, and say by the exit code whether all are safe."""
    with Producer.of_bus(file, user, acks="twin", timeout_s=30.0) as producer:
        orders = {number: producer.send(topic, f"order {number}".encode()) for number in range(10)}
        outcomes = {number: future.result() for number, future in orders.items()}
    for number, outcome in outcomes.items():
        print(f"order {number}: {told(outcome)}")
    return 0 if all(isinstance(one, Done) and one.twin for one in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
