"""Files that are replaced whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from twinlog.durable import make_private_directory, write_secret, write_text


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_secret_is_readable_by_its_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_secret(tmp_path / "key", "secret")
    finally:
        os.umask(before)
    assert (mode_of(tmp_path / "key"), (tmp_path / "key").read_text()) == (0o600, "secret")


def test_secret_over_a_public_file_becomes_private(tmp_path: Path) -> None:
    write_text(tmp_path / "key", "old")
    write_secret(tmp_path / "key", b"new")
    assert (mode_of(tmp_path / "key"), (tmp_path / "key").read_bytes()) == (0o600, b"new")


def test_write_leaves_no_other_file_behind(tmp_path: Path) -> None:
    write_text(tmp_path / "state", "one")
    write_text(tmp_path / "state", "two")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_failed_write_keeps_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "state"
    target.mkdir()  # a file cannot take the name of a directory
    with pytest.raises(OSError):
        write_text(target, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_private_directory_loses_rights_that_others_had(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir(mode=0o755)
    make_private_directory(tmp_path / "secrets")
    assert mode_of(tmp_path / "secrets") == 0o700


def test_directories_made_on_the_way_are_private_too(tmp_path: Path) -> None:
    make_private_directory(tmp_path / "bus" / "secrets")
    assert (tmp_path / "bus").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "bus" / "secrets").stat().st_mode & 0o777 == 0o700
