"""The arithmetic behind the measurements: latencies, CPU of processes that end, errors of group offsets."""

from __future__ import annotations

import os
import socket
import sys
from subprocess import Popen

import psutil
import pytest

from bench import load, sockets
from bench.groups import errors
from bench.measuring import Cpu, Latency
from bench.mirror import summary

PLACE = ("orders", 0)


def test_latency_of_a_hundred_records_gives_the_middle_and_the_end() -> None:
    found = Latency.of([float(number) for number in range(1, 101)])
    assert found.p50_ms == pytest.approx(50.5)
    assert 99 <= found.p99_ms <= 100
    assert found.max_ms == 100
    assert found.records == 100


def test_group_at_the_same_record_has_no_error_whatever_its_offset() -> None:
    numbers = {PLACE: {10: 5, 11: 6, 12: 7}}
    assert errors({PLACE: 6}, {PLACE: 11}, numbers) == {PLACE: 0}


def test_group_that_would_repeat_records_is_off_by_their_number() -> None:
    numbers = {PLACE: {offset: offset for offset in range(100)}}
    assert errors({PLACE: 90}, {PLACE: 31}, numbers) == {PLACE: 59}


def test_group_behind_the_last_record_waits_for_the_next_number() -> None:
    numbers = {PLACE: {0: 0, 1: 1}}
    assert errors({PLACE: 2}, {PLACE: 2}, numbers) == {PLACE: 0}


def test_group_without_an_offset_is_off_by_all_that_it_read() -> None:
    numbers = {PLACE: {offset: offset for offset in range(100)}}
    assert errors({PLACE: 90}, {}, numbers) == {PLACE: 90}


def test_process_that_ended_keeps_the_cpu_it_used() -> None:
    with Popen([sys.executable, "-c", "sum(range(3_000_000)); input()"], stdin=-1) as child:
        process = psutil.Process(child.pid)
        cpu = Cpu(lambda: [process])
        while cpu.seconds() == 0:
            assert child.poll() is None
        used = cpu.seconds()
        child.communicate(b"\n")
    assert cpu.seconds() >= used > 0


def test_segments_of_a_connection_are_counted_on_the_port_that_they_go_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as near, server.accept()[0] as far:
            for _ in range(3):
                near.send(b"x")
                assert far.recv(1) == b"x"
            assert sockets.segments([psutil.Process(os.getpid())], [port]) == 3


def test_numbers_come_back_from_values_of_a_kilobyte() -> None:
    value = load.numbered(7)
    assert len(value) == 1024
    assert load.number_in(value) == 7


def test_parts_that_were_not_measured_are_null() -> None:
    run = [{"records_per_s": 30.0, "cpu_s_per_million": 1.0}]
    slower = [{"records_per_s": 10.0, "cpu_s_per_million": 8.0}]
    found = summary({"throughput": {"ours": run, "mirrormaker": slower}})
    assert found["throughput_ratio"] == 3.0
    assert found["cpu_ratio"] == 0.125
    assert found["zstd_cpu_ratio"] is None
    assert found["repeated"] is None


def test_summary_has_the_latencies_of_both_mirrors_and_our_largest_lag() -> None:
    ours, theirs = (
        {"p50_ms": p50, "p99_ms": 40.0, "max_ms": most, "records": 3}
        for p50, most in ((9.04, 70.0), (11.0, 900.0))
    )
    rates = {"slow": {"ours": ours, "mirrormaker": theirs}, "fast": {"ours": ours, "mirrormaker": theirs}}
    run = [{"records_per_s": 30.0}]
    far = {
        "kernel": {},
        "40": {"round_trip_ms": 40.6, "latency": rates, "throughput": {"ours": run, "mirrormaker": run}},
    }
    found = summary({"latency": rates, "distance": far})
    assert found["latency_ms"]["slow"]["ours"] == {"p50": 9.0, "p99": 40.0, "max": 70.0}
    assert found["latency_ms"]["fast"]["mirrormaker"]["max"] == 900.0
    assert found["largest_lag_ms"] == 70.0
    assert found["far"]["40"]["throughput_ratio"] == 1.0
    assert found["far"]["40"]["largest_lag_ms"] == 70.0
    assert "kernel" not in found["far"]


def test_few_latencies_are_never_higher_than_the_highest_seen() -> None:
    found = Latency.of([1.0, 2.0, 3.0])
    assert found.p99_ms <= found.max_ms == 3.0
