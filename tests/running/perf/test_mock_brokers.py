"""Measurements against the brokers that librdkafka brings along: what is counted, and what is late.

Real brokers are measured in tests/cluster; here the numbers can be known beforehand.
"""

from __future__ import annotations

import json
import socket

import pytest

from tests.conftest import Twinlog
from twinlog.cli import app
from twinlog.errors import KafkaError, UsageError
from twinlog.perf import clients, consuming, payloads, producing, tripping
from twinlog.perf.consuming import ReadOptions
from twinlog.perf.figures import Interval
from twinlog.perf.producing import WriteOptions
from twinlog.wire.driver import Settings

MOCK: Settings = {"bootstrap.servers": "mock", "test.mock.num.brokers": 1}


def test_every_record_is_counted_once_with_its_size() -> None:
    options = WriteOptions("t", 12_345, payloads.pieces(payloads.random_values(100)), 100)
    written = producing.write(clients.producer(MOCK, {}), options)
    assert (written.total.records, written.total.size_bytes, written.failed) == (12_345, 1_234_500, 0)
    assert written.histogram.count == 12_345


def test_sizes_that_differ_are_added_up() -> None:
    options = WriteOptions("t", 1100, payloads.counting_pieces())
    written = producing.write(clients.producer(MOCK, {}), options)
    assert written.total.size_bytes == sum(len(str(number)) for number in range(1100))


def test_a_queue_that_is_often_full_loses_nothing() -> None:
    settings = clients.producer(MOCK, {"buffer.memory": "65536"})
    options = WriteOptions("t", 5000, payloads.pieces(payloads.random_values(1000)), 1000)
    assert producing.write(settings, options).total.records == 5000


def test_a_target_rate_is_kept_and_told_in_intervals() -> None:
    told: list[Interval] = []
    options = WriteOptions(
        "t", 1000, payloads.pieces(payloads.random_values(10)), 10, rate_per_s=1000.0, interval_s=0.3
    )
    written = producing.write(clients.producer(MOCK, {}), options, told.append)
    assert written.total.seconds >= 0.99
    assert written.total.records == 1000 and tuple(told) == written.windows and len(told) >= 2


def test_records_that_were_held_up_count_from_when_they_were_due() -> None:
    # Brokers that answer after 200 ms, one at a time, cannot keep this rate: the last records wait longest.
    slow = clients.producer(
        {**MOCK, "test.mock.broker.rtt": 200},
        {"buffer.memory": "2048", "max.in.flight.requests.per.connection": "1"},
    )
    options = WriteOptions("t", 40, payloads.pieces(payloads.random_values(500)), 500, rate_per_s=100.0)
    written = producing.write(slow, options)
    # All were due within 0.4 s; whoever counts from the moment of sending sees 200 to 400 ms for each.
    assert written.histogram.max_s >= written.total.seconds - 0.4 - 0.1
    assert written.total.seconds > 1.0


def test_it_ends_in_time_where_time_is_the_limit() -> None:
    options = WriteOptions(
        "t", 10**9, payloads.pieces(payloads.random_values(100)), 100, rate_per_s=1000.0, longest_s=0.5
    )
    written = producing.write(clients.producer(MOCK, {}), options)
    assert 400 <= written.total.records <= 510


def test_a_cluster_that_is_not_there_is_an_error_and_no_endless_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producing, "CHECK_S", 0.5)
    options = WriteOptions("t", 1, payloads.pieces([b"x"]), 1)
    with pytest.raises(KafkaError) as raised:
        producing.write(clients.producer({"bootstrap.servers": "127.0.0.1:1"}, {}), options)
    assert raised.value.hint


MEASUREMENTS = {
    "produce": "--num-records 5 --record-size 5 --throughput -1",
    "consume": "--num-records 5 --timeout 500",
    "latency": "--num-records 5 --record-size 5 --producer-acks all",
}


@pytest.mark.parametrize("command", MEASUREMENTS)
def test_a_port_where_nobody_listens_is_named_with_a_hint_and_nothing_is_measured(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module, name in ((producing, "CHECK_S"), (consuming, "CHECK_S"), (tripping, "ASK_S")):
        monkeypatch.setattr(module, name, 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    words = f"perf {command} --bootstrap-server 127.0.0.1:{port} --topic t {MEASUREMENTS[command]} -o json"
    code = app.run(words.split())
    told = capsys.readouterr()
    assert (code, told.out) == (1, "")
    error = json.loads(told.err.splitlines()[-1])["error"]
    assert error["where"] == f"127.0.0.1:{port}" and "is the site up?" in error["hint"]
    assert "Connection refused" in error["what"] or "nothing listens" in error["what"]


@pytest.mark.parametrize("command", MEASUREMENTS)
def test_a_server_that_accepts_and_never_answers_is_given_up_with_a_hint(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module, name in ((producing, "CHECK_S"), (consuming, "CHECK_S"), (tripping, "ASK_S")):
        monkeypatch.setattr(module, name, 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:  # the system takes connections for it
        port = server.getsockname()[1]
        words = f"perf {command} --bootstrap-server 127.0.0.1:{port} --topic t {MEASUREMENTS[command]}"
        code = app.run([*words.split(), "-o", "json"])
    told = capsys.readouterr()
    assert (code, told.out) == (1, "")
    error = json.loads(told.err.splitlines()[-1])["error"]
    assert error["where"] == f"127.0.0.1:{port}" and "twinlog status" in error["hint"]
    assert "no answer" in error["what"]


def test_a_topic_that_has_too_few_records_is_a_short_measurement_and_no_error() -> None:
    made = {**MOCK, "allow.auto.create.topics": True}
    settings = clients.consumer(
        made, {}, group="g", from_latest=False, fetch_bytes=1 << 20, socket_bytes=1 << 16
    )
    read = consuming.read(settings, ReadOptions(("t",), 10, silence_s=0.5))
    assert (read.total.records, read.wanted) == (0, 10)


def test_settings_that_librdkafka_does_not_know_are_named() -> None:
    options = WriteOptions("t", 1, payloads.pieces([b"x"]), 1)
    with pytest.raises(UsageError, match=r"linger\.msec"):
        producing.write(clients.producer(MOCK, {"linger.msec": "5"}), options)


def test_command_lines_of_kafkas_tool_run_as_they_stand(twinlog: Twinlog) -> None:
    properties = (
        "bootstrap.servers=k:443 test.mock.num.brokers=1 acks=1 buffer.memory=67108864 compression.type=none"
    )
    what = "--topic my-topic --num-records 1000 --record-size 4096 --throughput 100000"
    words = f"{what} --producer-props {properties}"
    end = twinlog("perf", "produce", *words.split(), "batch.size=8196", "--print-metrics")
    assert end.returncode == 0, end.stderr
    first = end.stdout.splitlines()[0]
    assert first.startswith("1000 records sent, ") and first.endswith(" ms 99.9th.")
    end = twinlog(
        "perf", "produce", *words.split(), "-o", "json", "--plot", "latency.svg", "--warmup-records", "500"
    )
    told = json.loads(end.stdout)
    assert told["records"] == 1000 and told["latency_ms"]["p99.9"] > 0
    assert told["steady_state"]["records"] == 500
