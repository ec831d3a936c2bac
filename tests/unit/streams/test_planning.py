"""The mode of a job follows from what it does and promises, and its description names all its parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.spec.load import parse
from twinlog.spec.model import Bus, Pipeline
from twinlog.streams import describing, planning
from twinlog.streams.planning import Mode

FILE = b"""\
bus: mill
sites: {a: {brokers: 1}}
topics: {lines: {partitions: 3}, counts: {}, bad: {}, turbines: {}}
streams:
  known:
    kind: table
    read: {t: {topic: turbines, key: int}}
    dead_letters: bad
  loud:
    read: {lines: {topic: lines}}
    sql: SELECT upper(value) AS said FROM lines WHERE value <> 'x'
    write: {topic: counts}
    guarantee: at-least-once
  words:
    kind: aggregate
    read: {lines: {topic: lines, watermark: 1m}}
    window: {size: 10m, every: 1m}
    sql: SELECT period.start AS begin, value, count(*) AS n FROM lines GROUP BY period, value
    write: {topic: counts}
    guarantee: at-least-once
  cleaned:
    read: {lines: {topic: lines}}
    function: {call: "park:clean", gives: {said: string}}
    write: {topic: counts}
    guarantee: at-least-once
    dead_letters: bad
  filed:
    read: {lines: {topic: lines}}
    sql: SELECT 1 AS id FROM lines
    write: {topic: counts, value: {format: protobuf, message: 'message A { int64 id = 1; }'}}
    guarantee: at-least-once
  named:
    kind: join
    read: {lines: {topic: lines}, t: {table: known, everywhere: true}}
    sql: SELECT lines.value, t.value AS name FROM lines JOIN t ON lines.key = t.key
    write: {topic: counts}
"""


@pytest.fixture(scope="module")
def bus() -> Bus:
    return parse(FILE, Path("twinlog.yaml"), {}).bus


@pytest.mark.parametrize(
    ("job", "mode", "why", "slots"),
    [
        ("known", Mode.MICRO_BATCH, "exactly once", 1),
        ("loud", Mode.REAL_TIME, "nothing waits for a batch", 3),
        ("words", Mode.MICRO_BATCH, "real-time mode keeps no state, and an aggregate does", 3),
        ("named", Mode.MICRO_BATCH, "exactly once", 3),
        ("cleaned", Mode.MICRO_BATCH, "real-time mode runs no Python, and the function does", 3),
        ("filed", Mode.MICRO_BATCH, "real-time mode runs no Python, and protobuf does", 3),
    ],
)
def test_plan_says_mode_and_reason(bus: Bus, job: str, mode: Mode, why: str, slots: int) -> None:
    plan = planning.plan(bus, job)
    assert (plan.mode, plan.slots) == (mode, slots)
    assert why in plan.why


def test_description_names_sources_steps_state_and_sinks(bus: Bus) -> None:
    text = describing.text(planning.plan(bus, "words"))
    assert text.splitlines() == [
        "words: aggregate, micro-batch, at-least-once",
        "  because real-time mode keeps no state, and an aggregate does",
        "  reads",
        "    topic lines as lines: key bytes, value bytes, by _time, at most 1m late",
        "  does",
        "    period: windows of 10m, one every 1m",
        "    group by period, value",
        "    select period.start AS begin, value, COUNT(*) AS n",
        "    write json",
        "  keeps",
        "    RocksDB, 2 parts: one row for each group until the watermark has passed its window",
        "  writes",
        "    topic counts, rows when they are final",
    ]


def test_graph_joins_every_source_to_every_sink(bus: Bus) -> None:
    graph = describing.dot(planning.plan(bus, "named"))
    assert graph.startswith('digraph "named" {')
    assert '"table known as t, whole at every task"' in graph
    assert graph.count("->") == 5  # from two sources, between three steps, to one sink


@pytest.mark.parametrize(
    ("master", "cores"), [("local", 8), ("local[*]", 8), ("local[3]", 3), ("local[3,4]", 3), ("yarn", None)]
)
def test_cores_of_a_master_are_known_if_it_is_here(master: str, cores: int | None) -> None:
    assert planning.cores_of(Pipeline(master=master), 8) == cores


@pytest.mark.parametrize(
    ("memory", "partitions", "least", "fetched"),
    [
        (1 << 30, 4, 1 << 20, 4 << 20),  # as much as is of use
        (512 << 20, 8, 1 << 20, 2 << 20),  # what all partitions together may take
        (512 << 20, 100, 1 << 20, 1 << 20),  # but a biggest batch in any case
        (512 << 20, 1, 16 << 20, 16 << 20),
    ],
)
def test_fetch_is_as_big_as_memory_allows(memory: int, partitions: int, least: int, fetched: int) -> None:
    assert planning.fetch_bytes(memory, partitions, least) == fetched
