"""What is lost with a disk, when a disk is not lost, and how far the copies on a new one are."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest

from twinlog.ops import replacement
from twinlog.ops.replacement import Endangered, directory_id, endangered, left_bytes, lost_directories
from twinlog.progress import Silent
from twinlog.sites.layout import Kind, Node, random_id
from twinlog.sites.storage import META
from twinlog.wire import logdirs, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.logdirs import LogDir
from twinlog.wire.topics import Partition, TopicState


def topic(*partitions: Partition) -> tuple[TopicState, ...]:
    return (TopicState("t", UUID(int=1), False, partitions),)


@pytest.mark.parametrize(
    ("partition", "survivors"),
    [
        (Partition(0, 2, 1, (1, 2), (1, 2)), None),  # another is in sync
        (Partition(0, -1, 1, (1, 2), (), elr=(2,), offline=(1,)), None),  # another may lead without loss
        (Partition(0, -1, 1, (1, 2), (1,), offline=(1,)), (2,)),
        (Partition(0, -1, 1, (1, 2, 3), (), elr=(1,), offline=(1, 3)), (2,)),
        (Partition(0, -1, 1, (1,), (1,), offline=(1,)), ()),
        (Partition(0, 2, 1, (2, 3), (2,)), None),  # not on the lost disk
    ],
)
def test_a_partition_is_endangered_if_no_other_copy_is_complete(
    partition: Partition, survivors: tuple[int, ...] | None
) -> None:
    found = endangered(topic(partition), 1)
    assert found == ([] if survivors is None else [Endangered("t", 0, survivors)])


def test_what_is_lost_is_said() -> None:
    assert Endangered("t", 0, ()).loses == "all its records"
    assert Endangered("t", 0, (2, 3)).loses == "what broker 2 or 3 does not have"


def node_of(*data: Path) -> Node:
    return Node("a", 1, Kind.BROKER, data[0], data, ("x",) * len(data), "h", "h", {}, 1)


def test_directories_without_their_description_are_lost(tmp_path: Path) -> None:
    kept, empty, gone = (tmp_path / name for name in ("kept", "empty", "gone"))
    kept.mkdir()
    empty.mkdir()
    (kept / META).write_text("version=1\ncluster.id=c\n")
    assert lost_directories(node_of(kept, empty, gone)) == (empty, gone)


def test_a_directory_that_only_gives_errors_is_lost(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / META).mkdir()  # reading it is an error, as on a dying disk
    assert lost_directories(node_of(broken)) == (broken,)


def test_ids_of_directories_are_read_as_kafka_writes_them() -> None:
    text = random_id()
    assert base64.urlsafe_b64encode(directory_id(text).bytes).decode().rstrip("=") == text


MB = 1_000_000


def disk(broker: int, first: int, second: int = 0) -> LogDir:
    """A disk with so many bytes of each of the two partitions."""
    return LogDir(broker, f"/data/{broker}", "", None, None, {("t", 0): first, ("t", 1): second})


@pytest.mark.parametrize(
    ("disks", "left"),
    [
        ([disk(1, 0), disk(2, 5 * MB)], 5 * MB),
        ([disk(1, 3 * MB), disk(2, 5 * MB), disk(3, 4 * MB)], 2 * MB),  # the longest other copy counts
        ([disk(1, 6 * MB), disk(2, 5 * MB)], 0),  # a leader that has deleted already
        ([disk(1, 0, 1 * MB), disk(2, 5 * MB), disk(3, 0, 3 * MB)], 7 * MB),
        ([disk(2, 5 * MB)], 5 * MB),  # its new directory holds nothing yet
        ([], 0),
    ],
)
def test_what_a_new_disk_lacks_is_counted_by_the_longest_other_copies(disks: list[LogDir], left: int) -> None:
    assert left_bytes(disks, 1, [("t", 0), ("t", 1)]) == left


def test_partitions_that_are_not_behind_are_not_counted() -> None:
    assert left_bytes([disk(1, 0, 0), disk(2, 5 * MB, 9 * MB)], 1, [("t", 0)]) == 5 * MB


class Watcher(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.total: int | None = None
        self.done = 0

    def begin(self, name: str, total: int | None = None) -> None:
        """How much it will be."""
        self.total = total

    def advance(self, name: str, count: int = 1) -> None:
        """How much it is."""
        self.done += count

    def note(self, text: str) -> None:
        """What is said."""
        self.notes.append(text)


def test_copies_on_a_new_disk_are_told_with_what_is_left_and_an_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = topic(Partition(0, 2, 1, (1, 2), (2,)), Partition(1, 2, 1, (1, 2), (1, 2)))
    whole = topic(Partition(0, 2, 1, (1, 2), (1, 2)), Partition(1, 2, 1, (1, 2), (1, 2)))
    has = iter([0, 10 * MB, 20 * MB, 30 * MB, 40 * MB, 50 * MB])
    told = Watcher()
    # A cluster that copies ten megabytes between two looks, until the estimate was said.
    monkeypatch.setattr(replacement, "SAY_EVERY_S", 0.0)
    monkeypatch.setattr(logdirs, "describe", lambda _: [disk(1, next(has)), disk(2, 100 * MB)])
    monkeypatch.setattr(
        topics,
        "describe",
        lambda _: whole if told.notes and "about" in told.notes[-1] else behind,
    )
    cluster = cast(Cluster, None)  # both questions to it are answered above
    assert replacement.wait_for_copies(cluster, node_of(tmp_path), told, 30.0) == 2
    assert told.notes[0] == "1 of 2 partitions are behind; 100.0 MB left"
    assert re.fullmatch(r"1 of 2 partitions are behind; \d0\.0 MB left, about \d+ s", told.notes[-1])
    assert (told.total, told.done) == (2, 2)
