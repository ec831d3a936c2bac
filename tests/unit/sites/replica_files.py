"""Replicas on disk as a broker leaves them, written batch by batch, for tests that cut them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import crc32c

from twinlog.sites import replicas
from twinlog.sites.layout import Kind, Node, SiteLayout
from twinlog.wire.batches import CONTROL_BIT, split
from twinlog.wire.records import Record, encode_batch

PLACE = ("orders", 0)
CLUSTER = "cluster"


class Log(NamedTuple):
    """A log to be written: sizes of its batches, and after which of them a new segment begins."""

    batches: Sequence[int]
    rolls: frozenset[int]


THREE_SEGMENTS = Log((2, 3, 1, 4, 2, 2), frozenset({1, 3}))  # 0-1 2-4 | 5 6-9 | 10-11 12-13


def batch(base: int, count: int) -> bytes:
    """A batch of that many records at an offset."""
    made = bytearray(encode_batch([Record(f"value {base + n}".encode(), 1000) for n in range(count)]))
    struct.pack_into(">q", made, 0, base)
    return bytes(made)


def write_log(directory: Path, log: Log, start: int = 0) -> int:
    """Write segments with their indexes and snapshots; returns where the log ends."""
    directory.mkdir(parents=True)
    base = end = start
    content, bases = b"", [start]
    for number, count in enumerate(log.batches):
        content += batch(end, count)
        end += count
        if number in log.rolls:
            (directory / replicas.file_name(base)).write_bytes(content)
            base, content = end, b""
            bases.append(base)
    (directory / replicas.file_name(base)).write_bytes(content)
    for base in bases:
        for kind in ("index", "timeindex"):
            (directory / replicas.file_name(base, kind)).write_bytes(b"\0" * 16)
    for offset in (*bases[1:], end):
        (directory / replicas.file_name(offset, "snapshot")).write_bytes(b"producers")
    epochs = sorted({start, (start + end) // 2, end - 1})
    lines = [f"{number} {offset}" for number, offset in enumerate(epochs)]
    (directory / "leader-epoch-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    return end


def write_disk(disk: Path, end: int, *, node: int = 1, cluster: str = CLUSTER) -> None:
    """What a broker keeps beside its replicas."""
    disk.mkdir(parents=True, exist_ok=True)
    (disk / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id={node}\n")
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (disk / name).write_text(f"0\n2\norders 0 {end}\nother 3 77\n")
    (disk / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')


def site_of(*disks: Path, remote: bool = False) -> SiteLayout:
    """A site with one broker on each of the disks."""
    nodes = tuple(
        Node("a", number, Kind.BROKER, disk, (disk,), ("x",), "127.0.0.1", "127.0.0.1", {}, 1, remote=remote)
        for number, disk in enumerate(disks, 1)
    )
    return SiteLayout("a", 0, CLUSTER, 0, nodes, ())


def written(disk: Path, log: Log, start: int = 0) -> tuple[Path, int]:
    """A disk with one replica; gives its directory and its end."""
    directory = disk / "orders-0"
    end = write_log(directory, log, start)
    write_disk(disk, end)
    return directory, end


def held(directory: Path) -> list[tuple[int, int]]:
    """First and next offset of each batch in a replica, in order."""
    return [
        (one.header.base_offset, one.header.next_offset)
        for path in sorted(directory.glob("*.log"))
        for one in split(memoryview(path.read_bytes()))
    ]


def content(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


class Event(NamedTuple):
    """A batch of one record, in a producer's transaction or not, or the marker that ends one."""

    producer: int
    bits: int


def inside(events: Sequence[Event]) -> dict[int, int]:
    """The producers whose transactions are open behind these, with their first offsets."""
    found: dict[int, int] = {}
    for offset, (producer, bits) in enumerate(events):
        if bits & CONTROL_BIT:
            found.pop(producer, None)
        elif bits:
            found.setdefault(producer, offset)
    return found


def snapshot(opened: dict[int, int]) -> bytes:
    entries = [struct.pack(">qhiqiqiq", one, 0, 0, 0, 0, 0, 0, opened.get(one, -1)) for one in (1, 2, 3, 9)]
    covered = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", 1, crc32c.crc32c(covered)) + covered


def write_events(disk: Path, events: Sequence[Event], rolls: frozenset[int], lost: frozenset[int]) -> Path:
    """A log of these, one record each, with true snapshots but for some that are lost."""
    directory = disk / "orders-0"
    directory.mkdir(parents=True)
    bases = sorted({0, *(roll for roll in rolls if roll < len(events))})
    for base, end in zip(bases, [*bases[1:], len(events)], strict=True):
        content = bytearray()
        for offset in range(base, end):
            made = bytearray(batch(offset, 1))
            made[22] |= events[offset].bits
            struct.pack_into(">q", made, 43, events[offset].producer)
            content += made
        (directory / replicas.file_name(base)).write_bytes(content)
        (directory / replicas.file_name(base, "index")).write_bytes(b"")
        if base and base not in lost:
            (directory / replicas.file_name(base, "snapshot")).write_bytes(snapshot(inside(events[:base])))
    write_disk(disk, len(events))
    return directory
