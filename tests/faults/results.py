"""The file of faults that were taken and verified: one JSON object a line, never rewritten.

The run appends a slice of faults when its verification is done, with its result; `python -m tests.faults
--table` reads the file back and makes the table of docs/drills.md. A fault counts when it hit what it was
meant to hit and nothing was found wrong afterwards.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.kinds import WANTED, Kind

FILE = Path(__file__).parents[2] / "bench" / "results" / "mirror-faults.jsonl"


@dataclass(frozen=True)
class Verification:
    """What was looked at when a slice was over, and what was found."""

    partitions: int = 0
    offsets: int = 0  # compared by `link verify`
    lines: int = 0  # of the console consumer at the active, read committed
    acknowledged: int = 0  # writes that were looked up
    acknowledged_by_twin: int = 0
    findings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True if there was something to look at, and nothing was wrong with it."""
        return self.lines > 0 and not self.findings


@dataclass(frozen=True)
class Taken:
    """One fault: what was done, when, and how that went."""

    kind: Kind
    seed: int
    slice: int
    at: str  # UTC
    after_s: float  # since the run began
    what: str
    hit: bool = True  # False if the moment was missed: it happened, but does not count
    leader: bool | None = None  # whether the leader of the crowded partition was hit
    told: str = ""  # what the mirror said about it
    seconds: float = 0.0  # until it was mended
    settings: dict[str, Any] = field(default_factory=dict)
    verification: Verification = Verification()

    @property
    def counts(self) -> bool:
        """True if it counts towards its number."""
        return self.hit and self.verification.passed

    def encode(self) -> str:
        """As a line."""
        return json.dumps({**asdict(self), "passed": self.verification.passed}, ensure_ascii=False)

    @classmethod
    def decode(cls, line: str) -> Taken:
        """Out of a line."""
        told = json.loads(line)
        del told["passed"]
        seen = told.pop("verification")
        verification = Verification(**{**seen, "findings": tuple(seen["findings"])})
        return cls(**{**told, "kind": Kind(told["kind"]), "verification": verification})


def append(path: Path, taken: Iterable[Taken]) -> None:
    """Add faults at the end of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{one.encode()}\n" for one in taken)


def read(path: Path) -> list[Taken]:
    """All faults in the file; none if there is no file yet."""
    if not path.exists():
        return []
    return [Taken.decode(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def counted(taken: Iterable[Taken]) -> Counter[Kind]:
    """How many of each kind count."""
    return Counter(one.kind for one in taken if one.counts)


def table(taken: Sequence[Taken]) -> str:
    """The table for people, in Markdown."""
    good = counted(taken)
    heads = ("fault", "what is done", "verified", "of wanted", "failed", "not verified", "moment missed")
    rows = [f"| {' | '.join(heads)} |", "|---|---|--:|--:|--:|--:|--:|"]
    for kind in Kind:
        mine = [one for one in taken if one.kind is kind]
        # A slice that could not be read to its end says nothing about the faults in it.
        unread = sum(one.verification.lines == 0 for one in mine)
        failed = sum(not one.verification.passed for one in mine) - unread
        missed = sum(one.verification.passed and not one.hit for one in mine)
        leaders = sum(one.counts and one.leader is True for one in mine)
        verified = f"{good[kind]}, {leaders} of them the leader" if leaders else str(good[kind])
        rows.append(f"| {kind} | {kind.how} | {verified} | {WANTED} | {failed} | {unread} | {missed} |")
    slices = {(one.seed, one.slice): one.verification for one in taken}
    summary = (
        f"{len(taken)} faults in {len(slices)} slices; compared: "
        f"{sum(one.offsets for one in slices.values()):,} offsets, "
        f"{sum(one.lines for one in slices.values()):,} lines of the console consumer, "
        f"{sum(one.acknowledged for one in slices.values()):,} acknowledged writes, "
        f"{sum(one.acknowledged_by_twin for one in slices.values()):,} of them with `acks=twin`."
    )
    return "\n".join([*rows, "", summary])
