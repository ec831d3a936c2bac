"""`twinlog plan` and `twinlog stream` on files with jobs, without Kafka and without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Twinlog

FILE = """\
bus: mill
sites: {a: {brokers: 1}}
topics: {lines: {}, counts: {}, bad: {}}
streams:
  words:
    kind: aggregate
    read: {lines: {topic: lines, value: string}}
    sql: |
      SELECT word, count(*) AS n
      FROM (SELECT explode(split(value, ' ')) AS word FROM lines)
      GROUP BY word
    write: {topic: counts, key: {column: word, format: string}}
    dead_letters: bad
"""

ENDLESS = """\
  minutes:
    kind: aggregate
    read: {r: {topic: lines, key: string}}
    window: {size: 1m}
    sql: SELECT period.start AS begin, key, count(*) AS n FROM r GROUP BY period, key
    write: {topic: counts}
    dead_letters: bad
  pairs:
    kind: join
    read:
      a: {topic: lines, key: string, watermark: 1m}
      b: {topic: bad, key: string, watermark: 1m}
    sql: SELECT a.key, b.value AS other FROM a JOIN b ON a.key = b.key
    write: {topic: counts}
    dead_letters: bad
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "twinlog.yaml"
    path.write_text(FILE)
    return path


def test_wrong_job_is_refused_by_plan_with_its_place(twinlog: Twinlog, file: Path) -> None:
    file.write_text(FILE.replace("split(value", "split(valeu"))
    ended = twinlog("plan", "-f", str(file))
    assert ended.returncode == 2
    assert f"{file}:10:34: error: no source has a column valeu" in ended.stderr
    assert "hint: did you mean value?" in ended.stderr


def test_jobs_without_an_end_are_refused_by_plan_all_at_once(twinlog: Twinlog, file: Path) -> None:
    file.write_text(FILE + ENDLESS)
    ended = twinlog("plan", "-f", str(file))
    assert ended.returncode == 2
    assert f"{file}:16:12: error: r has no watermark" in ended.stderr
    assert f"{file}:26:48: error: nothing says how long a and b wait for each other" in ended.stderr


def test_job_is_described_as_text_graph_and_json(twinlog: Twinlog, file: Path) -> None:
    assert "keeps\n    RocksDB, 2 parts" in twinlog("stream", "describe", "words", "-f", str(file)).stdout
    assert twinlog("stream", "describe", "words", "--dot", "-f", str(file)).stdout.startswith("digraph")
    told = json.loads(twinlog("stream", "describe", "words", "-f", str(file), "-o", "json").stdout)
    assert (told["mode"], told["guarantee"]) == ("micro-batch", "exactly-once")


def test_job_that_is_not_in_the_file_is_told_with_those_that_are(twinlog: Twinlog, file: Path) -> None:
    ended = twinlog("stream", "describe", "wrds", "-f", str(file))
    assert ended.returncode == 2
    assert "its jobs are words" in ended.stderr


def test_table_that_is_not_in_the_file_is_told(twinlog: Twinlog, file: Path) -> None:
    ended = twinlog("table", "get", "words", "x", "-f", str(file))
    assert ended.returncode == 2
    assert "the file has no table 'words'" in ended.stderr


def test_jobs_that_do_not_run_are_a_finding_of_status(twinlog: Twinlog, file: Path) -> None:
    ended = twinlog("stream", "status", "-f", str(file))
    assert ended.returncode == 3
    assert "hint: twinlog stream up" in ended.stderr
