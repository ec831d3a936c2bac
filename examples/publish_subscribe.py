"""Publish and subscribe: each group gets every record, whatever the other groups do.

Run beside a bus that is up: python examples/publish_subscribe.py twinlog.yaml USER TOPIC GROUP...
"""

from __future__ import annotations

import sys
import time

from twinlog import Consumer, Outgoing, Producer

RECORDS = 20
TIMEOUT_S = 60.0


def main(file: str, user: str, topic: str, *groups: str) -> int:
    """Publish events and let every group read all of them."""
    run = str(time.time_ns()).encode()  # the key of this run's records
    events = {b"event %d" % number for number in range(RECORDS)}
    with Producer.of_bus(file, user) as producer:
        producer.send_many(Outgoing(topic, event, run) for event in sorted(events))
    complete = 0
    for group in groups:
        got: set[bytes | None] = set()
        deadline = time.monotonic() + TIMEOUT_S
        with Consumer.of_bus(file, user, group, [topic]) as consumer:
            while got < events and time.monotonic() < deadline:
                got.update(record.value for record in consumer.poll_many(1.0) if record.key == run)
            consumer.commit()
        print(f"group {group}: {len(got)} events")
        complete += got == events
    return 0 if complete == len(groups) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
