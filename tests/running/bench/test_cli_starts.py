"""Which commands `make bench-cli` starts."""

from __future__ import annotations

from bench.cli import ALONE, named
from twinlog.cli.app import COMMANDS, program


def test_every_command_and_every_member_of_a_group_is_started() -> None:
    found = list(named(program()))
    assert {words[0] for words in found} == set(COMMANDS)
    assert {("certs",), ("certs", "status"), ("user", "quota")} <= set(found)
    assert len(found) == len(set(found))


def test_what_runs_without_a_site_is_a_command() -> None:
    found = set(named(program()))
    assert all(tuple(line.split()) in found for line in ALONE if line != "completion bash")
