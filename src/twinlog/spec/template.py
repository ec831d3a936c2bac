"""The file that `twinlog init` writes: small, valid, and commented where a reader would ask."""

from __future__ import annotations

_STARTER = """\
# A bus on two Kafka sites. `twinlog up` makes it so; `twinlog plan` shows what would change.
# Everything that is left out has a default; `twinlog schema` prints all keys for your editor.
bus: {bus}

sites:
  a: {{brokers: 3}}              # Twinlog runs it, here. Production wants controllers: 3 as well
  b: {{brokers: 3}}
  # A cluster that exists already:
  # b: {{bootstrap: ["kafka1:9093", "kafka2:9093"], client: b.properties}}

active: a                      # where clients go at first

topics:                        # on both sites, at the same offsets
  orders: {{partitions: 6, retention: 7d}}
  accounts: {{partitions: 3, cleanup: compact}}

users:                         # may do what is written here and nothing else
  shop: {{produce: [orders, accounts]}}
  stock: {{consume: [orders], groups: [stock-*], quota: {{consume: 5MB/s}}}}

gate:                          # the one address that clients know
  address: 127.0.0.1:9092
  failover_after: 10s          # how long the active site must be gone
  promote: ask                 # a person decides

# Any broker setting, for both sites:
# kafka: {{message.max.bytes: 15MiB, replica.fetch.max.bytes: 15MiB}}
"""


def starter(bus: str) -> str:
    """A file to start from, for a bus of that name."""
    return _STARTER.format(bus=bus)
