"""`twinlog host check` on this very host: it compares, writes what it is asked to, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import Twinlog
from twinlog.ops.host_tuning import SYSCTLS
from twinlog.sites.host import interfaces_towards, sysctl


def test_every_key_stands_beside_this_hosts_value_and_nothing_is_changed(
    twinlog: Twinlog, tmp_path: Path
) -> None:
    before = {one.key: sysctl(one.key) for one in SYSCTLS}
    written = tmp_path / "90-kafka.conf"
    end = twinlog("host", "check", "--to", "127.0.0.1", "--write", str(written), "-o", "json")
    rows = {row["key"]: row for row in json.loads(end.stdout)}
    assert {one.key for one in SYSCTLS} <= rows.keys()
    for key, value in before.items():
        assert rows[key]["here"] == (None if value is None else " ".join(value.split()))
    (interface,) = {row["key"].split()[0] for row in rows.values() if row["kind"] == "interface"}
    assert interface == interfaces_towards("127.0.0.1")[0].name
    wrong = [row for row in rows.values() if row["verdict"] in ("below", "differs")]
    assert end.returncode == (3 if wrong else 0)
    settings = [line for line in written.read_text().splitlines() if not line.startswith("#")]
    assert len(settings) == sum(row["kind"] == "sysctl" for row in wrong)
    assert {one.key: sysctl(one.key) for one in SYSCTLS} == before


def test_a_host_that_nobody_knows_has_no_interface_and_the_rest_is_compared(twinlog: Twinlog) -> None:
    end = twinlog("host", "check", "--to", "no-such-host.invalid", "-o", "json")
    assert not [row for row in json.loads(end.stdout) if row["kind"] == "interface"]


def test_a_file_that_cannot_be_written_is_an_error_with_its_name(twinlog: Twinlog) -> None:
    end = twinlog("host", "check", "--write", "no/such/directory/file")
    assert end.returncode == 2 and "no/such/directory/file" in end.stderr
