"""`perf`, `topic advise`, `events check` and `exporter` on real brokers, beside Kafka's own tools."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cluster.conftest import Bus, Site
from tests.cluster.programs import Console, Printer, bootstrap, run, succeeded
from twinlog.wire import groups, offsets, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.groups import Committed

pytestmark = pytest.mark.cluster

RATE, RECORDS = 500, 1500
SVG = "{http://www.w3.org/2000/svg}"
PAGE_TIMEOUT_S = 30.0
TOTAL = re.compile(
    r"^\d+ records sent, \d+\.\d{6} records/sec \(\d+\.\d\d MB/sec\), \d+\.\d\d ms avg latency, "
    r"\d+\.\d\d ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\.$"
)
LINK_LAG = re.compile(r'twinlog_link_lag_(\w+){bus="shared",partition="(\d+)",topic="(\w+)"} (\S+)')
READ = re.compile(
    r"^[-\d: ]+, [-\d: ]+, \d+\.\d{4}, \d+\.\d{4}, (\d+), \d+\.\d{4}, \d+, -?\d+, -?\d+\.\d{4}, -?\d+\.\d{4}$"
)


@contextmanager
def topic(site: Site, name: str, partitions: int = 1) -> Iterator[str]:
    """A topic of a test's own."""
    with Cluster(site.access()) as cluster:
        topics.create(cluster, topics.NewTopic(name, partitions=partitions, replication=1))
        try:
            yield name
        finally:
            topics.delete(cluster, name)


def test_at_a_target_rate_both_tools_print_the_same_line(
    bus: Bus, printed: Printer, console: Console
) -> None:
    file = printed("app", "a", "java")
    words = [
        "--topic",
        "orders",
        "--num-records",
        str(RECORDS),
        "--record-size",
        "100",
        "--throughput",
        str(RATE),
    ]
    words += ["--bootstrap-server", bootstrap(file), "--command-config", str(file)]
    theirs = succeeded(
        run([*console.java, "org.apache.kafka.tools.ProducerPerformance", *words])
    ).stdout.decode()
    ours = bus.done("perf", "produce", *words)
    for told in (theirs, ours):
        assert TOTAL.match(told.strip().splitlines()[-1]), told


def test_command_lines_that_people_have_run_with_their_own_options(bus: Bus, printed: Printer) -> None:
    file = printed("app", "a", "java")
    where = bootstrap(file)
    big = "--print-metrics --topic big --num-records 20 --throughput 10000 --record-size 1000000"
    properties = f"bootstrap.servers={where} acks=-1 buffer.memory=67108864 batch.size=64000"
    told = bus.done(
        "perf",
        "produce",
        *big.split(),
        "--producer-props",
        *properties.split(),
        "--producer.config",
        str(file),
    )
    # A slow machine has lines of how far it is before the total; the metrics come after it.
    before_metrics = told.partition("Metric Name")[0].splitlines()
    assert any(TOTAL.match(line) for line in before_metrics) and "Metric Name" in told
    small = "--topic orders --num-records 1000 --record-size 4096 --throughput 100000"
    properties = (
        f"acks=1 bootstrap.servers={where} buffer.memory=67108864 compression.type=none batch.size=8196"
    )
    told = bus.done(
        "perf",
        "produce",
        *small.split(),
        "--producer.config",
        str(file),
        "--producer-props",
        *properties.split(),
    )
    assert TOTAL.match(told.splitlines()[-1])


def test_latency_is_measured_in_the_words_of_kafkas_tool(bus: Bus, printed: Printer, site: Site) -> None:
    file = printed("app", "a", "java")
    told = bus.done("perf", "latency", bootstrap(file), "big", "20", "all", "4096", str(file)).splitlines()
    assert re.fullmatch(r"0\t\d+\.\d+", told[0])
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", told[1])
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", told[2])
    options = ["--topic", "perf-new", "--num-records", "5", "--producer-acks", "1", "--record-size", "10"]
    assert 'Topic "perf-new" does not exist.' in bus.done("perf", "latency", *options)
    with Cluster(site.access()) as cluster:
        topics.delete(cluster, "perf-new")


def test_what_was_written_in_transactions_is_read_and_counted(bus: Bus, site: Site) -> None:
    with topic(site, "perf-read", partitions=3) as name:
        words = ["--topic", name, "--num-records", "3000", "--record-size", "100", "--throughput", "-1"]
        written = bus.json("perf", "produce", *words, "--transaction-duration-ms", "200")
        assert (written["records"], written["failed"]) == (3000, 0)
        read = bus.json("perf", "consume", "--topic", name, "--num-records", "3000")
        assert (read["records"], read["bytes"]) == (3000, 300_000)
        line = bus.done("perf", "consume", "--topic", name, "--messages", "2000", "--hide-header").strip()
        found = READ.match(line)
        assert found is not None and found[1] == "2000", line
        short = bus.run("perf", "consume", "--topic", name, "--num-records", "9999", "--timeout", "2000")
        assert short.returncode == 0 and "only 3000 of 9999 records came" in short.stderr


SENT = "--num-records 1 --record-size 1 --throughput -1"
TRIPS = "--num-records 1 --record-size 1 --producer-acks all"


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        ("produce", f"--topic no-such-topic {SENT}", "no-such-topic"),
        ("produce", f"--topic orders {SENT} --user stock", "AUTHORIZATION_FAILED"),
        ("consume", "--topic no-such-topic --num-records 1", "no-such-topic"),
        ("consume", "--topic orders --num-records 1 --user shop", "AUTHORIZATION_FAILED"),
        ("latency", f"--topic orders {TRIPS} --user stock", "AUTHORIZATION_FAILED"),  # it may only read
        ("latency", f"--topic orders {TRIPS} --user shop", "AUTHORIZATION_FAILED"),  # it may only write
        ("latency", f"--topic no-such-topic {TRIPS} --user shop", "AUTHORIZATION_FAILED"),  # nor make one
    ],
)
def test_a_measurement_that_cannot_be_made_says_why_and_measures_nothing(
    bus: Bus, command: str, words: str, said: str
) -> None:
    ended = bus.run("perf", command, *words.split(), "-o", "json")
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stdout + ended.stderr
    error = json.loads(ended.stderr.splitlines()[-1])["error"]
    assert said in error["what"] + error.get("kafka_code", "") and error["hint"], ended.stderr


def test_a_wrong_password_is_named_at_once_with_a_hint(bus: Bus, printed: Printer, tmp_path: Path) -> None:
    password = bus.done("user", "show-password", "app").strip()
    right = printed("app", "a", "java")
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(right.read_text().replace(password, "wrong-" + password[6:]))
    reach = ["--bootstrap-server", bootstrap(right), "--command-config", str(wrong), "--topic", "orders"]
    for command, words in {
        "produce": "--num-records 1 --record-size 1 --throughput -1",
        "consume": "--num-records 1",
        "latency": "--num-records 1 --record-size 1 --producer-acks all",
    }.items():
        ended = bus.run("perf", command, *reach, *words.split())
        assert ended.returncode == 1, f"{command}: {ended.stdout}{ended.stderr}"
        assert "authentication" in ended.stderr.lower() and "the password right?" in ended.stderr
        assert password not in ended.stderr and "records came" not in ended.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("produce", "--record-size 100 --throughput -1"),
        ("latency", "--record-size 100 --producer-acks all"),
    ],
)
def test_latencies_are_drawn_as_svg_with_the_figures_that_are_told(
    bus: Bus, tmp_path: Path, command: str, words: str
) -> None:
    file = tmp_path / "latency.svg"
    told = bus.json(
        *("perf", command, "--topic", "big", "--num-records", "30", *words.split(), "--plot", str(file))
    )
    text = file.read_text()
    assert text.startswith("<svg ")
    drawn = ElementTree.fromstring(text)
    assert drawn.tag == f"{SVG}svg"
    described = drawn.findtext(f"{SVG}desc")
    assert described is not None and described.startswith("30 records: ")
    half = re.search(r"50 % within (\S+) ms", described)
    assert half is not None and float(half[1]) == pytest.approx(told["latency_ms"]["p50"], abs=0.1)
    title = drawn.findtext(f"{SVG}title")
    assert title is not None and title.startswith("big")
    (line,) = [one for one in drawn.iter(f"{SVG}path") if one.get("class") == "line"]
    assert (line.get("d") or "").count("L") > 30


def test_partitions_are_advised_from_a_measurement_that_leaves_nothing(bus: Bus, site: Site) -> None:
    told = bus.json("topic", "advise", "--peak-rate", "1000", "--record-size", "1KB", "--seconds", "1")
    assert told["partitions"] >= 1 and told["measured_write_per_s"] > 0 and told["measured_read_per_s"] > 0
    assert any("1,500" in step for step in told["arithmetic"])
    with Cluster(site.access()) as cluster:
        assert not [one.name for one in topics.describe(cluster) if one.name.startswith("twinlog-advise-")]


def test_events_of_a_topic_are_looked_at(bus: Bus, site: Site, tmp_path: Path) -> None:
    with topic(site, "perf-events") as name:
        events = [{"type": "CreateUser" if number % 2 else "UserCreated", "age": "7"} for number in range(10)]
        file = tmp_path / "events"
        file.write_text("".join(json.dumps(event) + "\n" for event in events))
        bus.done("produce", name, "--input", str(file))
        told = bus.json("events", "check", name, exit_code=3)
        assert told["sample"]["records"] == 10
        assert {row["practice"] for row in told["advice"]} == {"names", "narrow types", "one type per stream"}


def test_the_page_for_prometheus_has_what_brokers_say(bus: Bus, site: Site, tmp_path: Path) -> None:
    with topic(site, "perf-page", partitions=2) as name, Cluster(site.access()) as cluster:
        bus.done(
            "perf",
            "produce",
            "--topic",
            name,
            *["--num-records", "100", "--record-size", "9", "--throughput", "-1"],
        )
        ends = offsets.end_offsets(cluster, [(name, 0), (name, 1)])
        place = max(ends, key=lambda one: ends[one])
        groups.commit(cluster, {"perf-page": {place: Committed(ends[place] - 3)}})
        bus.done("produce", "accounts", "--whole-file", str(bus.file), "--key", "perf-page")
        with exporter(bus) as port:
            page = fetched(port, "/metrics")
            standby = fetched(port, "/metrics/b")
            lacking = link_lag(port)
        active = offsets.end_offsets(cluster, lacking)
    with Cluster(Site(bus, "b").access()) as cluster:
        copied = offsets.end_offsets(cluster, lacking)
    assert f"kafka_brokers {site.broker_count}.0" in page
    assert (
        f'kafka_topic_partition_current_offset{{partition="{place[1]}",topic="{name}"}} {ends[place]}.0'
        in page
    )
    assert (
        f'kafka_consumergroup_lag{{consumergroup="perf-page",partition="{place[1]}",topic="{name}"}} 3.0'
        in page
    )
    seconds = re.search(
        rf'twinlog_consumergroup_lag_seconds{{consumergroup="perf-page".*topic="{name}"}} (\S+)', page
    )
    assert seconds is not None and 0 < float(seconds[1]) < 300
    assert 'twinlog_site_active{bus="shared",site="a"} 1.0' in page
    assert 'twinlog_site_up{bus="shared",site="b"} 1.0' in standby
    assert "twinlog_link" not in standby
    assert {place: active[place] - copied[place] for place in lacking} == lacking


def link_lag(port: int) -> dict[tuple[str, int], int]:
    """Records that the standby lacks, as soon as somebody has looked long enough to say since when."""
    end, pause = time.monotonic() + PAGE_TIMEOUT_S, threading.Event()
    while True:
        page = fetched(port, "/metrics")
        found = re.findall(
            r'twinlog_link_lag_(\w+){bus="shared",partition="(\d+)",topic="(\w+)"} (\S+)', page
        )
        if any(name == "seconds" and float(value) > 0 for name, _, _, value in found):
            assert 'twinlog_link_running{bus="shared"} 0.0' in page  # no mirror was started
            return {(t, int(p)): int(float(value)) for name, p, t, value in found if name == "records"}
        assert time.monotonic() < end, page
        pause.wait(0.5)


@contextmanager
def exporter(bus: Bus) -> Iterator[int]:
    """The exporter, as a user starts it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen(
        bus.command("exporter", "--listen", f"127.0.0.1:{port}"), cwd=bus.directory, env=bus.environment()
    )
    try:
        yield port
    finally:
        process.terminate()
        assert process.wait(PAGE_TIMEOUT_S) == 130


def fetched(port: int, path: str) -> str:
    """A page, labels in the order of their names; waits until somebody listens."""
    end, pause = time.monotonic() + PAGE_TIMEOUT_S, threading.Event()
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PAGE_TIMEOUT_S) as answer:
                return "\n".join(map(_in_order, answer.read().decode().splitlines()))
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            pause.wait(0.1)


def _in_order(line: str) -> str:
    found = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line)
    return f"{found[1]}{{{','.join(sorted(found[2].split(',')))}}} {found[3]}" if found else line
