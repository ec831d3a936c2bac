"""A record described in a few words, for reports: sizes, time and a checksum. Pure.

Never what is in it: reports are printed, kept and sent around, and records may hold anything.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta

from twinlog.mirror.compare import Seen
from twinlog.wire.contents import contents

NOTHING = "no record"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def outline(record: Seen | None) -> str:
    """What can be said of a record, or of its absence."""
    if record is None:
        return NOTHING
    found = contents(record.content)
    headers = f", {found.header_count} headers" if found.header_count else ""
    checksum = zlib.crc32(record.content)
    sizes = f"key {_size(found.key)}, value {_size(found.value)}{headers}"
    return f"{_moment(record.timestamp_ms)}, {sizes}, checksum {checksum:08x}"


def _size(content: bytes | None) -> str:
    return "null" if content is None else f"{len(content)} bytes"


def _moment(timestamp_ms: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds")
    except OverflowError:  # producers may write any number
        return f"{timestamp_ms} ms"
