"""The commands that need no site, and what all commands share. Runs the real program."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Twinlog
from tests.program.prepared_bus import prepare
from twinlog import __version__
from twinlog.cli.app import COMMANDS, program
from twinlog.cli.init import FILE_NAME, bus_name
from twinlog.spec.file import find
from twinlog.spec.load import load
from twinlog.spec.model import KAFKA_VERSION, BusName
from twinlog.spec.typed import takes

# What takes long to import; none of it is needed to say which commands there are.
HEAVY = ["pydantic", "rich", "ruamel", "confluent_kafka", "kafka", "kio", "cryptography", "jgo", "psutil"]


def test_help_lists_every_command(twinlog: Twinlog) -> None:
    end = twinlog("--help")
    assert end.returncode == 0
    assert all(f"  {name} " in end.stdout for name in COMMANDS)
    assert max(map(len, end.stdout.splitlines())) <= 80


def test_help_of_the_program_and_of_every_command_imports_nothing_heavy(environment: dict[str, str]) -> None:
    script = (
        "import sys; from twinlog.cli import app\n"
        "for name in [[], *([name] for name in app.COMMANDS)]:\n"
        "    app.run([*name, '--help'])\n"
        f"    found = [module for module in {HEAVY} if module in sys.modules]\n"
        "    if found: sys.exit(f'{name} imports {found}')"
    )
    end = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert (end.returncode, end.stderr) == (0, "")


def test_listing_topics_imports_no_driver_nor_messages_that_it_does_not_send(
    environment: dict[str, str], tmp_path: Path
) -> None:
    unneeded = ["confluent_kafka", "kafka.client_async", "kafka.protocol.admin.acl", "psutil", "rich"]
    script = (
        "import sys; from twinlog.cli import app, output\n"
        "assert app.run(['init']) == 0\n"
        "assert app.run(['topic', 'list']) == 1\n"  # as far as a bus that was never up
        "output.emit([output.Table([output.Column('topic')], [{'topic': 'orders'}])], as_json=False)\n"
        f"sys.exit(', '.join(module for module in {unneeded} if module in sys.modules) or None)"
    )
    end = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert end.returncode == 0, end.stderr
    assert "hint: twinlog up" in end.stderr


# What is in daily use, as far as it comes at a bus of which nothing runs, and what it may import on the way.
DAILY = {
    "topic list": [],
    "topic describe orders": [],
    "topic offsets orders": [],
    "group list": [],
    "group lag": [],
    "config describe topic orders": [],
    "quorum": [],
    "user list": [],
    "link status": ["psutil"],
    "status": ["psutil", "cryptography"],  # it says how long certificates last
    "broker list": ["psutil"],
    "produce orders": ["confluent_kafka"],
    "consume orders": ["confluent_kafka"],
}


@pytest.mark.parametrize("words", DAILY)
def test_command_on_a_file_that_was_right_before_imports_nothing_that_reads_it(
    environment: dict[str, str], tmp_path: Path, words: str
) -> None:
    home = prepare(tmp_path / "bus")
    reaches = words.split(maxsplit=1)[0] in ("topic", "group", "config", "quorum", "produce", "consume")
    args = [*words.split(), *(["--timeout", "0.1"] if reaches else [])]
    unneeded = [name for name in HEAVY if name != "kafka" and name not in DAILY[words]]
    script = (
        f"import sys; from twinlog.cli import app\ncode = app.run({args})\n"
        f"found = [module for module in {unneeded} if module in sys.modules]\n"
        "print(found if sys.argv[1:] == ['again'] else [])\nsys.exit(code)"
    )
    first, again = (
        subprocess.run(
            [sys.executable, "-c", script, *more],
            env={**environment, "GIVEN_PASSWORD": "secret"},
            cwd=home.file.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        for more in ([], ["again"])
    )
    assert again.stdout.splitlines()[-1] == "[]"
    assert (first.returncode, first.stderr, first.stdout) == (again.returncode, again.stderr, again.stdout)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_examples_and_the_shared_options(twinlog: Twinlog, name: str) -> None:
    page = twinlog(name, "--help").stdout
    assert "Example" in page and f"$ twinlog {name}" in page
    if "Commands:" not in page:  # a group: its commands have them
        assert all(option in page for option in ("-f, --file", "-o, --output", "-q, --quiet"))


def all_commands(
    group: click.Group, words: tuple[str, ...] = ("twinlog",)
) -> Iterator[tuple[str, click.Command]]:
    """Every command and group of the program, by the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*words, name)), command
        if isinstance(command, click.Group):
            yield from all_commands(command, (*words, name))


def test_every_command_and_every_group_has_an_example_that_calls_it() -> None:
    found = dict(all_commands(program()))
    assert len(found) > 100
    for words, command in found.items():
        page = command.get_help(click.Context(command, info_name=words))
        shown = [line.strip() for line in page.splitlines() if line.strip().startswith("$ ")]
        assert any(re.match(rf"\$ (.*[|;&] *|.*=\S+ )?{re.escape(words)}( |$)", line) for line in shown), page


def test_version_prints_what_works_together(twinlog: Twinlog) -> None:
    versions = {"twinlog": __version__, "python": platform.python_version(), "kafka": KAFKA_VERSION}
    assert json.loads(twinlog("version", "-o", "json").stdout) == versions
    assert twinlog("version").stdout.split() == [word for pair in versions.items() for word in pair]
    assert twinlog("--version").stdout == f"twinlog {__version__}\n"


def test_schema_prints_a_schema_in_both_forms(twinlog: Twinlog) -> None:
    plain = json.loads(twinlog("schema").stdout)
    assert plain["properties"]["sites"]
    assert json.loads(twinlog("schema", "-o", "json").stdout) == plain


def test_init_writes_a_file_named_after_the_directory(twinlog: Twinlog, tmp_path: Path) -> None:
    home = tmp_path / "My Orders"
    home.mkdir()
    end = twinlog("init", "-o", "json", cwd=home)
    assert (end.returncode, end.stderr) == (0, "")
    assert json.loads(end.stdout) == {"bus": "my-orders", "file": str(home / "twinlog.yaml")}
    loaded = load(find(home, {}), {})
    assert (loaded.bus.bus, loaded.file.name) == ("my-orders", FILE_NAME)


def test_init_over_an_existing_file_needs_yes(twinlog: Twinlog, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("bus: mine\n")
    end = twinlog("init", "-f", str(file))
    assert end.returncode == 2
    assert f"hint: twinlog init -f {file} --yes" in end.stderr  # with all that was said, or it means another
    assert file.read_text() == "bus: mine\n"
    assert twinlog("init", "other", "-f", str(file), "--yes").returncode == 0
    assert "bus: other\n" in file.read_text()


def test_init_with_an_impossible_name_proposes_one(twinlog: Twinlog) -> None:
    end = twinlog("init", "My_Orders")
    assert end.returncode == 2
    assert "hint: twinlog init my-orders" in end.stderr


def test_init_into_a_missing_directory_is_refused(twinlog: Twinlog) -> None:
    end = twinlog("init", "-f", "nowhere/twinlog.yaml")
    assert end.returncode == 2
    assert "the directory does not exist" in end.stderr


@given(st.text())
def test_bus_name_of_anything_is_a_name_and_stays_itself(text: str) -> None:
    name = bus_name(text)
    assert takes(BusName, name)
    assert bus_name(name) == name


@given(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True))
def test_bus_name_of_a_name_is_the_same(name: str) -> None:
    assert bus_name(name) == name


def test_completion_in_bash_finds_a_command(environment: dict[str, str], tmp_path: Path) -> None:
    shim = tmp_path / "twinlog"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m twinlog "$@"\n')
    shim.chmod(0o755)
    script = (
        "source <(twinlog completion bash); COMP_WORDS=(twinlog ver); COMP_CWORD=1;"
        ' _twinlog_completion twinlog; echo "${COMPREPLY[@]}"'
    )
    path = f"{tmp_path}:{environment['PATH']}"
    end = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=environment | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert end.stdout == "version\n"


@pytest.mark.parametrize(("shell", "word"), [("zsh", "1"), ("fish", "comp")])
def test_completion_answers_other_shells(twinlog: Twinlog, shell: str, word: str) -> None:
    assert f"{shell}_complete" in twinlog("completion", shell).stdout
    asked = {"_TWINLOG_COMPLETE": f"{shell}_complete", "COMP_WORDS": "twinlog comp", "COMP_CWORD": word}
    assert "completion" in twinlog(**asked).stdout
