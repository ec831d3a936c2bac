"""What a site must be for ordering: every rule, and that each fault names what to change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from twinlog.ordering.limits import Figures, doubts, faults

MIB = 1024 * 1024
GOOD = Figures(
    site="a",
    brokers=4,
    replication=3,
    min_insync=2,
    absolute_max_bytes=10 * MIB,
    preferred_max_bytes=MIB,
    replica_fetch_bytes=11 * MIB,
    message_bytes=11 * MIB,
    request_bytes=100 * MIB,
    bootstrap=4,
)


def test_least_site_is_good() -> None:
    assert list(faults(GOOD)) == []
    assert list(doubts(GOOD)) == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"brokers": 3}, "brokers: 4"),
        ({"replication": 4}, "--replication 3"),
        ({"min_insync": 3}, "--min-insync 2"),
        ({"min_insync": 1}, "--min-insync 2"),
        ({"replica_fetch_bytes": 11 * MIB - 1}, "replica.fetch.max.bytes: 11534336"),
        ({"message_bytes": 11 * MIB - 1}, "message.max.bytes: 11534336"),
        ({"replica_fetch_bytes": 12 * MIB}, "message.max.bytes: 12582912"),
        ({"request_bytes": 11 * MIB}, "socket.request.max.bytes"),
        ({"preferred_max_bytes": 11 * MIB}, "--preferred-max-bytes 10485760"),
    ],
)
def test_broken_rule_names_the_value_to_change(change: dict[str, Any], named: str) -> None:
    (fault,) = faults(replace(GOOD, **change))
    assert named in fault.hint


@pytest.mark.parametrize(
    "change", [{"preferred_max_bytes": 2 * MIB}, {"bootstrap": 1}, {"retention_bytes": 9}]
)
def test_doubtful_value_is_a_warning_only(change: dict[str, Any]) -> None:
    figures = replace(GOOD, **change)
    assert list(faults(figures)) == []
    assert len(list(doubts(figures))) == 1
