"""A salvaged record: what it was, where it was, and how it lies in `<topic>.salvage`. Pure.

Its headers say where it came from; they stand before the record's own, which are kept like key and
value, byte for byte. Between the records lie notes of which of them were applied: written to their
topic again. A note is made before and another after, so that whoever was killed in between is found out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from twinlog.ops.plan import SALVAGE_SUFFIX
from twinlog.traffic.fates import Fate
from twinlog.wire.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, UnreadableBatch
from twinlog.wire.contents import contents
from twinlog.wire.record_headers import headers, with_headers, without_headers

APPLIED_HEADER = "twinlog.salvaged"  # on a record that was written again: where it had been
_NAMES = tuple(
    f"twinlog.{name}"
    for name in ("topic", "partition", "offset", "timestamp", "term", "producer", "transaction")
)
_NOTE = "twinlog.note"
_EMPTY = b"\x01\x01\x00"  # a null key, a null value, no headers


def salvage_topic(topic: str) -> str:
    """Where records of a topic are salvaged to."""
    return topic + SALVAGE_SUFFIX


@dataclass(frozen=True)
class Salvaged:
    """One record that only the lost site had."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    term: int
    rest: bytes = field(repr=False)  # key, value and headers, as they were written
    fate: Fate = Fate.PLAIN
    producer: tuple[int, int, int] = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)  # and epoch, sequence
    place: int = -1  # its offset in the salvage topic

    @property
    def key(self) -> bytes | None:
        """Its key."""
        return contents(self.rest).key

    @property
    def value(self) -> bytes | None:
        """Its value."""
        return contents(self.rest).value

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Its own headers."""
        return headers(self.rest)

    @property
    def is_open(self) -> bool:
        """True if nobody ever committed it."""
        return self.fate is Fate.OPEN

    def encoded(self) -> bytes:
        """The record as it lies in the salvage topic."""
        told = (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp_ms,
            self.term,
            "/".join(map(str, self.producer)),
            None if self.fate is Fate.PLAIN else self.fate,
        )
        return with_headers(
            self.rest,
            [
                (name, None if value is None else str(value).encode())
                for name, value in zip(_NAMES, told, strict=True)
            ],
        )

    @property
    def was(self) -> bytes:
        """Where it had been, as a header says it of a record that was written again."""
        return f"{self.term}/{self.partition}/{self.offset}".encode()

    def again(self) -> bytes:
        """The record as it is written to its topic again."""
        return with_headers(self.rest, [(APPLIED_HEADER, self.was)])


class Word(StrEnum):
    """What a note says."""

    APPLYING = "applying"
    APPLIED = "applied"


@dataclass(frozen=True)
class Note:
    """Which salvaged records are being written again, or were: by their offsets in the salvage topic.

    While they are being written the note has what is needed to find out whether they were: where the
    topic's partition ended before, and the sequence that their batch bears.
    """

    word: Word
    places: tuple[int, ...]
    end: int
    sequence: int

    def encoded(self) -> bytes:
        """The note as it lies in the salvage topic."""
        told = {"places": self.places, "end": self.end, "sequence": self.sequence}
        value = json.dumps(told).encode()
        return with_headers(_EMPTY, [(_NOTE, self.word.encode()), ("twinlog.places", value)])


def decode(rest: bytes, place: int) -> Salvaged | Note | None:
    """What lies in a salvage topic at an offset; None if it is nothing of ours."""
    found = headers(rest)
    try:
        if tuple(name for name, _ in found[: len(_NAMES)]) == _NAMES:
            return _salvaged([value for _, value in found[: len(_NAMES)]], rest, place)
        if found and found[0][0] == _NOTE:
            told = json.loads(found[1][1] or b"")
            word = Word((found[0][1] or b"").decode())
            return Note(word, tuple(told["places"]), told["end"], told["sequence"])
    except (ValueError, KeyError, IndexError, TypeError):
        raise UnreadableBatch(f"the salvaged record at offset {place} has headers of another form") from None
    return None


def _salvaged(told: Sequence[bytes | None], rest: bytes, place: int) -> Salvaged:
    topic, partition, offset, timestamp, term, producer, transaction = (
        (value or b"").decode() for value in told
    )
    producer_id, epoch, sequence = map(int, producer.split("/"))
    return Salvaged(
        topic,
        int(partition),
        int(offset),
        int(timestamp),
        int(term),
        without_headers(rest, len(_NAMES)),
        Fate(transaction) if transaction else Fate.PLAIN,
        (producer_id, epoch, sequence),
        place,
    )
