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
