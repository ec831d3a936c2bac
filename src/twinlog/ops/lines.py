"""Lines for the file: what to write into it so that it says what a command has just done. Pure.

On a site of our own the file is the whole truth: `apply` undoes what it does not say, and a site that is
brought up anew never had it. Commands that change a site therefore print the line that belongs
into the file. Values are written as JSON, which is YAML too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def topic_line(
    name: str, *, partitions: int | None = None, replication: int | None = None, config: Mapping[str, str]
) -> str:
    """A topic as it stands under `topics:`, as far as it is known here."""
    fields: dict[str, Any] = {}
    if partitions is not None:
        fields["partitions"] = partitions
    if replication is not None:
        fields["replication"] = replication
    if config:
        fields["config"] = dict(config)
    return f"{name}: {_flow(fields)}"


def setting_line(key: str, value: str) -> str:
    """A setting of brokers as it stands under `kafka:`."""
    return f"{key}: {_value(value)}"


def user_line(name: str, fields: Mapping[str, Any]) -> str:
    """A user as it stands under `users:`."""
    return f"{name}: {_flow({key: value for key, value in fields.items() if value})}"


def _flow(fields: Mapping[str, Any]) -> str:
    inner = ", ".join(f"{key}: {_value(value)}" for key, value in fields.items())
    return f"{{{inner}}}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return _flow(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    return value if isinstance(value, str) and _is_plain(value) else json.dumps(value)


def _is_plain(text: str) -> bool:
    """True if YAML reads the word as itself."""
    return text.replace("-", "").replace("_", "").replace(".", "").isalpha() and text.lower() not in (
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "null",
        "y",
        "n",
    )
