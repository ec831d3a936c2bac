"""`link verify` on a bus: which partitions, from where, how fast."""

from __future__ import annotations

from collections.abc import Collection

from twinlog.errors import UsageError
from twinlog.mirror import verify as comparing
from twinlog.mirror.checkpoint import VerifyState
from twinlog.mirror.link import directory, sides
from twinlog.mirror.pace import Pace
from twinlog.mirror.report import Report
from twinlog.progress import Progress
from twinlog.sites.home import Home
from twinlog.spec.units import UnitError, parse_rate
from twinlog.wire import topics
from twinlog.wire.cluster import Cluster

CHECKPOINT = "verified.json"


def verify(
    home: Home, names: Collection[str], *, again: bool, max_rate: str | None, progress: Progress
) -> Report:
    """Compare the mirrored topics, or the named ones of them, at both sites."""
    mirrored = [name for name, topic in home.bus.topics.items() if topic.mirror]
    for name in names:
        if name not in mirrored:
            known = ", ".join(mirrored) or "none"
            raise UsageError(
                f"topic '{name}' is not mirrored", where=str(home.file), hint=f"mirrored: {known}"
            )
    path = directory(home) / CHECKPOINT
    if again:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    state = VerifyState(path)
    here, there = sides(home)
    with Cluster(home.admin_access(here)) as active, Cluster(home.admin_access(there)) as standby:
        partitions = [
            (topic.name, number)
            for topic in topics.describe(active, sorted(names or mirrored))
            for number in range(len(topic.partitions))
        ]
        report = comparing.verify(
            active, standby, partitions, state=state, pace=Pace(_rate(max_rate)), progress=progress
        )
    state.save()
    return report


def _rate(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(parse_rate(text))
    except UnitError as error:
        raise UsageError(str(error), where="--max-rate", hint=error.hint) from error
