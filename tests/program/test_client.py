"""`twinlog client` on a bus that does not run: what it prints and what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Twinlog
from tests.program.prepared_bus import prepare
from twinlog.cli.client import FORMATS, ON_STANDBY, STORES
from twinlog.sites.home import Home
from twinlog.spec.effective import largest_message_bytes
from twinlog.wire.clientfiles.read import read_client_file
from twinlog.wire.clientfiles.write import Format
from twinlog.wire.stores import StoreType

SECRET = 0o600


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return prepare(tmp_path / "bus")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_choices_of_the_command_are_those_of_the_writer() -> None:
    assert list(Format) == FORMATS
    assert list(StoreType) == STORES


@pytest.mark.parametrize("form", FORMATS)
def test_client_file_of_every_format_names_the_active_site_and_its_sizes(
    twinlog: Twinlog, home: Home, form: str
) -> None:
    end = twinlog("client", "shop", "--format", form, cwd=home.file.parent)
    assert (end.returncode, end.stderr) == (0, "")
    (address,) = home.user_access("shop", "a").bootstrap
    assert address in end.stdout
    assert str(largest_message_bytes(home.bus, "a")) in end.stdout
    assert home.passwords.password_of("shop", None) in end.stdout


def test_printed_java_file_reads_back_as_the_users_access(
    twinlog: Twinlog, home: Home, tmp_path: Path
) -> None:
    printed = tmp_path / "shop.properties"
    printed.write_text(twinlog("client", "shop", cwd=home.file.parent).stdout)
    assert read_client_file(printed).access == home.user_access("shop", "a")


def test_side_files_without_a_directory_are_kept_with_the_bus(twinlog: Twinlog, home: Home) -> None:
    end = twinlog("client", "till", "--format", "kcat", "-o", "json", cwd=home.file.parent)
    answer = json.loads(end.stdout)
    kept = home.directory / "clients" / "a" / "till"
    assert answer["file"] is None
    assert answer["side_files"] == [str(kept / name) for name in ("till.ca.crt", "till.crt", "till.key")]
    assert all(path in answer["text"] and mode(Path(path)) == SECRET for path in answer["side_files"])


def test_files_in_a_directory_are_for_their_owner_only(twinlog: Twinlog, home: Home, tmp_path: Path) -> None:
    target = tmp_path / "handed" / "out"
    arguments = ("client", "shop", "--store", "jks", "--directory", str(target))
    end = twinlog(*arguments, cwd=home.file.parent)
    written = [Path(line) for line in end.stdout.splitlines()]
    assert written == [target / "shop.properties", target / "shop.trust.jks"]
    assert [mode(path) for path in written] == [SECRET, SECRET]
    assert read_client_file(written[0]).access == home.user_access("shop", "a")
    answer = json.loads(twinlog(*arguments, "-o", "json", cwd=home.file.parent).stdout)
    assert answer == {"file": str(written[0]), "side_files": [str(written[1])]}


def test_a_directory_that_exists_keeps_its_rights(twinlog: Twinlog, home: Home, tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.mkdir(mode=0o755)
    assert twinlog("client", "shop", "--directory", str(target), cwd=home.file.parent).returncode == 0
    assert mode(target) == 0o755


def test_file_for_the_standby_comes_with_a_remark(twinlog: Twinlog, home: Home) -> None:
    end = twinlog("client", "shop", "--site", "b", cwd=home.file.parent)
    assert end.returncode == 0
    assert ON_STANDBY in end.stderr and "twinlog client shop --site a" in end.stderr
    assert ON_STANDBY not in end.stdout
    as_json = twinlog("client", "shop", "--site", "b", "-o", "json", cwd=home.file.parent).stderr
    assert json.loads(as_json)["warning"]["what"] == ON_STANDBY


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody"], "the file has no user 'nobody'"),
        (["shop", "--site", "z"], "the file has no site 'z'"),
        (["shop", "--format", "kcat", "--store", "jks"], "kcat clients read PEM only"),
        (["shop", "--format", "word"], "'word' is not one of"),
    ],
)
def test_impossible_wishes_are_refused(twinlog: Twinlog, home: Home, arguments: list[str], said: str) -> None:
    end = twinlog("client", *arguments, cwd=home.file.parent)
    assert (end.returncode, end.stdout) == (2, "")
    assert said in end.stderr


def test_client_of_a_bus_that_was_never_up_says_up(twinlog: Twinlog, tmp_path: Path) -> None:
    (tmp_path / "twinlog.yaml").write_text("bus: x\nsites: {a: {}, b: {}}\nusers: {shop: {}}\n")
    end = twinlog("client", "shop", cwd=tmp_path)
    assert end.returncode == 1
    assert "hint: twinlog up" in end.stderr


@pytest.mark.parametrize("words", [("client", "shop"), ("user", "show-password", "shop")])
def test_password_that_sites_have_and_nobody_keeps_any_more_is_not_invented_again(
    twinlog: Twinlog, home: Home, words: tuple[str, ...]
) -> None:
    home.user_access("shop", "a")
    state = home.state()
    for site in ("a", "b"):
        state.applied[site] = {"shop": home.passwords.fingerprint("shop", None)}
    home.state_file.write(state)
    kept = home.directory / "secrets" / "shop"
    assert twinlog(*words, cwd=home.file.parent).returncode == 0
    kept.unlink()
    end = twinlog(*words, cwd=home.file.parent)
    assert (end.returncode, end.stdout) == (2, "")
    assert "the password of user shop, which sites a, b took, is not kept here any more" in end.stderr
    assert str(kept) in end.stderr and "twinlog user rotate shop" in end.stderr
    assert not kept.exists()
