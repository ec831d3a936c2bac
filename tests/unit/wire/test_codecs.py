"""Compressed records sections: all forms that clients write, and what must not be unpacked."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire import samples
from twinlog.wire.batches import Codec, UnreadableBatch
from twinlog.wire.codecs import compress, decompress

MB = 1024 * 1024
PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
# Several blocks of every codec, of which some do not get smaller.
LONG = b"".join(f"order {number};".encode() * 8 for number in range(4000)) + bytes(
    number * number % 251 for number in range(200_000)
)


@given(samples.codecs, st.binary(max_size=2000), st.integers(1, 200))
def test_a_section_comes_back_as_it_was(codec: Codec, piece: bytes, times: int) -> None:
    section = piece * times
    assert decompress(codec, compress(codec, section), len(section)) == section


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_a_long_section_comes_back_as_it_was(
    codec: Codec, form: Callable[[bytes], bytes | bytearray | memoryview]
) -> None:
    assert decompress(codec, compress(codec, form(LONG)), MB) == LONG


@pytest.mark.parametrize("codec", PACKED)
def test_streams_that_follow_one_another_are_one_section(codec: Codec) -> None:
    both = bytes(compress(codec, LONG[:1000])) + bytes(compress(codec, LONG[1000:]))
    assert decompress(codec, memoryview(both), MB) == LONG


def test_a_bare_block_of_snappy_is_read() -> None:
    assert decompress(Codec.SNAPPY, memoryview(cramjam.snappy.compress_raw(LONG)), MB) == LONG


def test_a_snappy_section_is_framed_as_javas_library_does() -> None:
    packed = bytes(compress(Codec.SNAPPY, LONG))
    assert packed[:16] == b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
    first = int.from_bytes(packed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + first])) == LONG[: 32 * 1024]


def test_an_lz4_frame_has_independent_blocks() -> None:
    # Kafka's reader refuses others.
    assert compress(Codec.LZ4, LONG)[4] & 0x20


def test_gzip_of_another_writer_is_read() -> None:
    assert decompress(Codec.GZIP, memoryview(gzip.compress(LONG)), MB) == LONG


@cache
def bomb(codec: Codec) -> memoryview:
    """Many zeros in a few bytes."""
    return compress(codec, bytes(20 * MB))


@pytest.mark.parametrize("codec", PACKED)
def test_a_section_of_many_times_its_size_is_read(codec: Codec) -> None:
    assert decompress(codec, bomb(codec), 32 * MB) == bytes(20 * MB)


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("limit_bytes", [0, 1000, 20 * MB - 1])
def test_a_section_over_the_limit_is_refused(codec: Codec, limit_bytes: int) -> None:
    with pytest.raises(UnreadableBatch, match=f"more than {limit_bytes} bytes") as caught:
        decompress(codec, bomb(codec), limit_bytes)
    assert caught.value.code == "MESSAGE_TOO_LARGE"


def test_a_snappy_block_that_claims_gigabytes_is_refused() -> None:
    with pytest.raises(UnreadableBatch, match="more than 1048576 bytes"):
        decompress(Codec.SNAPPY, memoryview(b"\xff\xff\xff\xff\x0fabc"), MB)


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("kept", [0, 1, 4, 17, 18, 30, -1])
def test_a_section_that_ends_early_is_damaged(codec: Codec, kept: int) -> None:
    packed = compress(codec, LONG)
    with pytest.raises(UnreadableBatch, match=r"damaged|ends inside"):
        decompress(codec, packed[:kept], MB)


@given(st.sampled_from(PACKED), st.binary(max_size=100))
def test_bytes_of_no_codec_are_refused_or_short(codec: Codec, garbage: bytes) -> None:
    with suppress(UnreadableBatch):
        assert len(decompress(codec, memoryview(garbage), MB)) <= MB
