"""How a run ends: messages, exit codes, and what stays on stdout. Runs the real program."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from tests.conftest import COMMAND_TIMEOUT_S, Twinlog
from tests.program.conftest import SAMPLE_PROGRAM, Sample
from tests.program.prepared_bus import prepare


def test_site_error_is_three_lines_on_stderr_and_exit_1(sample: Sample) -> None:
    end = sample("site", "-q")
    assert end.returncode == 1
    assert end.stdout == ""
    assert end.stderr == "error: broker a/1 ended\n  where: site a\n  hint: twinlog logs a\n"


def test_site_error_with_json_is_one_object_on_stderr(sample: Sample) -> None:
    end = sample("site", "-o", "json")
    assert end.stdout == ""
    assert json.loads(end.stderr) == {
        "error": {
            "what": "broker a/1 ended",
            "where": "site a",
            "hint": "twinlog logs a",
            "code": 1,
            "kind": "SiteError",
        }
    }


def test_findings_exit_3(sample: Sample) -> None:
    assert sample("findings").returncode == 3


def test_kafka_error_with_json_carries_kafkas_code(sample: Sample) -> None:
    end = sample("kafka", "--output=json")
    assert json.loads(end.stderr)["error"]["kafka_code"] == "TOPIC_AUTHORIZATION_FAILED"


def test_file_problems_are_all_shown_with_places_and_exit_2(sample: Sample) -> None:
    end = sample("file", "-q")
    assert end.returncode == 2
    assert end.stderr.splitlines() == [
        "twinlog.yaml:2:1: error: no sites",
        "twinlog.yaml:7:3: error: unknown key 'partition'",
        "    hint: partitions",
        "error: 2 problems in twinlog.yaml",
        "  hint: twinlog schema --help",
    ]


def test_file_problems_with_json_are_listed(sample: Sample) -> None:
    error = json.loads(sample("file", "-o", "json").stderr)["error"]
    assert [(problem["line"], problem["column"]) for problem in error["problems"]] == [(2, 1), (7, 3)]


def test_unexpected_exception_names_a_private_traceback_file(sample: Sample) -> None:
    end = sample("bug", "-q")
    assert end.returncode == 1
    assert "error: this is a bug in Twinlog: ZeroDivisionError: division by zero" in end.stderr
    assert "Traceback" not in end.stderr
    (where,) = [line for line in end.stderr.splitlines() if line.startswith("  where: ")]
    file = Path(where.removeprefix("  where: "))
    assert "ZeroDivisionError" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_unexpected_exception_with_debug_shows_the_traceback(sample: Sample) -> None:
    end = sample("bug", TWINLOG_DEBUG="1")
    assert "Traceback (most recent call last)" in end.stderr


def test_unexpected_exception_without_a_cache_still_gives_a_message(sample: Sample) -> None:
    end = sample("bug", "-q", TWINLOG_CACHE="/dev/null/nowhere")
    assert end.returncode == 1
    assert "TWINLOG_DEBUG=1" in end.stderr


def test_interrupt_cleans_up_and_exits_130_with_one_line(environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [*SAMPLE_PROGRAM, "sample", "wait", "-q"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=COMMAND_TIMEOUT_S)
    assert running.returncode == 130
    assert stdout == "cleaned up\n"
    assert stderr == "error: interrupted\n"


def test_reader_that_leaves_early_causes_no_message(environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [*SAMPLE_PROGRAM, "sample", "rows", "--count", "5000", "-o", "json"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == ""


@pytest.mark.parametrize(
    ("args", "what", "hint"),
    [
        (["verzion"], "no such command 'verzion'", "twinlog version"),
        (["version", "--outptu", "json"], "no such option '--outptu'", "did you mean --output?"),
        (
            ["-f", "x.yaml", "version"],
            "no such option '-f'",
            "options come after the command: twinlog COMMAND -f ...",
        ),
        (["completion"], "missing argument '{bash|zsh|fish}'", "twinlog completion --help"),
        (["version", "extra"], "got unexpected extra argument (extra)", "twinlog version --help"),
    ],
)
def test_wrong_command_line_exits_2_with_the_nearest_right_one(
    twinlog: Twinlog, args: list[str], what: str, hint: str
) -> None:
    end = twinlog(*args)
    assert (end.returncode, end.stdout) == (2, "")
    assert end.stderr == f"error: {what}\n  hint: {hint}\n"


def test_wrong_command_line_with_json_is_one_object(twinlog: Twinlog) -> None:
    error = json.loads(twinlog("verzion", "-o", "json").stderr)["error"]
    assert (error["code"], error["hint"]) == (2, "twinlog version")


def test_wrong_name_in_a_group_gives_the_nearest_one(sample: Sample) -> None:
    assert sample("rowz").stderr == "error: no such command 'rowz'\n  hint: twinlog sample rows\n"


def test_no_command_shows_the_help_and_exits_2(twinlog: Twinlog) -> None:
    end = twinlog()
    assert end.returncode == 2
    assert "Commands:" in end.stderr


def test_loss_without_yes_is_refused_with_the_command_to_run(sample: Sample) -> None:
    end = sample("remove")
    assert end.returncode == 2
    assert end.stderr.endswith("  where: site a\n  hint: twinlog sample remove --yes\n")
    assert sample("remove", "--yes").stdout == "removed\n"


@pytest.mark.parametrize("command", ["up", "down"])
@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "soon"])
def test_a_timeout_that_is_no_time_exits_2(twinlog: Twinlog, command: str, seconds: str) -> None:
    end = twinlog(command, "--timeout", seconds)
    assert (end.returncode, end.stdout) == (2, "")
    assert "'--timeout'" in end.stderr
    assert end.stderr.endswith(f"hint: twinlog {command} --help\n")


@pytest.mark.parametrize("state", ["[]", '{"version": 1}'])
def test_a_broken_state_is_no_bug_and_leads_to_recover(twinlog: Twinlog, tmp_path: Path, state: str) -> None:
    home = prepare(tmp_path / "work")
    home.state_file.path.write_text(state)
    end = twinlog("status")
    assert end.returncode == 1
    assert "the bus's state cannot be read" in end.stderr
    assert end.stderr.endswith("hint: twinlog recover\n")


def test_a_file_in_the_place_of_the_buss_directory_is_no_bug(twinlog: Twinlog, tmp_path: Path) -> None:
    (tmp_path / "work" / "twinlog.yaml").write_text("bus: orders\nsites: {a: {brokers: 1}}\n")
    (tmp_path / "work" / ".twinlog").write_text("")
    end = twinlog("plan")
    assert end.returncode == 1
    assert "ls -ld" in end.stderr


@pytest.mark.parametrize("since", ["99999999999d", "0001-01-01"])
def test_logs_since_before_all_time_exits_2(twinlog: Twinlog, tmp_path: Path, since: str) -> None:
    prepare(tmp_path / "work")
    end = twinlog("logs", "--since", since)
    assert end.returncode == 2
    assert f"--since {since}" in end.stderr


def test_a_port_that_a_formatted_node_cannot_take_is_a_difference(twinlog: Twinlog, tmp_path: Path) -> None:
    home = prepare(tmp_path / "work", "bus: orders\nsites: {a: {brokers: 1, port: 29555}}\n")
    state = home.state()
    for node in state.sites["a"].nodes.values():
        node.formatted = True
    home.state_file.write(state)
    home.file.write_text("bus: orders\nsites: {a: {brokers: 1, port: 29655}}\n")
    end = twinlog("plan", "-o", "json")
    assert end.returncode == 3
    assert "a/broker-1: keeps port 29555" in end.stdout
    assert json.loads(end.stderr.splitlines()[-1])["error"]["hint"] == "port: 29555"
