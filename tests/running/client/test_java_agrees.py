"""Kafka's own partitioner and serializers on what ours do. One JVM answers all questions (`Agree.java`)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tests.running.java import asked
from twinlog.client.partitioning import partition_of
from twinlog.client.serializers import FLOAT64, INT32, INT64, STRING, Half, Serializer, Spot

SOURCE = Path(__file__).with_name("Agree.java")
KEYS = 10_000
SPOT = Spot("orders", Half.VALUE)
INTS = (0, 1, -1, 2**31 - 1, -(2**31), 123456789)
LONGS = (*INTS, 2**63 - 1, -(2**63), 1 << 40)
DOUBLES = (0.0, -0.0, 1.5, -2.25e300, 5e-324, 0.1)
STRINGS = ("", "plain", "grüße", "漢字", "😀 beyond the first plane")


def test_ten_thousand_random_keys_go_where_java_puts_them_and_values_are_written_alike() -> None:
    dice = random.Random()
    keys = [(dice.randrange(1, 1000), dice.randbytes(dice.randrange(0, 50))) for _ in range(KEYS)]
    written: list[tuple[str, Serializer[Any], tuple[Any, ...]]] = [
        ("int", INT32, INTS),
        ("long", INT64, LONGS),
        ("double", FLOAT64, DOUBLES),
    ]
    questions = [f"partition {count} {key.hex()}" for count, key in keys]
    expected = [str(partition_of(key, count)) for count, key in keys]
    for name, serializer, values in written:
        questions += [f"{name} {value!r}" for value in values]
        expected += [serializer.encode(value, SPOT).hex() for value in values]
    questions += [f"string {text.encode('utf-16-be').hex()}" for text in STRINGS]
    expected += [STRING.encode(text, SPOT).hex() for text in STRINGS]
    assert asked(SOURCE, questions) == expected
