"""What a site's controllers have recorded of a topic: every set of copies in sync that it ever had.

Who asks a broker now and then may miss what was so for a moment between two answers. Nothing is in sync,
or no longer, before the controllers have written it down, so their log misses nothing. It is read with
Kafka's own tool from all controllers: one whose disk was replaced may begin later than the others.
"""

from __future__ import annotations

import json
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from twinlog.progress import Silent
from twinlog.sites import local
from twinlog.sites.layout import Kind, SiteLayout
from twinlog.sites.storage import METADATA_LOG

DUMPER = "org.apache.kafka.tools.DumpLogSegments"
DUMP_TIMEOUT_S = 120.0
PAYLOAD = " payload: "
MADE, CHANGED = "PARTITION_RECORD", "PARTITION_CHANGE_RECORD"


class InSync(NamedTuple):
    """The copies of a partition that are in sync from this record of the metadata on."""

    offset: int
    partition: int
    is_made: bool  # the partition begins here
    brokers: tuple[int, ...]


def recorded(lines: Iterable[str], topic: UUID) -> Iterator[InSync]:
    """What the tool's lines say of one topic."""
    name = urlsafe_b64encode(topic.bytes).decode().rstrip("=")
    for line in lines:
        place, found, payload = line.partition(PAYLOAD)
        if not found:
            continue
        record: dict[str, Any] = json.loads(payload)
        data = record["data"]
        # A change that leaves the set as it is does not name it.
        if record["type"] in (MADE, CHANGED) and data["topicId"] == name and data.get("isr") is not None:
            offset = int(place.split("offset: ")[1].split()[0])
            yield InSync(offset, data["partitionId"], record["type"] == MADE, tuple(data["isr"]))


def in_sync(layout: SiteLayout, topic: UUID) -> list[InSync]:
    """All that is written down at any controller, each record once, in their order."""
    controllers = [node for node in layout.nodes if node.kind is Kind.CONTROLLER]
    found = [
        one
        for node in controllers
        for data in node.data
        for segment in sorted((data / METADATA_LOG).glob("*.log"))
        for one in recorded(_dumped(str(segment)), topic)
    ]
    return sorted(set(found))


def _dumped(segment: str) -> list[str]:
    command = [*local.ensure_kafka(Silent()).command(), DUMPER, "--cluster-metadata-decoder"]
    ended = subprocess.run(
        [*command, "--files", segment], capture_output=True, text=True, timeout=DUMP_TIMEOUT_S, check=True
    )
    return ended.stdout.splitlines()
