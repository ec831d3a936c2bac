"""Patterns of names in the file: an exact name, a beginning and an asterisk, or the asterisk alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable

ANY = "*"


def matches(pattern: str, name: str) -> bool:
    """True when a pattern means this name."""
    return name.startswith(pattern[:-1]) if pattern.endswith(ANY) else name == pattern


def is_meant(name: str, include: Iterable[str], exclude: Iterable[str] = ()) -> bool:
    """True when one of the first patterns means this name and none of the second does."""
    return any(matches(one, name) for one in include) and not any(matches(one, name) for one in exclude)
