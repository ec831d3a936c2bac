"""Java's properties format: text to entries with their places, and values to text. Pure.

`read` and `write` both stand on it. Lines of librdkafka's clients look the same and are not: there
a backslash is an ordinary character and a line ends where it ends, so the caller names the keys
(`raw_keys`) whose lines are to be taken that way. Values lose their blanks at both ends, as in
every Kafka client.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from twinlog.errors import Problem

_BLANK = " \t\f"
_BLANKS = "".join(map(chr, range(0x21)))  # what Java's trim() takes away
_SEPARATORS = "=:" + _BLANK
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNESCAPES = {"\\": "\\\\", "\t": "\\t", "\r": "\\r", "\f": "\\f"}
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
_BAD_UNICODE = re.compile(r"u(?![0-9A-Fa-f]{4})")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_INDENT = "  "


@dataclass(frozen=True)
class Entry:
    """One key with its value, and where the key stands."""

    key: str
    value: str = field(repr=False)
    line: int
    column: int


def parse(text: str, raw_keys: Collection[str] = ()) -> tuple[list[Entry], list[Problem]]:
    """The entries of a file in their order, and what could not be read."""
    entries: list[Entry] = []
    problems: list[Problem] = []
    for number, line in _logical_lines(text, raw_keys):
        content = line.lstrip(_BLANK)
        column = len(line) - len(content) + 1
        key, value = _split(content)
        raw = _unescape(key) in raw_keys
        if not raw and _has_bad_unicode(content):
            what = "after \\u four hexadecimal digits must follow"
            problems.append(Problem(number, column, what, hint="a backslash itself is written \\\\"))
            continue
        entries.append(
            Entry(_unescape(key), (value if raw else _unescape(value)).strip(_BLANKS), number, column)
        )
    return entries, problems


def format_entry(key: str, value: str) -> str:
    """One entry as text; a value of several lines becomes continued lines."""
    lines = [_escape_line(line) for line in value.split("\n")]
    last = lines.pop()
    if not lines:
        return f"{key}={last}"
    # The line break of the value is written as \n, the backslash after it continues the entry.
    text = f"\\n\\\n{_INDENT}".join([*lines, last]) if last else f"\\n\\\n{_INDENT}".join(lines) + "\\n"
    return f"{key}={text}"


def _logical_lines(text: str, raw_keys: Collection[str]) -> Iterator[tuple[int, str]]:
    physical = iter(enumerate(_LINE_BREAK.split(text), start=1))
    for number, line in physical:
        content = line.lstrip(_BLANK)
        if not content or content[0] in "#!":
            continue
        whole = line
        if _split(content)[0] not in raw_keys:
            while _continues(whole):
                _, following = next(physical, (0, ""))
                whole = whole[:-1] + following.lstrip(_BLANK)
        yield number, whole


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(content: str) -> tuple[str, str]:
    """Key and value, both still escaped: the key ends at the first bare `=`, `:` or blank."""
    end = 0
    while end < len(content) and content[end] not in _SEPARATORS:
        end += 2 if content[end] == "\\" else 1
    rest = content[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:]
    return content[:end], rest.lstrip(_BLANK)


def _has_bad_unicode(content: str) -> bool:
    # Pairs of backslashes are one character each and must not be taken for the start of \u.
    return any(_BAD_UNICODE.match(part) for part in content.replace("\\\\", "").split("\\")[1:])


def _unescape(text: str) -> str:
    plain = _ESCAPE.sub(_unescape_one, text)
    # Java writes characters beyond the first 65536 as two \u escapes.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescape_one(match: re.Match[str]) -> str:
    code, character = match.groups()
    return chr(int(code, 16)) if code else _ESCAPES.get(character, character)


def _escape_line(line: str) -> str:
    text = "".join(map(_escape_one, line))
    return f"\\{text}" if text.startswith(" ") else text


def _escape_one(character: str) -> str:
    if character in _UNESCAPES:
        return _UNESCAPES[character]
    if " " <= character <= "~":
        return character
    # Kafka's tools read these files as ISO 8859-1, so everything else goes as UTF-16 code units.
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
