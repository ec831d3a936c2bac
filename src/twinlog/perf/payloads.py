"""What is sent in a measurement: records made before it begins, and used again and again. Pure.

Making a random record takes longer than sending it, so a stock of them is made once: letters as Kafka's
tool takes them, or the lines of a file. The stock is larger than any batch, so that compression finds no
repeats that a real load would not have. Numbers that count up cannot be used again and are made as they go.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import cycle

from twinlog.errors import UsageError
from twinlog.wire.bulk import Piece

PIECE_RECORDS = 500
PIECE_BYTES = 256 * 1024
STOCK_BYTES = 8 * 1024 * 1024
LEAST_PIECES = 4
_LETTERS = bytes(ord("A") + number % 26 for number in range(256))  # one for each byte
_SEED = 0  # the same records in every run


def random_values(record_bytes: int) -> list[bytes]:
    """Values of one size, of random letters."""
    chance = random.Random(_SEED)
    most = max(LEAST_PIECES * piece_records(record_bytes), STOCK_BYTES // max(1, record_bytes))
    count = min(most, 16 * PIECE_RECORDS)
    letters = chance.randbytes(count * record_bytes).translate(_LETTERS)
    return [letters[at : at + record_bytes] for at in range(0, count * record_bytes, record_bytes)]


def chosen_values(text: str, delimiter: str) -> list[bytes]:
    """Values of a file, drawn at random: as many as a stock holds."""
    values = [value.encode() for value in text.split(delimiter)]
    while len(values) > 1 and not values[-1]:  # what follows the last delimiter is no value
        values.pop()
    if not any(values):
        raise UsageError("the file of payloads is empty", hint="one payload a line, or --payload-delimiter")
    return random.Random(_SEED).choices(values, k=16 * PIECE_RECORDS)


def piece_records(record_bytes: int) -> int:
    """How many records go to the driver in one call."""
    return max(1, min(PIECE_RECORDS, PIECE_BYTES // max(1, record_bytes)))


def pieces(values: Sequence[bytes]) -> Iterator[Piece]:
    """The values in pieces for the driver, for ever."""
    size = piece_records(max(map(len, values)))
    made: list[Piece] = [
        [{"value": value} for value in values[at : at + size]] for at in range(0, len(values), size)
    ]
    return cycle(made)


def counting_pieces() -> Iterator[Piece]:
    """The numbers 0, 1, 2 … as text, in pieces, for ever."""
    first = 0
    while True:
        yield [{"value": b"%d" % number} for number in range(first, first + PIECE_RECORDS)]
        first += PIECE_RECORDS
