"""How members of a group share its partitions, in librdkafka's settings. Pure.

For the Consumer. All members of a group must share in the same way; "broker" is the group protocol of
KIP-848, where the coordinator decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from twinlog.errors import UsageError
from twinlog.wire.driver import Settings

Balance = Literal["cooperative", "eager", "broker"]
BALANCES: Mapping[str, Settings] = {
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "eager": {"partition.assignment.strategy": "range,roundrobin"},
    "broker": {"group.protocol": "consumer"},
}


def balanced(balance: str) -> Settings:
    """The settings for one way to share."""
    if balance not in BALANCES:
        known = ", ".join(f"'{one}'" for one in BALANCES)
        raise UsageError(
            f"balance is one of {known}, not {balance!r}", hint="how should members share partitions?"
        )
    return BALANCES[balance]
