"""What a scenario promises, as values that can be held against findings and figures.

Scenarios list them, the verdict judges them. A promise is never kept for want of evidence: one about
writes of an acks level that nobody wrote, or about clients that were not there, is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from twinlog.drills.figures import WRITES, Figures, Passage, lost_age_s
from twinlog.drills.finding import IN_LOGS, LOSSES, Finding, Kind
from twinlog.drills.history import Happening, History, Outcome
from twinlog.drills.index import Index


@dataclass(frozen=True)
class Facts:
    """What a promise is held against."""

    index: Index
    findings: Sequence[Finding]
    figures: Figures

    def acknowledged(self, acks: frozenset[str] | None) -> int:
        """How many writes of some levels were acknowledged; None is all levels."""
        return sum(one.acknowledged for one in self.figures.levels if acks is None or one.acks in acks)

    @property
    def unread(self) -> str:
        """Why nobody can say what is in the logs; empty if both were read from end to end."""
        if not self.index.to_be_read:
            return "unknown: nobody wrote down which sites were to be read in the end"
        sites = " and ".join(sorted(self.index.unread))
        return f"unknown: the last read of {sites} failed" if sites else ""


@dataclass(frozen=True)
class Judged:
    """A promise and whether it was kept: what was measured, and what breaks it or is listed for it."""

    says: str
    kept: bool
    measured: str
    findings: tuple[Finding, ...] = ()
    most_s: float | None = None  # of promises about time: the longest and the median
    median_s: float | None = None


class Promise(Protocol):
    """Something that a scenario promises."""

    def covers(self, finding: Finding) -> bool:
        """True if the promise speaks of this finding, so that no other one needs to."""
        ...

    def judge(self, facts: Facts) -> Judged:
        """Hold the promise against what happened."""
        ...


@dataclass(frozen=True)
class AtMost:
    """At most so many findings of some kinds, of all writes or of some acks levels."""

    says: str
    kinds: frozenset[Kind]
    acks: frozenset[str] | None = None
    most: int = 0

    def covers(self, finding: Finding) -> bool:
        """True if it is of these kinds and levels."""
        return finding.kind in self.kinds and (self.acks is None or finding.acks in self.acks)

    def judge(self, facts: Facts) -> Judged:
        """Count."""
        if self.acks is not None and not facts.acknowledged(self.acks):
            return Judged(self.says, False, f"no write was acknowledged with acks={_levels(self.acks)}")
        found = tuple(finding for finding in facts.findings if self.covers(finding))
        if facts.unread and self.kinds & IN_LOGS:
            return Judged(self.says, False, facts.unread, found)
        return Judged(self.says, len(found) <= self.most, str(len(found)), found)


@dataclass(frozen=True)
class Listed:
    """Findings that the scenario cannot rule out; they are listed, and break nothing.

    With `least` the scenario is about them: with fewer it has shown nothing.
    """

    says: str
    kinds: frozenset[Kind]
    acks: frozenset[str] | None = None
    least: int = 0

    def covers(self, finding: Finding) -> bool:
        """True if it is of these kinds and levels."""
        return finding.kind in self.kinds and (self.acks is None or finding.acks in self.acks)

    def judge(self, facts: Facts) -> Judged:
        """List."""
        found = tuple(finding for finding in facts.findings if self.covers(finding))
        return Judged(self.says, len(found) >= self.least, f"{len(found):,} listed", found)


@dataclass(frozen=True)
class Shown:
    """One client had findings that other promises excuse: else nobody has seen how it fares with them."""

    says: str
    kinds: frozenset[Kind]
    client: str

    def covers(self, finding: Finding) -> bool:
        """It excuses nothing."""
        return False

    def judge(self, facts: Facts) -> Judged:
        """Count."""
        found = sum(one.kind in self.kinds and one.client == self.client for one in facts.findings)
        return Judged(self.says, found > 0, str(found))


@dataclass(frozen=True)
class LostWithinLag:
    """Only writes that the standby did not have yet may be lost, none older than the lag, all salvaged.

    Lag is sampled, so its last value before the fault grows by the time since, and by a margin: in a
    second it cannot grow by more. Without a sample since the site opened nobody knows, and nothing older
    than the fault is excused.
    """

    says: str
    acks: frozenset[str]
    margin_s: float = 1.0
    salvaged: bool = True  # False: the lost site does not return in this scenario

    def covers(self, finding: Finding) -> bool:
        """True if it is a loss at these levels."""
        return finding.kind in LOSSES and finding.acks in self.acks

    def judge(self, facts: Facts) -> Judged:
        """Hold every loss against promotion point, lag and salvage."""
        if not facts.acknowledged(self.acks):
            return Judged(self.says, False, f"no write was acknowledged with acks={_levels(self.acks)}")
        found = tuple(finding for finding in facts.findings if self.covers(finding))
        if facts.unread:
            return Judged(self.says, False, facts.unread, found)
        broken = tuple(finding for finding in found if not self._is_excused(facts, finding))
        kept = f"{len(found)} lost, {sum(one.kind is Kind.SALVAGED for one in found)} of them salvaged"
        if broken:
            return Judged(self.says, False, f"{kept}; {len(broken)} should not be", broken)
        return Judged(self.says, True, kept, found)

    def _is_excused(self, facts: Facts, finding: Finding) -> bool:
        write = facts.index.writes[finding.value]
        place = facts.index.position_of(write)
        if place is None or (self.salvaged and finding.kind is not Kind.SALVAGED):
            return False
        point = facts.index.point_for(write)
        if point is None or place[2] < point:
            return False
        age_s = lost_age_s(facts.index, finding, facts.figures.disturbances)
        return age_s is not None and age_s <= self._allowed_s(facts, write.time_s)

    def _allowed_s(self, facts: Facts, acknowledged_s: float) -> float:
        """The lag when the site was lost that acknowledged something at this time."""
        moves = [one for one in facts.figures.disturbances if one.opened_s is not None]
        began_s = next((one.began_s for one in moves if (one.opened_s or 0) >= acknowledged_s), 0.0)
        opening = facts.index.opening_before(began_s)
        since_s = 0.0 if opening is None else opening.time_s
        samples = [
            (one.time_s, float(one.data["seconds"]))
            for one in facts.index.events(Happening.LAG)
            if since_s <= one.time_s <= began_s and one.data.get("seconds") is not None
        ]
        if not samples:
            return 0.0
        sampled_s, lag_s = samples[-1]
        return lag_s + (began_s - sampled_s) + self.margin_s


@dataclass(frozen=True)
class Within:
    """Every client works again within a time after every disturbance, and half of them within another.

    `by_outage` counts the time between two successes, else from the fault to the first one after it.
    With `acks` it is about writers of these levels only; `only` names those that it is about, `apart`
    those that it is not. With `to` it is about moves to one site: a slow way hides behind a quick one.
    """

    says: str
    most_s: float
    median_s: float | None = None
    does: str = WRITES
    by_outage: bool = False
    acks: frozenset[str] | None = None
    only: frozenset[str] | None = None
    apart: frozenset[str] = frozenset()
    to: str | None = None

    def covers(self, finding: Finding) -> bool:
        """It speaks of time, not of records."""
        return False

    def judge(self, facts: Facts) -> Judged:
        """Time every client's passage through every disturbance."""
        passages = [
            (client.name, passage)
            for client in facts.figures.clients
            if client.does == self.does
            and (self.acks is None or client.acks in self.acks)
            and (self.only is None or client.name in self.only)
            and client.name not in self.apart
            for passage in client.passages
            if self.to is None or passage.disturbance.site == self.to
        ]
        if not passages:
            return Judged(self.says, False, "no client was there to see it")
        times = [(name, self._time_s(passage)) for name, passage in passages]
        never = sorted({name for name, time_s in times if time_s is None})
        if never:
            return Judged(self.says, False, f"never again: {', '.join(never)}")
        known = [(time_s, name) for name, time_s in times if time_s is not None]
        most_s, slowest = max(known)
        middle_s = median(time_s for time_s, _ in known)
        kept = most_s <= self.most_s and (self.median_s is None or middle_s <= self.median_s)
        measured = f"at most {most_s:.2f} s ({slowest}), median {middle_s:.2f} s"
        return Judged(self.says, kept, measured, most_s=most_s, median_s=middle_s)

    def _time_s(self, passage: Passage) -> float | None:
        return passage.outage_s if self.by_outage else passage.rto_s


@dataclass(frozen=True)
class Back:
    """Every client has worked again when all was mended, however long that took."""

    says: str

    def covers(self, finding: Finding) -> bool:
        """It speaks of clients, not of records."""
        return False

    def judge(self, facts: Facts) -> Judged:
        """Look for something that each of them did after the last healing and the last opening."""
        clients = facts.figures.clients
        if not clients:
            return Judged(self.says, False, "no client was there to see it")
        ends = (*facts.index.events(Happening.HEALED), *facts.index.events(Happening.OPENED))
        mended_s = max((one.time_s for one in ends), default=0.0)
        away = sorted(one.name for one in clients if one.last_s <= mended_s)
        return Judged(self.says, not away, f"never again: {', '.join(away)}" if away else "all of them")


@dataclass(frozen=True)
class NoError:
    """No write of some acks levels is refused, or ends without an answer; nor does a transaction of theirs.

    With `groups` no reader of a group is told of an error either. What a library tries again by itself
    is none, nor is what it offers to try again: it is written down without an `error`.
    """

    says: str
    acks: frozenset[str]
    groups: bool = False

    def covers(self, finding: Finding) -> bool:
        """It speaks of answers, not of records."""
        return False

    def judge(self, facts: Facts) -> Judged:
        """Count the answers that were none."""
        history = facts.index.history
        if self.groups and not any(read.group for read in history.reads):
            return Judged(self.says, False, "no group was there to see it")
        bad = [*self._of_writers(history), *(self._of_groups(history) if self.groups else ())]
        said = "0" if not bad else f"{len(bad)}, first {bad[0]}"
        repeated = sum(one.outcome is not Outcome.OK and not one.error for one in history.commits)
        if self.groups and repeated:
            said += f"; {repeated} commits were left to the next one"
        return Judged(self.says, not bad and facts.acknowledged(self.acks) > 0, said)

    def _of_writers(self, history: History) -> Iterator[str]:
        writers = {write.client for write in history.writes if write.acks in self.acks}
        for write in history.writes:
            if write.acks in self.acks and write.outcome is not Outcome.OK:
                yield write.value
        for step in history.transactions:
            if step.client in writers and step.error:
                yield f"{step.step} of {step.transaction} ({step.error})"

    def _of_groups(self, history: History) -> Iterator[str]:
        for event in history.events:
            if event.what is Happening.ERROR:
                yield event.text
        for commit in history.commits:
            if commit.error:
                yield f"commit of group {commit.group} ({commit.error})"


NOT_TWO = AtMost("no site acknowledges after another one opened", frozenset({Kind.STALE}))
# What every scenario promises, whatever it breaks.
ALWAYS: tuple[Promise, ...] = (
    AtMost("no write acknowledged with acks=twin is lost", LOSSES, frozenset({"twin"})),
    AtMost(
        "both sites hold the same log", frozenset({Kind.DIVERGED, Kind.BEHIND, Kind.MOVED, Kind.NOT_READ})
    ),
    AtMost("nothing is there that nobody wrote", frozenset({Kind.PHANTOM, Kind.ABORTED})),
    AtMost("writes stand once, but for what a retry explains", frozenset({Kind.DUPLICATED})),
    AtMost("writes of one key keep their order", frozenset({Kind.REORDERED})),
    NOT_TWO,
)
# What holds as well unless a site is lost.
WITHOUT_FAILOVER: tuple[Promise, ...] = (
    AtMost("no acknowledged write is lost", LOSSES | {Kind.TORN}, frozenset({"1", "all"})),
    AtMost("groups go on at the next record", frozenset({Kind.REWOUND, Kind.REREAD, Kind.SKIPPED})),
)


def _levels(acks: frozenset[str]) -> str:
    return " or ".join(sorted(acks))
