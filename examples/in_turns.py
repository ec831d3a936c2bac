"""Records without a key are dealt out to all partitions in turns.

Run beside a bus that is up: python examples/in_turns.py twinlog.yaml USER TOPIC
"""

from __future__ import annotations

import sys
from collections import Counter

from twinlog import Done, Outgoing, Producer


def main(file: str, user: str, topic: str) -> int:
    """Write thirty events and count what each partition got."""
    with Producer.of_bus(file, user, keyless="turns") as producer:
        outcomes = producer.send_many(Outgoing(topic, b"event %d" % number) for number in range(30))
    counts = Counter(one.partition for one in outcomes if isinstance(one, Done))
    for partition, count in sorted(counts.items()):
        print(f"partition {partition}: {count} events")
    return 0 if sum(counts.values()) == 30 and max(counts.values()) - min(counts.values()) <= 1 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
