"""Another Kafka by a line of the file: planned, rolled, there and back, then finalised, with no way back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.conftest import Bus, MakeBus
from twinlog.sites import levels
from twinlog.spec.model import KAFKA_VERSION, KafkaVersion
from twinlog.wire import quorum
from twinlog.wire.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]  # another Kafka, with an archive of its own

OLD: KafkaVersion = "4.2.1"
FILE = """\
bus: upgraded
kafka_version: {version}
kafka: {{broker.session.timeout.ms: 2s}}
sites:
  a: {{brokers: 1, memory: 256MB, controller_memory: 128MB}}
topics:
  orders: {{partitions: 1}}
"""
EXIT_USAGE, EXIT_FINDINGS = 2, 3
TOO_OLD = f"level {levels.LEVELS[KAFKA_VERSION]} and Kafka {OLD} knows {levels.LEVELS[OLD]} at most"


def declare(bus: Bus, version: KafkaVersion) -> None:
    bus.file.write_text(FILE.format(version=version))


def level(bus: Bus) -> int:
    """What the site says of its metadata."""
    with Cluster(bus.home().admin_access("a")) as cluster:
        return quorum.features(cluster).levels[quorum.METADATA_VERSION]


def planned(bus: Bus) -> list[Any]:
    return [step["what"] for step in bus.json("plan", exit_code=EXIT_FINDINGS)]


def refused(bus: Bus, *args: str) -> None:
    """A command tells why the old version cannot run, and what the file has to say."""
    ended = bus.run(*args)
    assert ended.returncode == EXIT_USAGE, ended.stderr
    assert TOO_OLD in ended.stderr
    assert f"hint: kafka_version: {KAFKA_VERSION}" in ended.stderr


def test_file_with_another_version_changes_it_and_the_level_goes_one_way_only(make_bus: MakeBus) -> None:
    bus = make_bus(FILE.format(version=OLD))
    assert level(bus) == levels.LEVELS[OLD]
    declare(bus, KAFKA_VERSION)
    nodes = ("a/controller-901", "a/broker-1")
    assert planned(bus) == [f"restart {node}: kafka_version {OLD} → {KAFKA_VERSION}" for node in nodes]
    bus.done("apply")
    assert level(bus) == levels.LEVELS[OLD]
    (raising,) = planned(bus)
    assert raising.startswith("raise the metadata from level")

    declare(bus, OLD)
    bus.done("apply")
    declare(bus, KAFKA_VERSION)
    bus.done("apply", "--yes")
    assert level(bus) == levels.LEVELS[KAFKA_VERSION]
    bus.done("plan")

    declare(bus, OLD)
    assert any(TOO_OLD in what for what in planned(bus))
    refused(bus, "apply")
    refused(bus, "broker", "roll", "--site", "a")
    bus.done("down")
    refused(bus, "up")
    declare(bus, KAFKA_VERSION)
    bus.done("up")
    bus.done("plan")
