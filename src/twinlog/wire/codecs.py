"""Compression of records sections: what Kafka's clients write is read, what Kafka reads is written.

Pure. Only `recode` needs it: batches that are copied stay compressed. Snappy comes in two forms, the
framing of xerial's Java library (Java clients) and one bare block (librdkafka); the first is written.
Kafka reads LZ4 frames of independent blocks only. Reading takes a limit and never unpacks more than
that, because a small batch can stand for any amount of memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import cramjam

from twinlog.wire.batches import Codec, UnreadableBatch

_GZIP_LEVEL, _ZSTD_LEVEL, _LZ4_LEVEL = 6, 3, 1  # what Java clients use if nothing is said
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER = struct.Struct(">8sii")  # magic, version, oldest version that can read it
_XERIAL_BLOCK_BYTES = 32 * 1024
_CHUNK_LENGTH = struct.Struct(">I")
# A first guess that fits most sections; a section that does not fit is unpacked again, into more room.
_USUAL_RATIO, _LEAST_ROOM_BYTES, _MORE_ROOM = 8, 64 * 1024, 4
_NO_ROOM = "failed to write whole buffer"  # the library's words


def compress(codec: Codec, data: bytes | bytearray | memoryview) -> memoryview:
    """A records section in the form that the codec of its batch names."""
    match codec:
        case Codec.NONE:
            return memoryview(data)
        case Codec.GZIP:
            return memoryview(cramjam.gzip.compress(data, level=_GZIP_LEVEL))
        case Codec.SNAPPY:
            return memoryview(_to_xerial(memoryview(data)))
        case Codec.LZ4:
            frame = cramjam.lz4.Compressor(level=_LZ4_LEVEL, content_checksum=False, block_linked=False)
            frame.compress(bytes(data))  # it takes nothing else
            return memoryview(frame.finish())
        case Codec.ZSTD:
            return memoryview(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def decompress(codec: Codec, data: memoryview, limit_bytes: int) -> memoryview:
    """A records section as it was before compression, refused when it is longer than the limit."""
    try:
        match codec:
            case Codec.NONE:
                return data
            case Codec.GZIP:
                return _unpack(cramjam.gzip.decompress_into, data, limit_bytes)
            case Codec.SNAPPY:
                return _from_snappy(data, limit_bytes)
            case Codec.LZ4:
                return _unpack(cramjam.lz4.decompress_into, data, limit_bytes)
            case Codec.ZSTD:
                return _unpack(cramjam.zstd.decompress_into, data, limit_bytes)
    except cramjam.DecompressionError as error:
        raise UnreadableBatch(f"{len(data)} bytes of {codec.name.lower()} are damaged: {error}") from error


def _unpack(into: Callable[[memoryview, bytearray], int], data: memoryview, limit_bytes: int) -> memoryview:
    size = max(_LEAST_ROOM_BYTES, len(data) * _USUAL_RATIO)
    while True:
        room = bytearray(min(size, limit_bytes))
        try:
            used = into(data, room)
        except cramjam.DecompressionError as error:
            if str(error) != _NO_ROOM:
                raise
        else:
            return memoryview(room)[:used]
        if size >= limit_bytes:
            raise _too_long(limit_bytes)
        size *= _MORE_ROOM


def _to_xerial(data: memoryview) -> bytes:
    parts: list[bytes] = [_XERIAL_HEADER.pack(_XERIAL_MAGIC, 1, 1)]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_CHUNK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _from_snappy(data: memoryview, limit_bytes: int) -> memoryview:
    blocks = list(_xerial_blocks(data)) if data[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC else [data]
    # A block begins with the length of what is in it, so all are known before any is unpacked.
    sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
    if sum(sizes) > limit_bytes:
        raise _too_long(limit_bytes)
    room = memoryview(bytearray(sum(sizes)))
    place = 0
    for block, size in zip(blocks, sizes, strict=True):
        cramjam.snappy.decompress_raw_into(block, room[place : place + size])
        place += size
    return room


def _xerial_blocks(data: memoryview) -> Iterator[memoryview]:
    place = _XERIAL_HEADER.size
    while place < len(data):
        if data[place : place + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:  # streams may follow one another
            place += _XERIAL_HEADER.size
            continue
        start = place + _CHUNK_LENGTH.size
        if start > len(data):
            raise UnreadableBatch("a snappy stream ends inside a length")
        place = start + _CHUNK_LENGTH.unpack_from(data, place)[0]
        if place > len(data):
            raise UnreadableBatch("a snappy stream ends inside a block")
        yield data[start:place]


def _too_long(limit_bytes: int) -> UnreadableBatch:
    return UnreadableBatch(
        f"a compressed batch holds more than {limit_bytes} bytes of records",
        code="MESSAGE_TOO_LARGE",
        hint="which producer writes so much into one batch? kafka-dump-log --deep-iteration shows its id",
    )
