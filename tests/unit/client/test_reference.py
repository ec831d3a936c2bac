"""The reference of the client library names every call with the parameters that it has."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import pytest

import twinlog
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "client-reference.md").read_text()
# Public because other parts of the library call it.
BETWEEN_PARTS = {
    *("Sent.end", "Sent.told", "Access.librdkafka"),
    *("Producer.send_at_once", "Retries.failed"),
}
MADE_BY_US = {"Sent", "Serializer", "RolesChanged", "SerializationError", "TransactionFailed"}


def written(name: str, called: Any) -> str:
    """A call as it stands on the page."""
    parts: list[str] = []
    for one in inspect.signature(called).parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if one.kind is one.VAR_KEYWORD:
            parts.append(f"**{one.name}")
        elif one.default is one.empty:
            parts.append(one.name)
        else:
            parts.append(f"{one.name}={_default(one.default)}")
    return f"`{name}({', '.join(parts)})`"


def _default(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    return "..." if callable(value) else repr(value)


def calls() -> Iterator[tuple[str, str]]:
    """What a program can call, by its name, and how it stands on the page."""
    for name in twinlog.__all__:
        found = getattr(twinlog, name)
        if inspect.isclass(found) and name != "Access":
            if name not in MADE_BY_US:
                yield name, written(name, found)
            for method, value in vars(found).items():
                whole = f"{name}.{method}"
                if method.startswith("_") or whole in BETWEEN_PARTS:
                    continue
                if isinstance(value, property):
                    yield whole, f"`{method}`"
                elif inspect.isfunction(value) or isinstance(value, classmethod):
                    yield whole, written(method, getattr(found, method))
        elif inspect.isfunction(found):
            yield name, written(name, found)


@pytest.mark.parametrize(("name", "line"), dict(calls()).items())
def test_a_call_stands_in_the_reference_as_it_is(name: str, line: str) -> None:
    assert line in PAGE, f"{name}: {line}"


@pytest.mark.parametrize("name", twinlog.__all__)
def test_every_exported_name_is_in_the_reference(name: str) -> None:
    assert f"`{name}" in PAGE
