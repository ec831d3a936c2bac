"""What a rolling restart has done, written down after every node, so that a killed one goes on.

Kept beside the nodes of its site while the restart is unfinished; `broker roll` makes and ends it. A node
that was restarted and not yet noted is restarted again, which does no harm.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from twinlog.durable import write_text
from twinlog.sites.home import Home

FILE = "rolling.json"


@dataclass(frozen=True)
class Progressed:
    """A rolling restart that is not finished."""

    began: str  # a time in UTC
    nodes: tuple[int, ...]  # all that are to be restarted
    done: tuple[int, ...] = ()

    @property
    def left(self) -> tuple[int, ...]:
        """Nodes whose turn has not come."""
        return tuple(node for node in self.nodes if node not in self.done)


class RollJournal:
    """The unfinished rolling restart of one site, if there is one."""

    def __init__(self, home: Home, site: str) -> None:
        self.path: Path = home.directory / "sites" / site / FILE

    def read(self) -> Progressed | None:
        """What was written; half a file cannot be there, and one that is not ours counts as none."""
        try:
            raw = json.loads(self.path.read_text())
            return Progressed(str(raw["began"]), tuple(raw["nodes"]), tuple(raw["done"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def write(self, progressed: Progressed) -> None:
        """Replace what was written."""
        write_text(self.path, json.dumps(asdict(progressed)) + "\n")

    def note_done(self, node: int) -> None:
        """A node is back and everything in sync."""
        found = self.read()
        if found is not None:
            self.write(replace(found, done=(*found.done, node)))

    def end(self) -> None:
        """Nothing is left to do."""
        self.path.unlink(missing_ok=True)
