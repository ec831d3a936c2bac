"""Every rule that types cannot say, over a whole bus. Pure.

Called by the loader, which knows where a finding stands in the file. A rule runs only if what it
reads was right by type: `broken` names the parts that were left out, and a rule about them would
report the default instead of what was written.
"""

from __future__ import annotations

from collections.abc import Collection

from twinlog.spec import (
    gate_rules,
    link_rules,
    setting_rules,
    site_rules,
    size_rules,
    stream_rules,
    topic_rules,
    user_rules,
)
from twinlog.spec.document import Path
from twinlog.spec.finding import Finding
from twinlog.spec.model import Bus


def findings(bus: Bus, broken: Collection[Path] = ()) -> list[Finding]:
    """Everything that is wrong or doubtful, in the order of the file's sections; each once."""

    def right(*paths: Path) -> bool:
        return not any(_related(path, other) for path in paths for other in broken)

    found: list[Finding] = []
    kafka, sites = ("kafka",), ("sites",)
    found += setting_rules.broker_settings(bus.kafka, kafka)
    for name in bus.sites:
        if right((*sites, name)):
            found += site_rules.of_site(bus, name)
    if right(("active",)) and _names_known("sites", broken):
        found += site_rules.of_bus(bus)
    if right(sites, ("gate",)):
        found += site_rules.ports(bus)
    if right(sites, kafka):
        found += size_rules.of_bus(bus)
    for topic in bus.topics:
        if right(("topics", topic)):
            found += topic_rules.of_topic(bus, topic)
            if right(sites, kafka):
                found += topic_rules.on_sites(bus, topic)
    found += topic_rules.collisions(bus)
    for user in bus.users:
        if right(("users", user)):
            found += user_rules.of_user(bus, user)
        if right(("users", user, "produce"), ("users", user, "consume")) and _names_known("topics", broken):
            found += user_rules.topics(bus, user)
    if right(("gate",)):
        found += gate_rules.of_gate(bus)
    if right(("link",)):
        found += link_rules.of_link(bus)
    if right(("pipeline",)):
        found += link_rules.of_pipeline(bus)
    if right(("streams",), ("topics",), ("users",)):
        found += stream_rules.of_streams(bus)
    for job in bus.streams:
        if right(("streams", job)) and all(
            _names_known(section, broken) for section in ("topics", "streams")
        ):
            found += stream_rules.of_job(bus, job)
    if right(("certificates",)):
        found += gate_rules.of_certificates(bus)
    return list(dict.fromkeys(found))


def _names_known(section: str, broken: Collection[Path]) -> bool:
    """A site or topic that is wrong inside still has its name; one that is wrong as a whole is left out."""
    return not any(path[:1] == (section,) and len(path[1:]) <= 1 for path in broken)


def _related(path: Path, other: Path) -> bool:
    """Whether one of two paths lies on the way to the other."""
    shorter = min(len(path), len(other))
    return path[:shorter] == other[:shorter]
