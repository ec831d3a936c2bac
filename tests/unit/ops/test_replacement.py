"""What is lost with a disk, and when a disk is not lost."""

from __future__ import annotations

import base64
from pathlib import Path
from uuid import UUID

import pytest

from twinlog.ops.replacement import Endangered, directory_id, endangered, lost_directories
from twinlog.sites.layout import Kind, Node, random_id
from twinlog.sites.storage import META
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
