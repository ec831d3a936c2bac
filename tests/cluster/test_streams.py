"""Jobs of every kind on a real site: what they give is what plain Python gives over the same records."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from tests.cluster import jobs
from tests.cluster.conftest import Bus, MakeBus
from twinlog.sites.ports import free_ports
from twinlog.streams import avro, protobuf
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.driver import Sender
from twinlog.wire.received import Received

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster

FILE = """\
bus: mill
kafka:
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 3
  group.initial.rebalance.delay.ms: 0
sites:
  a: {brokers: 1}
topics:
  turbines: {partitions: 2, cleanup: compact}
  changes: {partitions: 2}
  lines: {partitions: 2}
  counts: {partitions: 2}
  loud: {partitions: 2}
  readings: {partitions: 2}
  totals: {}
  visits: {}
  placed: {partitions: 2}
  named: {partitions: 2}
  orders: {partitions: 2}
  payments: {partitions: 2}
  paid: {}
  audits: {partitions: 2}
  findings: {partitions: 2}
  notes: {partitions: 2}
  dead: {}
users:
  shop: {produce: [turbines, lines, readings, orders, payments, audits]}
pipeline: {memory: 700MiB, metrics: "127.0.0.1:PAGE", checkpoints: "file://CHECKPOINTS"}
streams:
  turbines:
    kind: table
    read: {t: {topic: turbines, key: int, value: {format: json, fields: {place: string, kw: double}}}}
    write: {topic: changes}
    dead_letters: dead
  words:
    kind: aggregate
    read: {lines: {topic: lines, value: string}}
    sql: |
      SELECT word, count(*) AS n
      FROM (SELECT explode(split(value, ' ')) AS word FROM lines)
      GROUP BY word
    write: {topic: counts, key: {column: word, format: string}, value: {format: long, column: n}}
    dead_letters: dead
  loud:
    read: {lines: {topic: lines, value: string}}
    sql: SELECT upper(value) AS said FROM lines WHERE value LIKE 'a%'
    write: {topic: loud, value: {format: string, column: said}}
    guarantee: at-least-once
    dead_letters: dead
  totals:
    kind: aggregate
    read: &readings
      r:
        topic: readings
        key: int
        value: {format: json, fields: {at: timestamp, kw: double}}
        time: at
        watermark: 20m
    window: {size: 1m}
    sql: SELECT period.start AS begin, key AS turbine, sum(kw) AS kw FROM r GROUP BY period, key
    write: {topic: totals, key: {column: turbine, format: int}}
    dead_letters: dead
  visits:
    kind: aggregate
    read: *readings
    window: {session: 10s}
    sql: SELECT key AS turbine, period.start AS begin, count(*) AS n FROM r GROUP BY period, key
    write: {topic: visits}
    dead_letters: dead
  placed:
    kind: join
    read: {<<: *readings, t: {table: turbines}}
    sql: SELECT r.key AS turbine, r.at, t.place FROM r JOIN t ON r.key = t.key
    write: {topic: placed}
    dead_letters: dead
  named:
    kind: join
    read: {<<: *readings, t: {table: turbines, everywhere: true}}
    sql: SELECT r.key AS turbine, r.at, t.place FROM r LEFT JOIN t ON r.key = t.key
    write: {topic: named}
    dead_letters: dead
  findings:
    read: {a: {topic: audits, value: {format: avro, record: AVRO}}}
    sql: SELECT id, concat_ws('|', place, tags) AS said, kw * 2 AS kw, at FROM a WHERE id % 2 = 0
    write: {topic: findings, value: {format: protobuf, message: 'PROTOBUF'}}
    dead_letters: dead
  notes:
    read: {a: {topic: audits, value: {format: avro, record: AVRO}}}
    function: {call: "noting:notes", gives: {id: long, word: string}}
    write: {topic: notes, key: {column: word, format: string}}
    dead_letters: dead
  days:
    kind: lake
    read: *readings
    dead_letters: dead
  paid:
    kind: join
    read:
      o: {topic: orders, key: long, value: {format: json, fields: {at: timestamp}}, time: at, watermark: 1m}
      p: {topic: payments, key: long, value: {format: json, fields: {at: timestamp}}, time: at, watermark: 1m}
    sql: |
      SELECT o.key AS id, p.at AS paid
      FROM o JOIN p ON o.key = p.key AND p.at BETWEEN o.at AND o.at + INTERVAL 5 MINUTES
    write: {topic: paid, key: {column: id, format: long}}
    dead_letters: dead
"""
AVRO = """\
{"type": "record", "name": "Audit", "fields": [
  {"name": "id", "type": "long"}, {"name": "place", "type": ["null", "string"]},
  {"name": "kw", "type": "double"},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "tags", "type": {"type": "array", "items": "string"}}]}"""
PROTOBUF = "message Finding {int64 id = 1; string said = 2; double kw = 3; google.protobuf.Timestamp at = 4;}"
FILE = FILE.replace("AVRO", " ".join(AVRO.split())).replace("PROTOBUF", PROTOBUF)
NOTING = """\
def notes(row):
    if row["id"] == 13:
        raise ValueError("unlucky")
    for word in (row["place"] or "").split():
        yield {"id": row["id"], "word": word}
"""
AUDITS, BAD_AUDITS, UNLUCKY = 60, 3, 13
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SETTLED_S = 240.0  # Spark starts, and ten queries run their first batches, on a machine that does more
LINES = [f"{'ab'[n % 2]} w{n % 7} w{n % 3}" for n in range(3000)]
READINGS = [(n % 4, n) for n in range(600) if not 100 < n < 140]  # turbine, second: a gap for sessions
OUT_OF_ORDER = (0, 575)
LAST = (9, 7200)  # two hours on: it ends all windows before it
TOO_LATE = (0, 5)
BAD_EVERY = 100


def second(number: int) -> str:
    return (BEGIN + timedelta(seconds=number)).isoformat().replace("+00:00", ".000Z")


def reading(turbine: int, number: int) -> tuple[bytes, bytes]:
    return struct.pack(">i", turbine), json.dumps({"at": second(number), "kw": number}).encode()


def audit(number: int) -> dict[str, Any]:
    """One audit, as its Avro schema has it."""
    place = None if number % 5 == 0 else f"hill {number % 3}"
    return {
        "id": number,
        "place": place,
        "kw": number / 4,
        "at": BEGIN + timedelta(seconds=number),
        "tags": ["new"] * (number % 2),
    }


@dataclass
class Mill:
    """The bus with its jobs running, and hands to write and read."""

    bus: Bus
    sender: Sender

    def put(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        self.sender.queue(topic, value, key, (), None, None, None)

    def flush(self) -> None:
        assert self.sender.flush(60.0) == 0

    def read(self, topic: str, *more: str) -> list[dict[str, Any]]:
        return jobs.read(self.bus, topic, *more)

    def values(self, topic: str) -> list[dict[str, Any]]:
        return jobs.values(self.bus, topic)

    def told(self, query: str) -> dict[str, Any]:
        return jobs.told(self.bus, query)

    def is_read(self, query: str, records: int) -> bool:
        told = self.told(query)
        return bool(told["records"] >= records and told["behind_records"] == 0)

    def until(self, what: str, wanted: Callable[[], bool]) -> None:
        jobs.until(self.bus, what, wanted, SETTLED_S)


@pytest.fixture(scope="module")
def mill(make_bus: MakeBus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mill]:
    (page,) = free_ports("127.0.0.1", 1, seed="mill", avoid=frozenset())
    elsewhere = tmp_path_factory.mktemp("checkpoints")
    bus = make_bus(FILE.replace("PAGE", str(page)).replace("CHECKPOINTS", str(elsewhere)))
    sender = Sender(bus.home().user_access("shop", "a"), timeout_s=60.0, tuning=Tuning())
    made = Mill(bus, sender)
    for turbine in range(8):
        made.put("turbines", struct.pack(">i", turbine), b'{"place": "old", "kw": 1}')
    for turbine in range(6):
        value = json.dumps({"place": f"hill {turbine}", "kw": turbine}).encode()
        made.put("turbines", struct.pack(">i", turbine), value)
    made.put("turbines", struct.pack(">i", 5), None)
    for number, line in enumerate(LINES):
        made.put("lines", str(number).encode(), line.encode())
        if number % BAD_EVERY == 0:
            made.put("lines", str(number).encode(), b"\xff" + line.encode())
    for order in range(50):
        made.put("orders", struct.pack(">q", order), json.dumps({"at": second(order)}).encode())
        paid = json.dumps({"at": second(order + 60 * (order % 8))}).encode()  # in time up to five minutes
        made.put("payments", struct.pack(">q", order), paid)
    for number in range(AUDITS):
        made.put("audits", b"k", avro.encode(AVRO, audit(number)))
    for number in range(BAD_AUDITS):
        made.put("audits", None, b"\xff" * number)
    made.flush()
    (bus.directory / "noting.py").write_text(NOTING)
    bus.done("stream", "up")
    table = ("table", "get", "turbines", "4")
    made.until("the table is kept", lambda: bus.run(*table).returncode == 0)
    # Behind the table, so that joins find it.
    for turbine, number in READINGS:
        made.put("readings", *reading(turbine, number))
    made.flush()
    try:
        yield made
    finally:
        sender.close()


def test_table_has_the_latest_value_of_each_key(mill: Mill) -> None:
    expected = {str(n): {"place": f"hill {n}" if n < 6 else "old", "kw": n if n < 6 else 1} for n in range(8)}
    del expected["5"]
    mill.until("all turbines", lambda: len(mill.bus.json("table", "scan", "turbines")) == len(expected))
    found = mill.bus.json("table", "scan", "turbines")
    assert {row["key"]: row["value"] for row in found} == expected
    assert mill.bus.json("table", "get", "turbines", "4")["value"]["place"] == "hill 4"
    assert mill.bus.run("table", "get", "turbines", "5").returncode == 3


def test_table_is_a_topic_of_changes_again(mill: Mill) -> None:
    mill.until("all changes", lambda: len(mill.read("changes")) >= 15)
    before = sorted((one["key"], one["value"] or "") for one in mill.read("turbines"))
    assert sorted((one["key"], one["value"] or "") for one in mill.read("changes")) == before


def test_words_are_counted_as_python_counts_them(mill: Mill) -> None:
    expected = Counter(word for line in LINES for word in line.split(" "))

    def counted() -> dict[str, int]:
        return {one["key"]: int(one["value"]) for one in mill.read("counts", "--value-type", "long")}

    mill.until("all words", lambda: sum(counted().values()) == expected.total())
    assert counted() == expected


def test_record_by_record_in_real_time_says_where_each_came_from(mill: Mill) -> None:
    expected = [line.upper() for line in LINES if line.startswith("a")]
    mill.until("all lines", lambda: len(mill.read("loud")) >= len(expected))
    found = mill.read("loud")
    assert sorted(one["value"] for one in found) == sorted(expected)
    assert all(header in str(found[0]["headers"]) for header in ("twinlog.partition", "twinlog.offset"))


def test_each_bad_record_is_a_dead_letter_with_place_and_reason(mill: Mill) -> None:
    bad = [one for one in jobs.received(mill.bus, "a", "lines", 2) if (one.value or b"").startswith(b"\xff")]
    assert len(bad) == len(LINES) // BAD_EVERY

    def letters() -> list[Received]:
        every = jobs.received(mill.bus, "a", "dead", 1)
        return [one for one in every if ("twinlog.job", b"words") in one.headers]

    mill.until("all dead letters", lambda: len(letters()) >= len(bad))
    expected = Counter(
        (
            one.key,
            one.value,
            ("twinlog.topic", b"lines"),
            ("twinlog.partition", str(one.partition).encode()),
            ("twinlog.offset", str(one.offset).encode()),
            ("twinlog.job", b"words"),
            ("twinlog.reason", b"the value is not UTF-8"),
        )
        for one in bad
    )
    assert Counter((one.key, one.value, *one.headers) for one in letters()) == expected
    assert mill.told("words")["failures"] == 0


def test_windows_and_sessions_are_final_and_leave_out_what_is_too_late(mill: Mill) -> None:
    mill.until("all readings", lambda: all(mill.is_read(one, len(READINGS)) for one in ("totals", "visits")))
    mill.put("readings", *reading(*OUT_OF_ORDER))
    mill.put("readings", *reading(*LAST))
    mill.flush()
    rows = [*READINGS, OUT_OF_ORDER]
    sums: Counter[tuple[str, int]] = Counter()
    for turbine, number in rows:
        sums[second(number // 60 * 60), turbine] += number
    sessions = {(turbine, second(first)) for turbine in range(4) for first in (turbine, 140 + turbine)}
    mill.until("all totals", lambda: len(mill.values("totals")) >= len(sums))
    mill.until("all sessions", lambda: len(mill.values("visits")) >= len(sessions))
    mill.put("readings", *reading(*TOO_LATE))
    mill.flush()
    mill.until("it was too late", lambda: all(mill.told(one)["late_records"] for one in ("totals", "visits")))
    found = mill.values("totals")
    assert {(one["begin"], one["turbine"]): one["kw"] for one in found} == sums
    assert len(found) == len(sums)  # each once
    assert {(one["turbine"], one["begin"]) for one in mill.values("visits")} == sessions
    assert sum(one["n"] for one in mill.values("visits")) == len(rows)


@pytest.mark.parametrize("job", ["placed", "named"])
def test_stream_is_joined_with_a_table(mill: Mill, job: str) -> None:
    expected = Counter((turbine, second(number), f"hill {turbine}") for turbine, number in READINGS)

    def placed() -> Counter[tuple[int, str, str]]:
        found = Counter((one["turbine"], one["at"], one["place"]) for one in mill.values(job))
        return Counter({row: found[row] for row in found if row[:2] in ours})

    ours = {row[:2] for row in expected}  # another test writes readings too
    mill.until(f"all {job}", lambda: placed().total() >= expected.total())
    assert placed() == expected


def test_lake_has_every_record_once_with_its_place(mill: Mill, spark: SparkSession) -> None:
    def rows() -> list[Any]:
        found = jobs.lake(spark, mill.bus.directory / ".twinlog/streams/days/lake")
        return found.collect() if found is not None else []

    mill.until("all rows", lambda: len(rows()) >= len(READINGS))
    found = [row for row in rows() if row["at"] < BEGIN.replace(tzinfo=None) + timedelta(seconds=600)]
    ours = {(turbine, float(number)) for turbine, number in READINGS}
    assert {(row["key"], row["kw"]) for row in found} >= ours
    places = Counter((row["_partition"], row["_offset"]) for row in found)
    assert set(places.values()) == {1}
    assert {str(row["_date"]) for row in found} == {"2026-01-01"}


def test_avro_is_read_and_protobuf_is_written(mill: Mill) -> None:
    expected = Counter(
        (one["id"], "|".join(filter(None, (one["place"], "[]"))), one["kw"] * 2, one["at"])
        for one in map(audit, range(0, AUDITS, 2))
    )
    mill.until("all findings", lambda: len(mill.read("findings")) >= expected.total())
    raw = [bytes.fromhex(one["value"]) for one in mill.read("findings", "--value-type", "hex")]
    assert Counter(tuple(protobuf.decode(PROTOBUF, one)) for one in raw) == expected
    ours = ("dead", "--header", "twinlog.job=findings")
    mill.until("all dead letters", lambda: len(mill.read(*ours)) >= BAD_AUDITS)
    told = [json.dumps(one["headers"]) for one in mill.read(*ours)]
    assert len(told) == BAD_AUDITS
    assert all("no such Avro record" in one for one in told)


def test_function_gives_rows_and_what_it_fails_for_is_a_dead_letter(mill: Mill) -> None:
    expected = Counter(
        (number, word)
        for number in range(AUDITS)
        if number != UNLUCKY
        for word in (audit(number)["place"] or "").split()
    )
    mill.until("all notes", lambda: len(mill.values("notes")) >= expected.total())
    assert Counter((one["id"], one["word"]) for one in mill.values("notes")) == expected
    ours = ("dead", "--header", "twinlog.job=notes")
    mill.until("all dead letters", lambda: len(mill.read(*ours)) > BAD_AUDITS)
    told = [json.dumps(one["headers"]) for one in mill.read(*ours)]
    assert len(told) == BAD_AUDITS + 1
    assert sum("noting:notes failed: ValueError: unlucky" in one for one in told) == 1


def test_page_for_prometheus_says_how_far_jobs_are(mill: Mill) -> None:
    page = f"http://{mill.bus.home().bus.pipeline.metrics}/metrics"

    def told() -> dict[str, float]:
        with urlopen(page, timeout=10.0) as answer:
            lines = answer.read().decode().splitlines()
        return {
            name: float(value) for name, _, value in (line.rpartition(" ") for line in lines) if "{" in name
        }

    own = '{bus="mill",job="words",query="words"}'
    read = len(LINES) + len(LINES) // BAD_EVERY
    mill.until("all lines", lambda: told().get(f"twinlog_stream_records_total{own}", 0) >= read)
    mill.until("no lag", lambda: told().get(f"twinlog_stream_lag_seconds{own}") == 0)
    assert told()[f"twinlog_stream_running{own}"] == 1


def test_checkpoints_are_where_the_file_says(mill: Mill) -> None:
    kept = Path(str(mill.bus.home().bus.pipeline.checkpoints).removeprefix("file://")) / "mill/words"
    mill.until("a batch is done", lambda: any(kept.glob("checkpoint/commits/[0-9]*")))
    assert (kept / "run").exists()
    assert not (mill.bus.directory / ".twinlog/streams/words/checkpoint").exists()


def test_question_is_answered_over_a_topic_and_a_table(mill: Mill) -> None:
    sql = "SELECT t.place, count(*) AS n FROM readings r JOIN turbines t ON r.key = t.key GROUP BY t.place"
    found = {row["place"]: row["n"] for row in mill.bus.json("sql", f"{sql} HAVING t.place = 'hill 3'")}
    assert found == {"hill 3": sum(turbine == 3 for turbine, _ in READINGS)}


def test_streams_are_joined_within_their_time(mill: Mill) -> None:
    expected = {order: second(order + 60 * (order % 8)) for order in range(50) if order % 8 <= 5}
    mill.until("all payments", lambda: len(mill.values("paid")) >= len(expected))
    found = mill.values("paid")
    assert {one["id"]: one["paid"] for one in found} == expected
    assert len(found) == len(expected)


def test_jobs_that_are_stopped_go_on_where_they_were(mill: Mill) -> None:
    before = len(mill.read("counts"))
    mill.bus.done("stream", "down")
    assert mill.bus.run("stream", "status").returncode == 3
    mill.put("lines", None, b"w0 once")
    mill.flush()
    mill.bus.done("stream", "up")
    expected = {"once": 1, "w0": sum(line.split(" ").count("w0") for line in LINES) + 1}

    def counted() -> dict[str, int]:
        return {one["key"]: int(one["value"]) for one in mill.read("counts", "--value-type", "long")}

    mill.until("the new words", lambda: counted().items() >= expected.items())
    assert len(mill.read("counts")) == before + len(expected)
