"""A bus from a memo is the bus that the loader made, and there is none once anything has changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from twinlog import memo
from twinlog.errors import Problem
from twinlog.spec import recalled
from twinlog.spec.file import Loaded
from twinlog.spec.finding import Finding
from twinlog.spec.load import parse
from twinlog.spec.parts import Part
from twinlog.spec.template import starter
from twinlog.spec.units import Duration

FULL = b"""\
bus: orders
sites:
  a:
    brokers: [{port: 9200, cpus: 1.5, memory: 1GiB}, {data: [/d1, /d2]}]
    kafka: {num.io.threads: 4}
    controllers: 3
  b: {bootstrap: ["kafka1:9093"], client: b.properties}
active: b
topics:
  orders: {partitions: 6, cleanup: "compact,delete", retention: forever, config: {segment.ms: 1h}}
  paid: {max_message: 500kB}
  bad: {}
users:
  shop: {produce: [orders], auth: mtls, quota: {produce: 5MB/s, request: 12.5}}
  stock: {consume: [orders, "pai*"], groups: ["stock-*"], password: {env: STOCK}}
gate: {failover_after: 2500ms}
streams:
  sums:
    kind: aggregate
    read: {o: {topic: orders, value: {format: json, fields: {id: long}}, watermark: 10m}}
    sql: select id, count(*) as many from o group by period, id
    window: {size: 1m}
    dead_letters: bad
    write: {topic: paid, key: {format: long, column: id}}
"""


def keep(directory: Path, raw: bytes, env: Mapping[str, str]) -> Loaded:
    loaded = parse(raw, directory / "twinlog.yaml", env)
    recalled.keep(loaded, raw, env, directory)
    return loaded


def recall(directory: Path, raw: bytes, env: Mapping[str, str]) -> Loaded | None:
    return recalled.recall(directory / "twinlog.yaml", raw, env, directory, _locate)


def _locate(finding: Finding) -> Problem:
    raise AssertionError("nobody asked")


def types(value: Any) -> Any:
    """A value with the types of all that is in it, and what was given."""
    if isinstance(value, Part):
        return type(value), {name: types(item) for name, item in vars(value).items()}
    if isinstance(value, dict):
        return {name: types(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(types, value))
    return type(value), value


@pytest.mark.parametrize("raw", [FULL, starter("orders").encode()])
def test_recalled_bus_is_the_loaded_one_with_all_types(tmp_path: Path, raw: bytes) -> None:
    env = {"TWINLOG_GATE_ADDRESS": "127.0.0.1:9192", "PATH": "/bin"}
    loaded = keep(tmp_path, raw, env)
    known = recall(tmp_path, raw, env)
    assert known == loaded
    assert known is not None
    assert types(known.bus) == types(loaded.bus)
    assert list(known.bus.topics) == list(loaded.bus.topics)


def test_warnings_are_recalled_too(tmp_path: Path) -> None:
    raw = b"bus: orders\nsites: {a: {brokers: 1}}\ntopics: {orders: {replication: 1}}\n"
    loaded = keep(tmp_path, raw, {})
    known = recall(tmp_path, raw, {})
    assert loaded.warnings
    assert known is not None and known.warnings == loaded.warnings


def test_another_file_or_environment_has_no_memo(tmp_path: Path) -> None:
    env = {"TWINLOG_GATE_ADDRESS": "127.0.0.1:9192", "HOME": "/root"}
    keep(tmp_path, FULL, env)
    assert recall(tmp_path, FULL + b"\n", env) is None
    assert recall(tmp_path, FULL, {}) is None
    assert recall(tmp_path, FULL, {**env, "TWINLOG_GATE_ADDRESS": "127.0.0.1:9193"}) is None
    assert recall(tmp_path, FULL, {**env, "KAFKA_MESSAGE_MAX_BYTES": "2MB"}) is None
    assert recall(tmp_path, FULL, {**env, "HOME": "/home/other"}) is not None


@pytest.mark.parametrize(
    ("name", "changed"), [("__version__", "0.0.0"), ("code_in", lambda *places: "other code")]
)
def test_other_code_has_no_memo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, changed: Any
) -> None:
    keep(tmp_path, FULL, {})
    monkeypatch.setattr(recalled if name == "__version__" else memo, name, changed)
    assert recall(tmp_path, FULL, {}) is None


def test_every_kind_of_value_comes_back() -> None:
    values = {"a": (1, 1.5, True, None, "x", Duration(2.5)), "": {"": ()}, "b": float("inf")}
    assert types(recalled.unpacked(recalled.packed(values))) == types(values)
