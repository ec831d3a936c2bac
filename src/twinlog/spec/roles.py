"""What a mirrored topic is set to while its site is the standby. Pure: one table.

The active decides when records go and what time they carry; a standby that decided for itself
would hold another log. Its own log start follows the active's by deleting records, so retention
is off there; batches arrive as they were, so the broker must not touch codec or time.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.spec.model import Role, Topic

_LONGEST = str(2**63 - 1)
AT_STANDBY: Mapping[str, str] = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": _LONGEST,
    "message.timestamp.after.max.ms": _LONGEST,
    "compression.type": "producer",
}


def settings_in(role: Role, topic: Topic, declared: Mapping[str, str]) -> dict[str, str]:
    """A topic's settings at a site of that role."""
    if role is Role.STANDBY and topic.mirror:
        return {**declared, **AT_STANDBY}
    return dict(declared)
