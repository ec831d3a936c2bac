"""The one line of JAAS that Kafka clients carry in `sasl.jaas.config`. Pure.

Kafka reads it with Java's StreamTokenizer: words, strings in single or double quotes with the
escapes of C, and a semicolon at the end. Called by `read` and `write`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from twinlog.wire.access import Mechanism

_PACKAGE = "org.apache.kafka.common.security"
_MODULES = {
    Mechanism.PLAIN: f"{_PACKAGE}.plain.PlainLoginModule",
    Mechanism.SCRAM_SHA_256: f"{_PACKAGE}.scram.ScramLoginModule",
    Mechanism.SCRAM_SHA_512: f"{_PACKAGE}.scram.ScramLoginModule",
}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<double>"(?:[^"\\\n\r]|\\.)*")
      | (?P<single>'(?:[^'\\\n\r]|\\.)*')
      | (?P<mark>[=;])
      | (?P<word>[^\s=;"']+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_QUOTED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}


class JaasError(ValueError):
    """The text is not what Kafka would understand."""


@dataclass(frozen=True)
class Login:
    """A login module and what it is told."""

    module: str  # the class, without its package
    options: dict[str, str] = field(repr=False)


def parse(text: str) -> Login:
    """A login from the value of `sasl.jaas.config`."""
    tokens = _tokens(text)
    if not tokens or tokens[-1] != ("mark", ";"):
        raise JaasError("it does not end with a semicolon")
    words, marks = tokens[:2], tokens[2:-1]
    if [kind for kind, _ in words] != ["word", "word"]:
        raise JaasError("it does not begin with a login module and `required`")
    options = {}
    while marks:
        match marks[:3]:
            case [("word", key), ("mark", "="), ("word" | "double" | "single", value)]:
                options[key] = value
            case _:
                raise JaasError('its options are not all of the form name="value"')
        marks = marks[3:]
    return Login(words[0][1].rpartition(".")[2], options)


def render(mechanism: Mechanism, username: str, password: str) -> str:
    """The value of `sasl.jaas.config` for a user."""
    return f"{_MODULES[mechanism]} required username={_quote(username)} password={_quote(password)};"


def module_of(mechanism: Mechanism) -> str:
    """The login module that a mechanism needs, without its package."""
    return _MODULES[mechanism].rpartition(".")[2]


def _tokens(text: str) -> list[tuple[str, str]]:
    text = text.rstrip()
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise JaasError("a quote in it is not closed")
        position = match.end()
        tokens.append((match.lastgroup, _content(match.lastgroup, match[match.lastgroup])))
    return tokens


def _content(kind: str, text: str) -> str:
    return _ESCAPE.sub(_unescape_one, text[1:-1]) if kind in ("double", "single") else text


def _unescape_one(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _NAMED.get(code, code)


def _quote(value: str) -> str:
    return '"' + "".join(_QUOTED.get(character, character) for character in value) + '"'
