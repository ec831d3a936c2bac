"""Which records are wanted: by key, by what the value matches, by headers. Pure.

Used by `twinlog consume`. All conditions that were given must hold. Kafka cannot search, so
every record comes over the network and most are dropped here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from twinlog.errors import UsageError
from twinlog.wire.received import Received

Wanted = Callable[[Received], bool]


def wanted(
    *,
    keys: Sequence[bytes] = (),
    pattern: str | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> Wanted:
    """A test for records: one of the keys, a value that matches, and every header."""
    tests: list[Wanted] = []
    if keys:
        chosen = frozenset(keys)
        tests.append(lambda record: record.key in chosen)
    if pattern is not None:
        matches = _compiled(pattern)
        tests.append(lambda record: record.value is not None and matches.search(record.value) is not None)
    for pair in headers:
        tests.append(_has_header(*pair))
    return lambda record: all(test(record) for test in tests)


def _has_header(name: str, value: bytes | None) -> Wanted:
    # A name alone asks whether the header is there at all.
    return lambda record: any(
        name == found and (value is None or value == content) for found, content in record.headers
    )


def _compiled(pattern: str) -> re.Pattern[bytes]:
    try:
        return re.compile(pattern.encode("utf-8", "surrogateescape"))
    except re.error as error:
        raise UsageError(
            f"'{pattern}' is no regular expression: {error}", hint="--grep 'order [0-9]+'"
        ) from None
