"""What an answer of the standby or the active means for a twin. Pure: one table.

Nothing here is repeated blindly. Whatever is unclear is answered by reading the standby again
(`REDERIVE`), because its log end is the only position there is. `HOLE` says that a producer's
chain cannot be continued under its own name in this partition; `RENEW` that the link's own cannot,
and has to go on in its next epoch; `STOP` that somebody has to change something first; `DEPOSED`
that this holder's right to write was taken away.
"""

from __future__ import annotations

from enum import Enum, auto

from twinlog.wire import codes


class Reaction(Enum):
    """What to do about an answer."""

    GO = auto()
    REDERIVE = auto()
    HOLE = auto()
    RENEW = auto()
    STOP = auto()
    DEPOSED = auto()


_CHAIN = frozenset({"OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "DUPLICATE_SEQUENCE_NUMBER"})
_DEPOSED = frozenset({"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"})
# The same batch will be refused again until a setting, a disk or a person changes that.
_LASTING = frozenset(
    {
        "MESSAGE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "INVALID_TOPIC_EXCEPTION",
        "INVALID_REQUIRED_ACKS",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "POLICY_VIOLATION",
        "CORRUPT_MESSAGE",
    }
)
# What to look at at the standby when it refuses a batch for good.
_QUESTIONS = {
    "MESSAGE_TOO_LARGE": "is max.message.bytes of the topic smaller there?",
    "RECORD_LIST_TOO_LARGE": "is segment.bytes of the topic smaller there?",
    "INVALID_TIMESTAMP": "is message.timestamp.before.max.ms or .after.max.ms of the topic set there?",
    "UNSUPPORTED_COMPRESSION_TYPE": "is the Kafka there older?",
    "POLICY_VIOLATION": "is there a policy for topics?",
}


def question(code: int) -> str:
    """What to look at when a batch is refused for good; empty where the code says all."""
    return _QUESTIONS.get(codes.name_of(code), "")


def to_append(code: int, base_offset: int, expected: int, *, kept: bool) -> Reaction:
    """What the answer to an append means; `kept`: the batch went under its producer's own name."""
    if code == codes.NONE:
        if base_offset == expected:
            return Reaction.GO
        if base_offset > expected:
            return Reaction.REDERIVE
        # The broker knew the batch already, from elsewhere: nothing was appended under that name.
        return Reaction.HOLE if kept else Reaction.RENEW
    name = codes.name_of(code)
    if name in _DEPOSED:
        return Reaction.DEPOSED
    if name in _LASTING:
        return Reaction.STOP
    if name not in _CHAIN:
        return Reaction.REDERIVE
    return Reaction.HOLE if kept else Reaction.RENEW


def to_fill(code: int, log_end: int | None, expected: int) -> Reaction:
    """What the answer to markers means, and the log end behind them if there was more than one."""
    if codes.name_of(code) in _DEPOSED:
        return Reaction.DEPOSED
    is_there = log_end is None or log_end == expected
    return Reaction.GO if code == codes.NONE and is_there else Reaction.REDERIVE
