"""`twinlog plan` looks and writes nothing: no password is invented to say that one will be."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import Twinlog
from tests.program.prepared_bus import FILE, prepare
from twinlog.errors import EXIT_FINDINGS

GIVEN = {"GIVEN_PASSWORD": "from outside"}


def test_plan_of_a_new_bus_names_all_that_is_to_be_made_and_makes_none_of_it(
    twinlog: Twinlog, tmp_path: Path
) -> None:
    (tmp_path / "work" / "twinlog.yaml").write_text(FILE)
    end = twinlog("plan", "-o", "json", **GIVEN)
    assert end.returncode == EXIT_FINDINGS
    at_b = [step["what"] for step in json.loads(end.stdout) if step["site"] == "b"]
    assert at_b[0] == "start 2 new nodes"
    assert "create orders: 1 partitions, 1 copies" in at_b
    assert "invent and set a password for shop (SCRAM-SHA-512): it has none there" in at_b
    assert "set the password of given (SCRAM-SHA-512): it has none there" in at_b
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["twinlog.yaml"]


def test_plan_of_a_bus_that_is_down_changes_no_file(twinlog: Twinlog, tmp_path: Path) -> None:
    home = prepare(tmp_path / "work")
    before = {path: path.stat().st_mtime_ns for path in home.file.parent.rglob("*")}
    assert twinlog("plan", **GIVEN).returncode == EXIT_FINDINGS
    assert {path: path.stat().st_mtime_ns for path in home.file.parent.rglob("*")} == before


def test_plan_without_a_password_that_is_given_says_where_it_should_be(
    twinlog: Twinlog, tmp_path: Path
) -> None:
    (tmp_path / "work" / "twinlog.yaml").write_text(FILE)
    end = twinlog("plan")
    assert end.returncode == 2
    assert "variable GIVEN_PASSWORD" in end.stderr
