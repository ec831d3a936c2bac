"""A rolling restart as a command: begun, written down, gone on with after a crash.

For `twinlog broker roll`. What one restart needs stands in `sites.rolling`; here is which nodes are meant,
what is refused before anything is stopped, and the journal by which a killed roll does only what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from twinlog.errors import SiteError, UsageError
from twinlog.progress import Progress
from twinlog.sites import holds, levels, processes, rolling
from twinlog.sites.home import Home
from twinlog.sites.layout import SiteLayout
from twinlog.sites.roll_journal import Progressed, RollJournal


@dataclass(frozen=True)
class Rolled:
    """What came of a roll."""

    restarted: tuple[int, ...]  # in this order, by this command
    before: tuple[int, ...]  # by one that was killed


def roll(
    home: Home,
    site: str,
    node_ids: Sequence[int],
    progress: Progress,
    *,
    timeout_s: float = rolling.IN_SYNC_TIMEOUT_S,
    anew: bool = False,
) -> Rolled:
    """Restart these nodes of a site, or all of them; one that was killed goes on unless told not to."""
    home.must_run(site, "restart nodes of")
    layout = home.layout(site)
    journal = RollJournal(home, site)
    found = None if anew else journal.read()
    wanted = tuple(layout.node(number).id for number in node_ids) or tuple(node.id for node in layout.nodes)
    if found is None:
        found = Progressed(datetime.now(UTC).isoformat(timespec="seconds"), wanted)
    elif node_ids and set(node_ids) != set(found.nodes):
        listed = ", ".join(map(str, found.left))
        raise UsageError(
            f"a rolling restart that began at {found.began} is unfinished; it has {listed} left",
            where=f"site {site}",
            hint=f"to go on: twinlog broker roll --site {site}; to forget it: add --anew",
        )
    else:
        progress.note(f"going on with the restart of {found.began}: {len(found.done)} nodes are done")
    _refuse_down(layout)
    levels.refuse_older(layout, home.bus.kafka_version_of(site))
    journal.write(found)
    restarted: list[int] = []

    def done(node: int) -> None:
        journal.note_done(node)
        restarted.append(node)

    known = {node.id for node in layout.nodes}
    left = [node for node in found.left if node in known]
    rolling.roll(home, site, left, progress, timeout_s=timeout_s, done=done)
    journal.end()
    return Rolled(tuple(restarted), found.done)


def _refuse_down(layout: SiteLayout) -> None:
    """A node that is down for another reason is no business of a roll."""
    running = processes.find(layout.local_nodes)
    for node in layout.local_nodes:
        if node.id not in running and holds.reason(node) != rolling.WHY_HELD:
            raise SiteError(
                f"nothing was restarted, because {node.name} does not run",
                where=f"site {layout.name}",
                hint=f"twinlog up --site {layout.name}",
            )
