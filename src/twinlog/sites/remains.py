"""What is left of a bus on its disks, read without its state and while nothing need run.

`twinlog recover` reads here: each node's settings, what Kafka wrote about its data directories, the
range of producer ids that its site was formatted with, and notes, such as the role of a site, from the
replicas of their topics. Nothing is written. A replica may lack the last record, or have one that was
never acknowledged; a site that answers is asked instead.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from twinlog.sites import properties, storage
from twinlog.sites.recovery import NO_RANGE, NodeFiles
from twinlog.wire import recode
from twinlog.wire.batches import UnreadableBatch, split
from twinlog.wire.contents import contents
from twinlog.wire.notes import Note

SETTINGS = "server.properties"


def node_files(directory: Path) -> list[NodeFiles]:
    """What the directories of all nodes of a bus say, by site and node."""
    return sorted(
        (_read(path) for path in (directory / "sites").glob(f"*/*/{SETTINGS}")),
        key=lambda files: (files.site, files.id),
    )


def _read(path: Path) -> NodeFiles:
    settings = properties.written(path.read_text())
    disks = [Path(name) for name in settings["log.dirs"].split(",")]
    metas = {str(disk): storage.read_meta(disk) for disk in disks}
    ranges = [producer_range(disk) for disk in disks]
    return NodeFiles(path.parents[1].name, path.parent.name, settings, metas, max(ranges))


def producer_range(disk: Path) -> int:
    """The range of producer ids that a data directory was formatted with; none if it does not say."""
    try:
        checkpoint = (disk / storage.BOOTSTRAP).read_bytes()
        values = [contents(bytes(entry.rest)).value or b"" for _, entry in _entries(checkpoint)]
    except (OSError, UnreadableBatch):
        return NO_RANGE
    first = storage.PRODUCER_IDS_RECORD
    ids = [struct.unpack_from(">iqq", value, len(first))[2] for value in values if value.startswith(first)]
    return max(ids, default=NO_RANGE) // storage.PRODUCER_IDS_PER_RANGE


def note_on_disks(disks: Iterable[Path], note: Note) -> bytes | None:
    """The newest record of a note in the replicas on these disks; None if there is none."""
    topic, partition = note.place
    found: list[tuple[int, int, bytes]] = []
    for disk in disks:
        for segment in sorted((disk / f"{topic}-{partition}").glob("*.log")):
            found += _records(segment.read_bytes(), note.key)
    return max(found)[-1] if found else None


def _records(segment: bytes, key: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The leader's epoch first: a later leader may have written another record at the same offset."""
    try:
        for epoch, entry in _entries(segment):
            record = contents(bytes(entry.rest))
            if record.key == key and record.value is not None:
                yield epoch, entry.offset, record.value
    except UnreadableBatch:
        return  # a crash tore the end off, and Kafka drops the rest too


def _entries(data: bytes) -> Iterator[tuple[int, recode.Entry]]:
    for batch in split(memoryview(data)):
        if not batch.header.is_control:
            yield from ((batch.header.leader_epoch, entry) for entry in recode.entries(batch))
