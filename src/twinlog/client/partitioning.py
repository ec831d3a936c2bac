"""Which partition a record goes to. Pure.

`partition_of` is the rule of Kafka's Java clients for keys. librdkafka follows the same rule for each
record that a Producer sends, in C; this is for programs that must know the partition of a key without
sending anything. `Turns` deals records without a key out evenly: a Producer with keyless="turns" asks it.
"""

from __future__ import annotations

from itertools import count

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_SHIFT = 24
_32_BITS = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash of Kafka's Java clients, as an unsigned number of 32 bits."""
    length = len(data)
    result = _SEED ^ length
    whole = length & ~3
    for start in range(0, whole, 4):
        part = int.from_bytes(data[start : start + 4], "little") * _FACTOR & _32_BITS
        part = (part ^ part >> _SHIFT) * _FACTOR & _32_BITS
        result = (result * _FACTOR & _32_BITS) ^ part
    if whole < length:
        result = (result ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _32_BITS
    result = (result ^ result >> 13) * _FACTOR & _32_BITS
    return result ^ result >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key in a topic of so many."""
    # Java's numbers have a sign, and its clients drop it before they divide.
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class Turns:
    """Deals records out to partitions, one after the other; each topic begins at its first."""

    def __init__(self) -> None:
        self._counts: dict[str, count[int]] = {}

    def next(self, topic: str, partitions: int) -> int:
        """The partition whose turn it is."""
        turns = self._counts.get(topic)
        if turns is None:
            turns = self._counts.setdefault(topic, count())
        return next(turns) % partitions
