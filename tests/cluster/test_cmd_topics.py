"""`twinlog topic`, `quorum` and `elect` on real brokers, as a user types them; unhappy ways included."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import Bus, Site

pytestmark = pytest.mark.cluster

WRITTEN_BYTES = 500_000
OVERHEAD_BYTES = 200  # of a batch and of a record


@pytest.fixture
def topic(bus: Bus) -> Iterator[str]:
    """A topic that no other test uses, gone at the end whatever became of it."""
    name = f"cmd-{uuid.uuid4().hex[:8]}"
    made = bus.run("topic", "create", name, "--partitions", "2", "--config", "retention.ms=3600000")
    assert made.returncode == 0, made.stderr
    # The line that belongs into the file comes with it.
    assert f"{name}: {{partitions: 2, config: {{retention.ms: " in made.stderr
    yield name
    bus.run("topic", "delete", name, "--yes")


def test_a_topic_is_made_described_widened_measured_and_deleted(bus: Bus, site: Site, topic: str) -> None:
    (row,) = [row for row in bus.json("topic", "list") if row["topic"] == topic]
    assert (row["partitions"], row["under_replicated"], row["declared"]) == (2, 0, False)
    told = bus.json("topic", "describe", topic)
    assert {"topic": topic, "setting": "retention.ms", "value": "3600000"} in told["settings"]
    for part in told["partitions"]:
        assert part["leader"] in part["in_sync"] and sorted(part["in_sync"]) == sorted(part["replicas"])
        assert len(part["replicas"]) == min(3, site.broker_count)
    refused = bus.run("topic", "alter", topic, "--partitions", "4")
    assert refused.returncode == 2 and "order is lost" in refused.stderr
    assert bus.json("topic", "alter", topic, "--partitions", "4", "--yes")["partitions"] == 4
    fewer = bus.run("topic", "alter", topic, "--partitions", "1", "--yes")
    assert fewer.returncode == 2 and "cannot take any away" in fewer.stderr
    assert [row["partition"] for row in bus.json("topic", "offsets", topic)] == [0, 1, 2, 3]
    kept = bus.run("topic", "delete", topic)
    assert kept.returncode == 2 and f"topic delete {topic} --yes" in kept.stderr
    bus.done("topic", "delete", topic, "--yes")
    assert topic not in [row["topic"] for row in bus.json("topic", "list")]


def test_the_size_of_a_topic_is_what_its_copies_take_on_the_brokers_disks(
    bus: Bus, site: Site, topic: str, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    written.write_bytes(os.urandom(WRITTEN_BYTES))
    before = on_disks(bus)
    assert bus.json("topic", "size", topic)[0]["with_copies_bytes"] == 0
    bus.done("produce", topic, "--whole-file", str(written), "--partition", "1")
    grown = on_disks(bus) - before
    (size,) = bus.json("topic", "size", topic)
    copies = min(3, site.broker_count)
    assert WRITTEN_BYTES < size["size_bytes"] < WRITTEN_BYTES + OVERHEAD_BYTES
    assert size["with_copies_bytes"] == copies * size["size_bytes"]
    assert (size["largest_partition"], size["largest_bytes"]) == (1, size["size_bytes"])
    # Whatever else brokers write down meanwhile is small.
    assert size["with_copies_bytes"] <= grown < size["with_copies_bytes"] + WRITTEN_BYTES


def on_disks(bus: Bus) -> int:
    """What all partitions take on the disks of all brokers."""
    return sum(row["size_bytes"] for row in bus.json("broker", "log-dirs"))


def test_trim_shows_what_would_go_and_takes_it_with_yes(bus: Bus, topic: str) -> None:
    written = bus.run("produce", topic, "--whole-file", str(bus.file), "--partition", "1")
    assert written.returncode == 0, written.stderr
    planned = bus.run("topic", "trim", topic, "--before", "end")
    assert planned.returncode == 2 and "1 records" in planned.stderr
    assert [row["start"] for row in bus.json("topic", "offsets", topic)] == [0, 0]
    trimmed = bus.json("topic", "trim", topic, "--before", "end", "--yes")
    assert [row["new_start"] for row in trimmed] == [0, 1]
    assert [row["start"] for row in bus.json("topic", "offsets", topic)] == [0, 1]


def test_a_topic_that_is_not_there_is_named_with_one_like_it(bus: Bus) -> None:
    ended = bus.run("topic", "describe", "order")
    assert ended.returncode == 1
    assert "there is no topic 'order'" in ended.stderr and "did you mean orders?" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_user_without_the_right_is_told_so(bus: Bus) -> None:
    ended = bus.run("topic", "create", "cmd-never", "--user", "stock")
    assert ended.returncode == 1
    assert (
        "TOPIC_AUTHORIZATION_FAILED" in ended.stderr
        and "does the file let this user do that?" in ended.stderr
    )


def test_a_copy_is_not_changed_at_the_standby(bus: Bus) -> None:
    for words in (
        ("topic", "alter", "accounts", "--partitions", "9", "--yes"),
        ("topic", "trim", "accounts", "--before", "end", "--yes"),
        ("topic", "delete", "accounts", "--yes"),
        ("produce", "accounts"),
    ):
        ended = bus.run(*words, "--site", "b")
        assert ended.returncode == 2 and "is a copy" in ended.stderr and "--site a" in ended.stderr, words


def test_the_quorum_has_a_leader_and_every_node(bus: Bus, site: Site) -> None:
    told = bus.json("quorum")
    roles = [row["role"] for row in told["replicas"]]
    assert roles.count("leader") == 1 and roles.count("observer") == site.broker_count
    assert told["quorum"]["leader"] == next(
        row["node"] for row in told["replicas"] if row["role"] == "leader"
    )


def test_elect_leaves_every_partition_with_its_preferred_leader(bus: Bus) -> None:
    bus.done("elect")
    assert bus.json("elect", "--dry-run") == []
