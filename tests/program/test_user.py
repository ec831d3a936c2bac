"""`twinlog user` where no site runs: what is listed, shown and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Twinlog
from tests.program.prepared_bus import prepare
from twinlog.sites.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return prepare(tmp_path / "bus")


def test_list_shows_users_and_where_their_present_password_is(twinlog: Twinlog, home: Home) -> None:
    state = home.state()
    state.applied = {"a": {"shop": home.passwords.fingerprint("shop", None)}, "b": {"shop": "an older one"}}
    home.state_file.write(state)
    rows = json.loads(twinlog("user", "list", "-o", "json", cwd=home.file.parent).stdout)
    assert [row["user"] for row in rows] == ["shop", "stock", "given", "till"]
    assert [row["auth"] for row in rows] == ["scram", "scram-sha-256", "scram", "mtls"]
    assert rows[0] | {"groups": []} == {
        "user": "shop",
        "auth": "scram",
        "produce": ["orders"],
        "consume": [],
        "create": [],
        "groups": [],
        "transactions": [],
        "quota": {"produce": rows[0]["quota"]["produce"]},
        "applied": ["a"],
        "in_file": True,
    }
    assert [row["applied"] for row in rows[1:]] == [[], [], []]


def test_list_says_unknown_for_a_password_that_cannot_be_read(twinlog: Twinlog, home: Home) -> None:
    state = home.state()
    state.applied = {"a": {"given": "some fingerprint"}}
    home.state_file.write(state)
    rows = json.loads(twinlog("user", "list", "-o", "json", cwd=home.file.parent).stdout)
    assert rows[2]["applied"] is None


def test_list_shows_no_password_and_invents_none(twinlog: Twinlog, home: Home) -> None:
    secret = home.passwords.password_of("shop", None)
    end = twinlog("user", "list", cwd=home.file.parent)
    assert secret not in end.stdout + end.stderr
    assert not (home.directory / "secrets" / "stock").exists()


def test_list_with_no_site_running_shows_the_files_users_and_says_who_was_not_asked(
    twinlog: Twinlog, home: Home
) -> None:
    end = twinlog("user", "list", "--timeout", "0.2", cwd=home.file.parent)
    assert end.returncode == 0 and "shop" in end.stdout and "till" in end.stdout
    for site in ("a", "b"):
        assert f"site {site} does not say which users it knows" in end.stderr
    assert "hint:" in end.stderr


def test_list_of_a_bus_that_was_never_brought_up_asks_nobody(twinlog: Twinlog, tmp_path: Path) -> None:
    (tmp_path / "twinlog.yaml").write_text("bus: new\nsites: {a: {brokers: 1}}\nusers: {shop: {}}\n")
    end = twinlog("user", "list", cwd=tmp_path)
    assert end.returncode == 0 and "shop" in end.stdout
    assert "does not say" not in end.stderr


CHANGES = {
    "add": ["new", "--consume", "orders"],
    "grant": ["shop", "--consume", "orders"],
    "revoke": ["shop", "--consume", "orders"],
    "quota": ["shop", "--produce", "1MB/s"],
}


@pytest.mark.parametrize("verb", CHANGES)
def test_change_with_no_site_running_names_both_and_prints_no_line_for_the_file(
    twinlog: Twinlog, home: Home, verb: str
) -> None:
    end = twinlog("user", verb, *CHANGES[verb], "--timeout", "0.2", cwd=home.file.parent)
    assert (end.returncode, end.stdout) == (1, "")
    assert "no site has confirmed it: site a: " in end.stderr and "; site b: " in end.stderr
    assert "hint:" in end.stderr and "put this under" not in end.stderr


@pytest.mark.parametrize("verb", CHANGES)
def test_change_at_one_named_site_that_does_not_run_says_why(twinlog: Twinlog, home: Home, verb: str) -> None:
    words = ("user", verb, *CHANGES[verb], "--site", "b", "--timeout", "0.2")
    end = twinlog(*words, cwd=home.file.parent)
    assert (end.returncode, end.stdout) == (1, "")
    assert "error: nothing listens there" in end.stderr and "hint:" in end.stderr


def test_show_password_prints_the_password_alone(twinlog: Twinlog, home: Home) -> None:
    secret = home.passwords.password_of("shop", None)
    end = twinlog("user", "show-password", "shop", cwd=home.file.parent)
    assert (end.returncode, end.stdout, end.stderr) == (0, f"{secret}\n", "")
    as_json = twinlog("user", "show-password", "shop", "-o", "json", cwd=home.file.parent).stdout
    assert json.loads(as_json) == {"user": "shop", "password": secret}


@pytest.mark.parametrize("verb", ["show-password", "rotate"])
def test_user_with_a_certificate_has_no_password(twinlog: Twinlog, home: Home, verb: str) -> None:
    end = twinlog("user", verb, "till", cwd=home.file.parent)
    assert (end.returncode, end.stdout) == (2, "")
    assert "user till has a certificate and no password" in end.stderr


@pytest.mark.parametrize("verb", ["show-password", "rotate"])
def test_user_that_the_file_lacks_is_refused_with_those_it_has(
    twinlog: Twinlog, home: Home, verb: str
) -> None:
    end = twinlog("user", verb, "nobody", cwd=home.file.parent)
    assert end.returncode == 2
    assert "its users are shop, stock, given, till" in end.stderr


def test_rotation_of_a_given_password_is_left_to_its_giver(twinlog: Twinlog, home: Home) -> None:
    end = twinlog("user", "rotate", "given", cwd=home.file.parent, GIVEN_PASSWORD="quite-secret")
    assert end.returncode == 2
    assert "is given by you" in end.stderr and "quite-secret" not in end.stderr


def test_rotation_with_no_site_running_is_finished_by_apply(twinlog: Twinlog, home: Home) -> None:
    before = home.passwords.password_of("shop", None)
    end = twinlog("user", "rotate", "shop", "-o", "json", cwd=home.file.parent, GIVEN_PASSWORD="given")
    after = home.passwords.password_of("shop", None)
    assert end.returncode == 3
    assert before != after and after not in end.stdout + end.stderr
    assert json.loads(end.stdout)["sites"] == [] and list(json.loads(end.stdout)["left"]) == ["a", "b"]
    assert json.loads(end.stderr.splitlines()[-1])["error"]["hint"] == "twinlog apply"
