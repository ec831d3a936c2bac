"""How records are printed; that it is byte for byte what kcat prints is shown with kcat on real Kafka."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import UsageError
from twinlog.ops import formats, inputs
from twinlog.ops.formats import KeyType, compile_format, shown_as, unescape
from twinlog.wire.received import Received

RECORD = Received("orders", 2, 41, b"k1", b"v\0\xff", (("a", b"1"), ("b", None)), 1700000000123)
NOTHING = Received("orders", 0, 0, None, None, (), -1)
# The third seed's own: escapes, a line break in the shell's quotes, every field.
SEED = r"""\nKey (%K bytes): %k
      Value (%S bytes): %s
      Timestamp: %T
      Partition: %p
      Offset: %o
      Headers: %h\n"""


def test_the_format_of_the_seed_prints_every_field() -> None:
    lines = compile_format(SEED)(RECORD).split(b"\n")
    assert lines == [
        b"",
        b"Key (2 bytes): k1",
        b"      Value (3 bytes): v\0\xff",
        b"      Timestamp: 1700000000123",
        b"      Partition: 2",
        b"      Offset: 41",
        b"      Headers: a=1,b=NULL",
        b"",
    ]


def test_what_a_record_lacks_is_nothing_and_its_length_is_minus_one() -> None:
    assert compile_format("[%k|%K|%s|%S|%h]")(NOTHING) == b"[|-1||-1|]"
    assert compile_format("%R")(NOTHING) == b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("literal", "printed"),
    [
        (rb"\n\t\r", b"\n\t\r"),
        (rb"\x41\x4a", b"AJ"),
        (rb"\x414", b"\x14"),  # as many digits as there are, and a char of the result
        (rb"\101", b"e"),  # no leading zero: decimal
        (rb"\0101", b"A"),  # a leading zero: octal
        (rb"\0x41", b"A"),
        (rb"\\ \q", rb"\ q"),
        (b"end\\", b"end\\"),
        (rb"a\0b", b"a"),  # kcat ends a piece at a zero byte
    ],
)
def test_escapes_mean_what_they_mean_in_kcat(literal: bytes, printed: bytes) -> None:
    assert unescape(literal) == printed


@given(st.binary())
def test_any_literal_has_a_form_and_no_zero_byte(literal: bytes) -> None:
    assert b"\0" not in unescape(literal)


@given(st.text(alphabet=st.characters(exclude_characters="%\\\0", exclude_categories=["Cs"])))
def test_a_text_without_escapes_is_printed_as_it_is(text: str) -> None:
    assert compile_format(text)(RECORD) == text.encode()


@pytest.mark.parametrize("text", ["%", "%q", "a %", "%%%"])
def test_a_field_that_is_none_is_refused_with_the_list(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_format(text)
    assert "%t %p %o" in caught.value.hint


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_key_of_javas_long_is_shown_as_its_number(number: int) -> None:
    assert shown_as(KeyType.LONG)(struct.pack(">q", number)) == str(number).encode()


def test_a_key_that_is_no_such_number_is_shown_in_hex() -> None:
    assert shown_as(KeyType.LONG)(b"abc") == b"616263"
    assert shown_as(KeyType.INT)(None) == b""


HEADERS = st.lists(st.tuples(st.text(min_size=1), st.none() | st.binary()), max_size=3)


@given(st.none() | st.binary(), st.none() | st.binary(), HEADERS, st.integers(0, 2**40), st.integers(0, 9))
def test_what_is_printed_as_json_is_read_back_as_the_same_record(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    timestamp_ms: int,
    partition: int,
) -> None:
    record = Received("orders", partition, 7, key, value, tuple(headers), timestamp_ms)
    line = formats.as_json(record)
    assert line.endswith(b"\n") and b"\n" not in line[:-1]
    (back,) = inputs.from_lines([line], inputs.Form("orders", is_json=True))
    assert (back.key, back.value, tuple(back.headers)) == (key, value, tuple(headers))
    assert (back.partition, back.timestamp_ms) == (partition, timestamp_ms)


def test_json_shows_text_as_text_and_other_bytes_in_base64() -> None:
    told = json.loads(formats.as_json(RECORD))
    assert told["key"] == "k1" and told["value_base64"] == "dgD/" and "value" not in told
