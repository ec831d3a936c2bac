"""How far the metadata on a disk is, and which Kafka may run on it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from twinlog.errors import UsageError
from twinlog.sites import jars, levels, remains, storage
from twinlog.sites.layout import Kind, Node, SiteLayout
from twinlog.spec.model import KAFKA_VERSION, KafkaVersion
from twinlog.wire.records import Record, encode_batch

OLD: KafkaVersion = "4.2.1"
OLDER_LEVEL, LEVEL = levels.LEVELS[OLD], levels.LEVELS[KAFKA_VERSION]
FIRST_SEGMENT = f"{storage.METADATA_LOG}/{0:020d}.log"


def level_record(level: int, name: bytes = b"metadata.version") -> bytes:
    """What a controller writes when a feature gets a level."""
    return bytes([1, 12, 0, len(name) + 1]) + name + struct.pack(">h", level) + b"\0"


def put(disk: Path, file: str, *values: bytes) -> Path:
    """A file of metadata with these records between others."""
    path = disk / file
    path.parent.mkdir(parents=True, exist_ok=True)
    between = (b"\x01\x02\x00something else", level_record(99, b"group.version"))
    path.write_bytes(b"".join(encode_batch([Record(value, 0)]) for value in (*values, *between)))
    return path


def site(*disks: Path) -> SiteLayout:
    nodes = tuple(
        Node("a", number, Kind.BROKER, disk, (disk,), ("x",), "127.0.0.1", "127.0.0.1", {}, 1)
        for number, disk in enumerate(disks, start=1)
    )
    return SiteLayout("a", 0, "cluster", 1, nodes, ())


def test_disk_without_metadata_says_no_level(tmp_path: Path) -> None:
    assert remains.metadata_level(tmp_path) is None
    put(tmp_path, FIRST_SEGMENT)
    assert remains.metadata_level(tmp_path) is None


def test_level_in_the_log_counts_more_than_one_in_a_snapshot_or_of_the_format(tmp_path: Path) -> None:
    put(tmp_path, storage.BOOTSTRAP, level_record(27))
    assert remains.metadata_level(tmp_path) == 27
    put(tmp_path, f"{storage.METADATA_LOG}/{100:020d}-{2:010d}.checkpoint", level_record(28))
    put(tmp_path, f"{storage.METADATA_LOG}/{200:020d}-{2:010d}.checkpoint", level_record(OLDER_LEVEL))
    assert remains.metadata_level(tmp_path) == OLDER_LEVEL
    put(tmp_path, f"{storage.METADATA_LOG}/{100:020d}.log", level_record(28), level_record(OLDER_LEVEL))
    put(tmp_path, f"{storage.METADATA_LOG}/{300:020d}.log", level_record(LEVEL))
    assert remains.metadata_level(tmp_path) == LEVEL


def test_level_before_the_torn_end_of_a_log_is_found(tmp_path: Path) -> None:
    path = put(tmp_path, FIRST_SEGMENT, level_record(OLDER_LEVEL))
    path.write_bytes(path.read_bytes()[:-7])
    assert remains.metadata_level(tmp_path) == OLDER_LEVEL


def test_older_kafka_is_refused_where_one_node_has_heard_of_the_new_level(tmp_path: Path) -> None:
    one, other = tmp_path / "1", tmp_path / "2"
    put(one, FIRST_SEGMENT, level_record(OLDER_LEVEL))
    levels.refuse_older(site(one, other), OLD)
    put(other, FIRST_SEGMENT, level_record(OLDER_LEVEL), level_record(LEVEL))
    levels.refuse_older(site(one, other), KAFKA_VERSION)
    with pytest.raises(UsageError) as raised:
        levels.refuse_older(site(one, other), OLD)
    assert f"level {LEVEL}" in raised.value.what
    assert raised.value.hint == f"kafka_version: {KAFKA_VERSION}"


def test_every_version_has_a_level_and_jars_of_its_own() -> None:
    assert list(levels.LEVELS.values()) == sorted(set(levels.LEVELS.values()))
    for version, level in levels.LEVELS.items():
        assert levels.version_for(level) == version
        assert levels.problem(version, level) == levels.problem(version, None) == ""
        servers = [jar for jar in jars.locked_jars(version) if jar.artifact == "kafka_2.13"]
        assert [jar.version for jar in servers] == [version]
        path = str(servers[0].path_in(Path("/cache")))
        assert jars.version_of(f"/cache/a-1.0.jar:{path}:/cache/z.jar") == version
    assert levels.version_for(LEVEL + 1) == KAFKA_VERSION
    assert jars.version_of("/libs/*") is None
