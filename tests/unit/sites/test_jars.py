"""The lock of jars, and how a damaged jar is noticed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from twinlog.progress import Silent
from twinlog.sites.jars import Jar, ensure_jars, is_intact, locked_jars, parse_lock

CONTENT = b"not really a jar"
JAR = Jar("org.example", "thing", "1.0", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


def put(repository: Path, content: bytes = CONTENT) -> Path:
    path = JAR.path_in(repository)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_lock_of_the_package_has_kafka_once_and_names_no_address() -> None:
    jars = locked_jars()
    names = [jar.artifact for jar in jars]
    assert len(set(names)) == len(names)
    assert {"kafka_2.13", "kafka-clients", "kafka-tools", "log4j-core"} <= set(names)
    assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in jars)


def test_comments_and_empty_lines_of_a_lock_are_passed_over() -> None:
    text = f"# comment\n\n{JAR.coordinates} {JAR.size} {JAR.sha256}\n"
    assert parse_lock(text) == (JAR,)


def test_a_jar_is_intact_only_with_every_byte(tmp_path: Path) -> None:
    assert not is_intact(JAR, tmp_path)
    put(tmp_path)
    assert is_intact(JAR, tmp_path)
    put(tmp_path, CONTENT[:-1] + b"X")
    assert not is_intact(JAR, tmp_path)
    put(tmp_path, CONTENT[:-1])
    assert not is_intact(JAR, tmp_path)


def test_jars_that_are_there_are_not_fetched_and_keep_the_order_of_the_lock(tmp_path: Path) -> None:
    put(tmp_path / "maven")
    assert ensure_jars(tmp_path, Silent(), (JAR,)) == (JAR.path_in(tmp_path / "maven"),)
