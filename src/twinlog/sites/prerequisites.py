"""What this machine must have before a node is formatted or started.

Each check raises one clear error with a hint, and all run before the first process starts, so that
a busy port, a full disk, a network file system or too little memory leaves nothing half-started.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import psutil

from twinlog.errors import PrerequisiteError
from twinlog.sites.layout import Node
from twinlog.sites.ports import bind

FREE_DISK_BYTES = 256 << 20  # below this Kafka cannot even roll its first segments
JVM_OVERHEAD_BYTES = 160 << 20  # metaspace, code, threads and buffers beside the heap
NETWORK_FILE_SYSTEMS = frozenset(
    {
        "9p",
        "afs",
        "ceph",
        "cifs",
        "coda",
        "gfs2",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
    }
    | {"fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs"}
)


def check(nodes: Iterable[Node]) -> None:
    """All checks for nodes that are about to start."""
    starting = list(nodes)
    check_memory(starting)
    for node in starting:
        check_ports(node)
        for path in node.data:
            check_volume(node.name, path)


def check_ports(node: Node) -> None:
    """Every port of the node can be bound."""
    for listener, port in node.ports.items():
        try:
            bind(node.listen, port)
        except OSError as error:
            raise PrerequisiteError(
                f"port {port} ({listener.name}) of {node.name} cannot be used: "
                f"{error.strerror}{_user_of(port)}",
                where=f"{node.listen}:{port}",
                hint=f"ss -ltnp 'sport = :{port}'",
            ) from error


def _user_of(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            local = connection.laddr
            if connection.status == psutil.CONN_LISTEN and local and local.port == port and connection.pid:
                return f", used by {psutil.Process(connection.pid).name()} (pid {connection.pid})"
    except psutil.Error:
        pass
    return ""


def check_memory(nodes: list[Node]) -> None:
    """The heaps of all nodes fit into what is free now."""
    needed = sum(node.memory_bytes + JVM_OVERHEAD_BYTES for node in nodes)
    free = psutil.virtual_memory().available
    if needed > free:
        raise PrerequisiteError(
            f"{len(nodes)} nodes need {needed >> 20} MiB of memory and {free >> 20} MiB are free",
            hint="lower `memory:` or `brokers:` in the file, or end something: free -m",
        )


def check_volume(name: str, path: Path) -> None:
    """The volume is local, writable, and not full."""
    existing = path
    while not existing.exists():
        existing = existing.parent
    mount, kind = mount_of(existing)
    if kind in NETWORK_FILE_SYSTEMS:
        raise PrerequisiteError(
            f"{name} cannot keep its log on {mount}: it is a network file system ({kind})",
            where=str(path),
            hint="name a directory on a local or block device under `data:`",
        )
    if not os.access(existing, os.W_OK):
        raise PrerequisiteError(
            f"{name} cannot write its log", where=str(existing), hint=f"ls -ld {existing}"
        )
    free = shutil.disk_usage(existing).free
    if free < FREE_DISK_BYTES:
        raise PrerequisiteError(
            f"{name} has {free >> 20} MiB of disk left and needs at least {FREE_DISK_BYTES >> 20}",
            where=str(mount),
            hint=f"df -h {existing}",
        )


def doubt_room(name: str, path: Path, needed_bytes: int | None) -> str:
    """What to say if the declared topics can come to need more than the volume has; else nothing."""
    existing = path
    while not existing.exists():
        existing = existing.parent
    total = shutil.disk_usage(existing).total
    if needed_bytes is None or needed_bytes <= total:
        return ""
    return (
        f"{name}: the declared topics may come to need {needed_bytes >> 20} MiB "
        f"and the volume of {path} has {total >> 20} MiB; lower `retention_bytes`"
    )


def mount_of(path: Path, mounts: str | None = None) -> tuple[Path, str]:
    """Mount point and file system type that a path is on."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text()
        except OSError:
            return Path("/"), "unknown"
    real = path.resolve()
    best = (Path("/"), "unknown")
    for line in mounts.splitlines():
        fields = line.split()
        mount = Path(fields[1].encode().decode("unicode_escape"))
        # Of several mounts on one point the last one is what is seen.
        if real.is_relative_to(mount) and len(mount.parts) >= len(best[0].parts):
            best = (mount, fields[2])
    return best
