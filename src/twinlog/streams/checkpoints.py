"""The checkpoint of one query, and what belongs to it: its run, its term, the ends of what it has written.

All of it lies together, where the file says, so that whoever finds the checkpoint finds the rest. The
`run` tells a checkpoint from one that was here before: progress in topics, tables and lakes bears it.
The `term` is that of the site at which the query last ran. `ends` says, for the last batches, how far
the output was when they were done.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from pyspark.sql import SparkSession

from twinlog.streams import rewinding
from twinlog.streams.files import Files
from twinlog.streams.places import Place
from twinlog.streams.rewinding import History, Offsets

CHECKPOINT = "checkpoint"
_RUN, _TERM, _ENDS = "run", "term", "ends.json"
_OFFSETS, _COMMITS, _STATE = (f"{CHECKPOINT}/{name}" for name in ("offsets", "commits", "state"))


class Checkpoint:
    """What one query remembers."""

    def __init__(self, spark: SparkSession, place: Place) -> None:
        self._files = Files(spark, place.checkpoints)
        self._ends: dict[int, Offsets] | None = None
        self.location = f"{place.checkpoints}/{CHECKPOINT}"

    def run(self) -> str:
        """What tells this checkpoint from one that was here before."""
        found = self._files.read(_RUN)
        if found is None or not self._files.exists(CHECKPOINT):
            return self.renew()
        return found

    def renew(self) -> str:
        """Begin a new run."""
        made = uuid.uuid4().hex[:12]
        self._files.write(_RUN, made)
        return made

    @property
    def term(self) -> int | None:
        """The term of the site at which the query last ran; None if it never did."""
        found = self._files.read(_TERM)
        return int(found) if found is not None and self._files.exists(CHECKPOINT) else None

    def set_term(self, term: int) -> None:
        """Note that all that is remembered fits to the site of this term."""
        self._files.write(_TERM, str(term))

    def note_ends(self, batch: int, ends: Offsets) -> None:
        """Note how far the output was when a batch was done."""
        if self._ends is None:
            self._ends = rewinding.decode_ends(self._files.read(_ENDS))
        self._ends = {own: told for own, told in self._ends.items() if batch - rewinding.KEPT < own < batch}
        self._ends[batch] = ends
        self._files.write(_ENDS, rewinding.encode_ends(self._ends))

    def history(self) -> History:
        """What is still known of the last batches."""
        planned = {batch: rewinding.read_offsets(self._entry(batch)) for batch in self._batches(_OFFSETS)}
        ends = rewinding.decode_ends(self._files.read(_ENDS))
        return History(planned, frozenset(self._batches(_COMMITS)), ends)

    def go_back(self, batch: int) -> None:
        """Forget all that came behind a batch; the newest first, so that it can be done again half-way."""
        for path in self._files.below(_STATE):
            version = rewinding.state_version(path)
            if version is not None and version > batch + 1:
                self._files.delete(path)
        for directory in (_COMMITS, _OFFSETS):
            for later in sorted(self._batches(directory), reverse=True):
                if later > batch:
                    self._files.delete(f"{directory}/{later}")
        self._ends = None

    def lower(self, points: Mapping[str, Mapping[int, int]]) -> None:
        """Have no batch end beyond these points; for queries without state."""
        for batch in self._batches(_OFFSETS):
            before = self._entry(batch)
            if not rewinding.within(rewinding.read_offsets(before), points):
                name = f"{_OFFSETS}/{batch}"
                self._files.write(name, rewinding.lower_entry(before, points))
                self._files.delete(f"{name}.crc")  # the old one's sum, if Spark keeps sums

    def forget(self) -> None:
        """Forget everything: the query begins anew."""
        for name in (CHECKPOINT, _ENDS, _RUN):
            self._files.delete(name)
        self._ends = None

    def _batches(self, directory: str) -> list[int]:
        return [int(name) for name in self._files.names(directory) if name.isdigit()]

    def _entry(self, batch: int) -> str:
        return self._files.read(f"{_OFFSETS}/{batch}") or ""
