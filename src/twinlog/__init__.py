"""Twinlog: a message bus on two Kafka sites that survives the loss of one.

`from twinlog import Producer` and its kin are the client library. They are imported when first
named, because the command line must start without a driver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinlog.client.consumer import Consumer, RolesChanged
    from twinlog.client.outcomes import Done, NotDone, Outcome, Position, Unknown, UnknownAtTwin
    from twinlog.client.producer import Producer
    from twinlog.wire.access import Access
    from twinlog.wire.driver import Received

__version__ = "0.1.0"
__all__ = [
    "Access",
    "Consumer",
    "Done",
    "NotDone",
    "Outcome",
    "Position",
    "Producer",
    "Received",
    "RolesChanged",
    "Unknown",
    "UnknownAtTwin",
]

_PLACES = {
    "Access": "twinlog.wire.access",
    "Consumer": "twinlog.client.consumer",
    "Done": "twinlog.client.outcomes",
    "NotDone": "twinlog.client.outcomes",
    "Outcome": "twinlog.client.outcomes",
    "Position": "twinlog.client.outcomes",
    "Producer": "twinlog.client.producer",
    "Received": "twinlog.wire.driver",
    "RolesChanged": "twinlog.client.consumer",
    "Unknown": "twinlog.client.outcomes",
    "UnknownAtTwin": "twinlog.client.outcomes",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'twinlog' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)
