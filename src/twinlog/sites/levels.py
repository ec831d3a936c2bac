"""How far the metadata of a site is, and which versions of Kafka understand it.

A new version of Kafka runs on metadata of the old one's level until somebody raises the level; before that
the old version can come back, after that it cannot. `plan` shows the raise and refuses the way back; `up`
and `broker roll` refuse it too, by what is on the disks, because there may be nobody to ask.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.errors import UsageError
from twinlog.sites import remains
from twinlog.sites.layout import SiteLayout
from twinlog.spec.model import KAFKA_VERSION, KafkaVersion

# metadata.version as each version's storage tool sets it, and the highest that it knows.
LEVELS: Mapping[KafkaVersion, int] = {"4.2.1": 29, "4.3.1": 30}


def version_for(level: int) -> KafkaVersion:
    """The oldest version of ours that understands a level; the newest if none does."""
    return next((version for version, highest in LEVELS.items() if level <= highest), KAFKA_VERSION)


def problem(version: KafkaVersion, level: int | None) -> str:
    """Why a version of Kafka cannot run on metadata of a level; empty if it can or nobody knows."""
    if level is None or level <= LEVELS[version]:
        return ""
    return f"its metadata has level {level} and Kafka {version} knows {LEVELS[version]} at most"


def hint(level: int) -> str:
    """What the file has to say for a site of that level."""
    return f"kafka_version: {version_for(level)}"


def on_disks(layout: SiteLayout) -> int | None:
    """The highest level that a node of a site on this machine has heard of; None if none can say."""
    found = [remains.metadata_level(node.data[0]) for node in layout.local_nodes]
    return max((level for level in found if level is not None), default=None)


def refuse_older(layout: SiteLayout, version: KafkaVersion) -> None:
    """Refuse to start a version of Kafka that does not understand what is on the disks."""
    if version == KAFKA_VERSION:
        return  # the newest understands all, and a start need not read the metadata
    level = on_disks(layout)
    if level is not None and (why := problem(version, level)):
        raise UsageError(
            f"Kafka {version} cannot run site {layout.name}: {why}",
            where=f"site {layout.name}",
            hint=hint(level),
        )
