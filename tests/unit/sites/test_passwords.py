"""Passwords that are invented, and passwords that are given."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from twinlog.errors import UsageError
from twinlog.sites.passwords import Passwords
from twinlog.spec.model import Password


@pytest.fixture
def passwords(tmp_path: Path) -> Passwords:
    return Passwords(tmp_path / "secrets", tmp_path, {"SHOP_PASSWORD": "from outside", "EMPTY": ""})


def test_invented_password_is_kept(passwords: Passwords) -> None:
    first = passwords.password_of("shop", None)
    assert re.fullmatch(r"[A-Za-z0-9_-]{24,}", first)
    assert passwords.password_of("shop", None) == first
    assert passwords.password_of("stock", None) != first


def test_invented_password_is_for_the_owner_only(passwords: Passwords, tmp_path: Path) -> None:
    passwords.password_of("shop", None)
    folder = tmp_path / "secrets"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


def test_rotation_invents_another_one(passwords: Passwords) -> None:
    first = passwords.password_of("shop", None)
    second = passwords.rotate("shop", None)
    assert second != first
    assert passwords.password_of("shop", None) == second


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_given_file_is_read_without_its_line_end(passwords: Passwords, tmp_path: Path, end: str) -> None:
    (tmp_path / "shop.txt").write_bytes(f" pass wörd {end}".encode())
    assert passwords.password_of("shop", Password(file="shop.txt")) == " pass wörd "


def test_given_variable_is_read(passwords: Passwords) -> None:
    assert passwords.password_of("shop", Password(env="SHOP_PASSWORD")) == "from outside"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (Password(file="missing.txt"), "missing.txt: the password of user shop cannot be read"),
        (Password(env="MISSING"), "variable MISSING: the password of user shop is not in the environment"),
        (Password(env="EMPTY"), "variable EMPTY: the password of user shop is empty"),
    ],
)
def test_given_password_that_is_not_there_is_an_error_with_a_hint(
    passwords: Passwords, given: Password, what: str
) -> None:
    with pytest.raises(UsageError, match=what) as caught:
        passwords.password_of("shop", given)
    assert caught.value.hint


def test_given_file_of_several_lines_is_refused_without_showing_it(
    passwords: Passwords, tmp_path: Path
) -> None:
    (tmp_path / "shop.txt").write_text("hunter2\nhunter3\n")
    with pytest.raises(UsageError, match="line break") as caught:
        passwords.password_of("shop", Password(file="shop.txt"))
    assert "hunter" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize("given", [Password(file="shop.txt"), Password(env="SHOP_PASSWORD")])
def test_given_password_is_not_rotated_by_us(passwords: Passwords, given: Password) -> None:
    with pytest.raises(UsageError, match="given by you") as caught:
        passwords.rotate("shop", given)
    assert "twinlog apply" in caught.value.hint


def test_file_without_an_end_is_not_read_to_its_end(passwords: Passwords, tmp_path: Path) -> None:
    (tmp_path / "long").write_text("x" * 1_000_000)
    with pytest.raises(UsageError, match="longer than 4096 characters"):
        passwords.password_of("shop", Password(file="long"))
    (tmp_path / "long").unlink()
    (tmp_path / "long").symlink_to("/dev/zero")
    with pytest.raises(UsageError):
        passwords.password_of("shop", Password(file="long"))
