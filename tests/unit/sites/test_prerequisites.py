"""What a machine must have before a node is started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from twinlog.errors import PrerequisiteError
from twinlog.sites.layout import Kind, Listener, Node
from twinlog.sites.ports import free_ports
from twinlog.sites.prerequisites import (
    check_memory,
    check_ports,
    check_volume,
    doubt_room,
    mount_of,
)

MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/share /mnt/share nfs4 rw 0 0
/dev/vdb /mnt/share/disk xfs rw 0 0
server:/odd /mnt/with\\040blank nfs rw 0 0
"""


def node(tmp_path: Path, port: int, memory_bytes: int = 1) -> Node:
    ports = {Listener.LINK: port}
    return Node(
        "a", 1, Kind.BROKER, tmp_path, (tmp_path,), ("x",), "127.0.0.1", "127.0.0.1", ports, memory_bytes
    )


def test_a_busy_port_is_named_with_its_user(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(PrerequisiteError) as caught:
            check_ports(node(tmp_path, port))
    assert f"port {port} (LINK) of a/broker-1" in caught.value.what
    assert "pid" in caught.value.what
    assert str(port) in caught.value.hint


def test_free_ports_stand_together_and_avoid_those_given_away() -> None:
    first = free_ports("127.0.0.1", 3, seed="bus", avoid=frozenset())
    second = free_ports("127.0.0.1", 3, seed="bus", avoid=frozenset(first))
    assert first == list(range(first[0], first[0] + 3))
    assert not set(first) & set(second)


def test_too_little_memory_is_an_error_with_both_numbers(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"need \d+ MiB of memory and \d+ MiB are free"):
        check_memory([node(tmp_path, 1, memory_bytes=1 << 50)])


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/mnt/share/log", "nfs4"),
        ("/mnt/share/disk/log", "xfs"),
        ("/mnt/shared", "ext4"),
        ("/mnt/with blank/x", "nfs"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_its_deepest_mount(path: str, kind: str) -> None:
    assert mount_of(Path(path), MOUNTS)[1] == kind


def test_a_network_file_system_is_refused_with_its_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = (Path("/mnt/share"), "nfs4")
    monkeypatch.setattr("twinlog.sites.prerequisites.mount_of", lambda path: seen)
    with pytest.raises(PrerequisiteError, match=r"/mnt/share.*network file system \(nfs4\)"):
        check_volume("a/broker-1", tmp_path)


def test_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinlog.sites.prerequisites.FREE_DISK_BYTES", 1 << 60)
    with pytest.raises(PrerequisiteError, match="MiB of disk left"):
        check_volume("a/broker-1", tmp_path / "not" / "yet")


def test_topics_that_may_outgrow_the_volume_are_doubted_aloud(tmp_path: Path) -> None:
    assert "lower `retention_bytes`" in doubt_room("a/broker-1", tmp_path / "not" / "yet", 1 << 60)
    assert doubt_room("a/broker-1", tmp_path, 1) == ""
    assert doubt_room("a/broker-1", tmp_path, None) == ""
