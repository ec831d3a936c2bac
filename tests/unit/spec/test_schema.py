"""The schema for editors covers the whole file, and the file that `init` writes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from twinlog.spec.document import read
from twinlog.spec.parts import names_of
from twinlog.spec.schema import DESCRIPTIONS, json_schema
from twinlog.spec.template import starter
from twinlog.spec.units import format_bytes, format_duration, format_rate

SCHEMA = json_schema()


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value fits the part of the standard that our schema uses."""
    if "$ref" in schema:
        return fits(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return any(fits(value, option) for option in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        return value in schema.get("enum", [schema.get("const")])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    types: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
    }
    if value is None or not any(isinstance(value, types[kind]) for kind in kinds if kind != "null"):
        return value is None and "null" in kinds
    if isinstance(value, dict):
        return all(_fits_key(name, item, schema) for name, item in value.items())
    if isinstance(value, list):
        return all(fits(item, schema["items"]) for item in value)
    return not isinstance(value, str) or re.search(schema.get("pattern", ""), value) is not None


def _fits_key(name: str, value: Any, schema: dict[str, Any]) -> bool:
    if name in schema.get("properties", {}):
        return fits(value, schema["properties"][name])
    for pattern, inner in schema.get("patternProperties", {}).items():
        if re.search(pattern, name):
            return fits(value, inner)
    other = schema.get("additionalProperties", False)
    return isinstance(other, dict) and fits(value, other)


def test_every_key_is_described_and_nothing_else() -> None:
    for part, described in DESCRIPTIONS.items():
        assert set(described) == set(names_of(part))
    sections = [SCHEMA, *(part for part in SCHEMA["$defs"].values() if "properties" in part)]
    assert len(sections) == len(DESCRIPTIONS)
    assert all(field["description"] for part in sections for field in part["properties"].values())


def test_schema_is_json_of_the_declared_dialect() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert SCHEMA["$schema"].endswith("2020-12/schema")
    assert SCHEMA["required"] == ["bus", "sites"]


def test_starter_fits_the_schema() -> None:
    assert fits(read(starter("orders")).data, SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bus": "Orders"},
        {"topic": {}},
        {"sites": {"a": {"controllers": 2}}},
        {"sites": {"a": {"memory": "1GX"}}},
        {"gate": {"failover_after": 10}},
        {"topics": {"my orders": {}}},
        {"topics": {"orders": {"cleanup": "x"}}},
        {"users": {"shop": {"produce": "orders"}}},
    ],
)
def test_wrong_file_does_not_fit(wrong: dict[str, Any]) -> None:
    assert not fits(wrong, SCHEMA)


@pytest.mark.parametrize(
    "right",
    [
        {"topics": None, "users": None, "gate": None},
        {"sites": {"a": None, "b": {"data": "/d1"}}},
        {"sites": {"a": {"data": ["/d1"], "memory": format_bytes(2**30), "brokers": [{"cpus": 1.5}]}}},
        {"topics": {"orders": {"retention": "forever"}, "x": {"retention": format_duration(0.5)}}},
        {"users": {"shop": {"quota": {"produce": format_rate(5_000_000)}}}},
        {"kafka": {"message.max.bytes": "15MB", "num.io.threads": 8}},
    ],
)
def test_right_file_fits(right: dict[str, Any]) -> None:
    assert fits(right, SCHEMA)
