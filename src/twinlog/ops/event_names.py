"""Names of events: how they are written, and whether they say what happened. Pure.

For `twinlog events check`. English only: a verb in the past is one that ends in -ed, or one of a list. What
comes of it is advice, and a person decides.
"""

from __future__ import annotations

import re
from enum import StrEnum

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_IRREGULAR = re.compile(
    r"became|began|begun|bound|bought|broke|broken|brought|built|burnt|came|caught|chose|chosen|"
    r"cut|done|drawn|driven|fell|felt|fought|found|froze|frozen|gave|given|gone|got|gotten|grew|"
    r"grown|held|heard|hidden|hit|kept|knew|known|laid|led|left|lent|let|lost|made|meant|met|paid|"
    r"put|quit|ran|read|reset|rose|said|sang|sat|seen|sent|set|shown|shut|sold|sought|spent|split|"
    r"spoken|spread|stolen|stood|stuck|sunk|swept|taken|taught|thrown|told|took|torn|understood|"
    r"undone|upset|went|withdrawn|withdrew|won|worn|written|wrote"
)


class Style(StrEnum):
    """How the words of a name are joined."""

    PASCAL = "PascalCase"
    CAMEL = "camelCase"
    SNAKE = "snake_case"
    KEBAB = "kebab-case"
    DOTTED = "dotted.case"
    UPPER = "UPPER_CASE"
    PLAIN = "plain"
    MIXED = "mixed"


def words_of(name: str) -> list[str]:
    """The words of a name, in lower case; what stands before a slash or colon says where it belongs."""
    last = re.split(r"[/:]", name)[-1]
    return [word.lower() for word in _WORDS.findall(last)]


def style_of(name: str) -> Style:
    """How a name is written."""
    last = re.split(r"[/:]", name)[-1]
    separators = {char for char in last if char in "._-"}
    if len(separators) > 1:
        return Style.MIXED
    if separators:
        if last.isupper():
            return Style.UPPER
        return {"_": Style.SNAKE, "-": Style.KEBAB, ".": Style.DOTTED}[separators.pop()]
    if last.isupper():
        return Style.UPPER
    if not any(char.isupper() for char in last[1:]) and not last[:1].isupper():
        return Style.PLAIN
    return Style.PASCAL if last[:1].isupper() else Style.CAMEL


def says_what_happened(name: str) -> bool:
    """True if a verb in the past is in the name."""
    return any(is_past(word) for word in words_of(name))


def is_past(word: str) -> bool:
    """True if a word is a verb in the past, as far as its letters tell."""
    return _IRREGULAR.fullmatch(word) is not None or (
        len(word) > 3 and word.endswith("ed") and word not in ("need", "feed", "seed")
    )


def does_two_things(name: str) -> bool:
    """True if a name joins two things: `OrderCreatedOrUpdated`."""
    return bool({"and", "or"} & set(words_of(name)))
