"""What is left of a bus on its disks, read without its state and while nothing need run.

`twinlog recover` reads here: each node's settings, what Kafka wrote about its data directories, the
range of producer ids that its site was formatted with, and notes, such as the role of a site, from the
replicas of their topics; `levels` reads how far its metadata is. Nothing is written. A replica may lack
the last record, or have one that was never acknowledged; a site that answers is asked instead.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from twinlog.sites import properties, storage
from twinlog.sites.recovery import NO_RANGE, NodeFiles
from twinlog.wire import recode
from twinlog.wire.batches import UnreadableBatch, split
from twinlog.wire.compact import text
from twinlog.wire.contents import contents
from twinlog.wire.notes import Note
from twinlog.wire.quorum import METADATA_VERSION

SETTINGS = "server.properties"
LEVEL_RECORD = bytes([1, 12, 0]) + text(METADATA_VERSION)  # frame version, api key and version, name


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


def metadata_level(disk: Path) -> int | None:
    """The level that a node's metadata has come to, as far as it knows; None if the disk does not say.

    What the log has is newer than what any snapshot has: a snapshot stands for what was cut off before it.
    """
    directory = disk / storage.METADATA_LOG
    snapshots = sorted(directory.glob("*.checkpoint"), reverse=True)
    for files in (sorted(directory.glob("*.log")), *([one] for one in snapshots), [disk / storage.BOOTSTRAP]):
        if found := [level for path in files for level in _levels(path)]:
            return found[-1]
    return None


def _levels(path: Path) -> Iterator[int]:
    try:
        for _, entry in _entries(path.read_bytes()):
            value = contents(bytes(entry.rest)).value or b""
            if value.startswith(LEVEL_RECORD):
                yield struct.unpack_from(">h", value, len(LEVEL_RECORD))[0]
    except (OSError, UnreadableBatch):
        return  # the end of a log that is being written, or a node that is elsewhere


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
