"""`twinlog order` without Kafka: genesis blocks, identities, and what is refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Twinlog
from tests.program.prepared_bus import prepare
from twinlog.ordering.fleet import Options
from twinlog.ordering.fleet_files import configtx_text
from twinlog.sites.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return prepare(tmp_path / "bus")


def test_genesis_block_of_a_profile_is_written_and_shown(twinlog: Twinlog, tmp_path: Path) -> None:
    for organisation in ("OrdererMSP", "ClientMSP"):
        twinlog(
            "order", "crypto", "crypto", "--organisation", organisation, "--client", "alice", cwd=tmp_path
        )
    text = configtx_text(vars(Options()), ["127.0.0.1:7050"], ["127.0.0.1:9092", "127.0.0.1:9093"])
    (tmp_path / "configtx.yaml").write_text(text)
    made = twinlog("order", "genesis", "--profile", "System", "-o", "json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    shown = twinlog("order", "genesis", "--show", "genesis.block", "-o", "json", cwd=tmp_path)
    assert json.loads(shown.stdout) == json.loads(made.stdout)
    assert json.loads(shown.stdout)["brokers"] == ["127.0.0.1:9092", "127.0.0.1:9093"]
    key = tmp_path / "crypto/ClientMSP/alice/msp/keystore/key.pem"
    assert key.stat().st_mode & 0o777 == 0o600


def test_unknown_profile_is_refused_with_those_that_there_are(twinlog: Twinlog, tmp_path: Path) -> None:
    (tmp_path / "configtx.yaml").write_text("Profiles: {Other: {}}\n")
    end = twinlog("order", "genesis", "--profile", "System", cwd=tmp_path)
    assert end.returncode == 2
    assert "Other" in end.stderr


def test_site_that_cannot_keep_the_promises_is_refused_with_every_value_to_change(
    twinlog: Twinlog, home: Home
) -> None:
    end = twinlog("order", "up", "--min-insync", "1", cwd=home.file.parent)
    assert end.returncode == 2
    for named in ("brokers: 4", "--min-insync 2", "replica.fetch.max.bytes", "message.max.bytes"):
        assert named in end.stderr
    assert not (home.directory / "ordering").exists()


def test_tools_without_orderers_say_how_to_start_them(twinlog: Twinlog, home: Home) -> None:
    for command in (("status",), ("submit", "trades"), ("verify",), ("blocks", "trades")):
        end = twinlog("order", *command, cwd=home.file.parent)
        assert end.returncode == 1
        assert "hint: twinlog order up" in end.stderr


def test_orderer_whose_file_is_wrong_is_told_all_that_is_wrong(twinlog: Twinlog, tmp_path: Path) -> None:
    (tmp_path / "orderer.yaml").write_text("General: {ListenPorts: 1}\nKafka: {Retry: {ShortTotal: 5}}\n")
    end = twinlog("order", "run", cwd=tmp_path)
    assert end.returncode == 2
    assert "ListenPorts" in end.stderr and "ShortTotal" in end.stderr


def test_orderer_without_a_file_says_where_it_was_looked_for(twinlog: Twinlog, tmp_path: Path) -> None:
    end = twinlog("order", "run", cwd=tmp_path, FABRIC_CFG_PATH=str(tmp_path / "fabric"))
    assert end.returncode == 2
    assert "no orderer.yaml in" in end.stderr
