"""Twinlog: a message bus on two Kafka sites that survives the loss of one.

`from twinlog import Producer` and its kin are the client library. They are imported when first
named, because the command line must start without a driver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinlog.client.asynchronous import AsyncConsumer, AsyncProducer
    from twinlog.client.consumer import Consumer, RolesChanged
    from twinlog.client.outcomes import Done, NotDone, Outcome, Position, Unknown, UnknownAtTwin
    from twinlog.client.partitioning import partition_of
    from twinlog.client.producer import Producer
    from twinlog.client.redriving import redrive
    from twinlog.client.retries import Retries
    from twinlog.client.sent import Sent
    from twinlog.client.serializers import (
        BYTES,
        FLOAT64,
        INT32,
        INT64,
        JSON,
        STRING,
        SerializationError,
        Serializer,
    )
    from twinlog.client.topics import Topic, Typed
    from twinlog.client.transactions import Relay, TransactionalProducer
    from twinlog.client.worker import Worker
    from twinlog.wire.access import Access
    from twinlog.wire.driver import Outgoing
    from twinlog.wire.received import Received
    from twinlog.wire.transactional import TransactionFailed

__version__ = "0.1.0"
__all__ = [
    "BYTES",
    "FLOAT64",
    "INT32",
    "INT64",
    "JSON",
    "STRING",
    "Access",
    "AsyncConsumer",
    "AsyncProducer",
    "Consumer",
    "Done",
    "NotDone",
    "Outcome",
    "Outgoing",
    "Position",
    "Producer",
    "Received",
    "Relay",
    "Retries",
    "RolesChanged",
    "Sent",
    "SerializationError",
    "Serializer",
    "Topic",
    "TransactionFailed",
    "TransactionalProducer",
    "Typed",
    "Unknown",
    "UnknownAtTwin",
    "Worker",
    "partition_of",
    "redrive",
]

_PLACES = {
    "Access": "twinlog.wire.access",
    "AsyncConsumer": "twinlog.client.asynchronous",
    "AsyncProducer": "twinlog.client.asynchronous",
    "BYTES": "twinlog.client.serializers",
    "Consumer": "twinlog.client.consumer",
    "Done": "twinlog.client.outcomes",
    "FLOAT64": "twinlog.client.serializers",
    "INT32": "twinlog.client.serializers",
    "INT64": "twinlog.client.serializers",
    "JSON": "twinlog.client.serializers",
    "NotDone": "twinlog.client.outcomes",
    "Outcome": "twinlog.client.outcomes",
    "Outgoing": "twinlog.wire.driver",
    "Position": "twinlog.client.outcomes",
    "Producer": "twinlog.client.producer",
    "Received": "twinlog.wire.received",
    "Relay": "twinlog.client.transactions",
    "Retries": "twinlog.client.retries",
    "RolesChanged": "twinlog.client.consumer",
    "STRING": "twinlog.client.serializers",
    "Sent": "twinlog.client.sent",
    "SerializationError": "twinlog.client.serializers",
    "Serializer": "twinlog.client.serializers",
    "Topic": "twinlog.client.topics",
    "TransactionFailed": "twinlog.wire.transactional",
    "TransactionalProducer": "twinlog.client.transactions",
    "Typed": "twinlog.client.topics",
    "Unknown": "twinlog.client.outcomes",
    "UnknownAtTwin": "twinlog.client.outcomes",
    "Worker": "twinlog.client.worker",
    "partition_of": "twinlog.client.partitioning",
    "redrive": "twinlog.client.redriving",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'twinlog' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)
