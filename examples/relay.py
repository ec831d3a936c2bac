"""Consume, process, produce: each order becomes one invoice, exactly once for readers of committed records.

The invoices and the group's positions are committed in one transaction. It may be killed at any moment;
the next one with the same name goes on where the last commit was.

Run beside a bus that is up: python examples/relay.py twinlog.yaml USER FROM TO NAME
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from twinlog import Consumer, Outgoing, Received, Relay, TransactionalProducer


def main(file: str, user: str, source: str, target: str, name: str) -> None:
    """Relay records until somebody ends it; `name` is that of the group and of its transactions."""

    def invoice(order: Received) -> Iterator[Outgoing]:
        yield Outgoing(target, b"invoice of " + (order.value or b""), order.key)

    def opened() -> TransactionalProducer:
        return TransactionalProducer.of_bus(file, user, name)

    # A member with a name of its own is known again after a restart, and gets its partitions at once.
    settings = {"group.instance.id": name}
    with Consumer.of_bus(file, user, name, [source], settings=settings) as consumer:
        relay = Relay(consumer, opened, invoice)
        while True:
            relay.run_once(1.0, most=20)


if __name__ == "__main__":
    main(*sys.argv[1:6])
