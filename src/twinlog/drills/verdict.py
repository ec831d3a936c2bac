"""The verdict on a drill: every promise held against what the history proves.

`judge` is what the runner calls when the last read is done; the reports and `-o json` show its answer
and nothing else. What a scenario says nothing about must not occur: a finding that no promise speaks of
breaks the drill, and so do a load that wrote nothing and a story that was cut short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from twinlog.drills import series
from twinlog.drills.check import check
from twinlog.drills.figures import ClientFigures, Figures, LevelFigures, measure
from twinlog.drills.finding import Finding, Kind
from twinlog.drills.history import Happening, History
from twinlog.drills.index import Index
from twinlog.drills.promises import Facts, Judged, Promise

STORY_ENDED = "the story comes to its end"
NOTHING_ELSE = "nothing else went wrong"
LOAD_WAS_THERE = "writes were acknowledged, and the active was read to its end"


@dataclass(frozen=True)
class About:
    """What a drill was: its name, and all that is needed to run it again."""

    drill: str
    seed: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """Whether the promises were kept, and everything that says so."""

    about: About
    judged: tuple[Judged, ...]
    findings: tuple[Finding, ...]
    figures: Figures
    index: Index
    cut_short: str = ""  # why the story did not come to its end

    @property
    def passed(self) -> bool:
        """True if every promise was kept."""
        return all(one.kept for one in self.judged)

    @property
    def word(self) -> str:
        """The verdict in one word."""
        return "pass" if self.passed else "fail"

    @property
    def seconds(self) -> float:
        """How long the drill took, from the first operation to the last."""
        return self.index.ended_s - self.index.began_s

    def as_json(self) -> dict[str, Any]:
        """All of it, with every finding."""
        figures, levels = self.figures, self.figures.levels
        began_s = self.index.began_s
        return {
            "drill": self.about.drill,
            "verdict": self.word,
            "cut_short": self.cut_short or None,
            "lost": None if self.index.active in self.index.unread else sum(one.lost for one in levels),
            "salvaged": sum(one.salvaged for one in levels),
            "duplicated": figures.counts.get(Kind.DUPLICATED, 0),
            "repeated": figures.counts.get(Kind.REPEATED, 0),
            "rto_s": {one.name: _rounded(one.rto_s) for one in figures.clients if one.passages},
            "rpo_s": {one.acks: _rounded(one.rpo_s) for one in levels},
            "load_per_s": _rounded(figures.load_per_s),
            "longest_pause_s": _rounded(figures.longest_pause_s),
            "promises": [_promise(one) for one in self.judged],
            "acks": {one.acks: _level(one) for one in levels},
            "clients": [_client(one) for one in figures.clients],
            "disturbances": [
                {
                    "text": one.text,
                    "began_s": _rounded(one.began_s - began_s),
                    "detected_s": _since(one.detected_s, one.began_s),
                    "opened_s": _since(one.opened_s, one.began_s),
                    "opened": one.site or None,
                    "planned": one.planned,
                }
                for one in figures.disturbances
            ],
            "events": [
                {
                    "at_s": _rounded(one.time_s - began_s),
                    "what": one.what.value,
                    "text": one.text,
                    "data": one.data,
                }
                for one in self.index.history.events
                if one.what is not Happening.LAG
            ],
            "timeline": series.as_json(self.index),
            "findings": [finding.as_json() for finding in self.findings],
            "seed": self.about.seed,
            "seconds": _rounded(self.seconds),
            "versions": self.about.versions,
            "settings": self.about.settings,
        }


def judge(history: History, promises: Sequence[Promise], about: About, cut_short: str = "") -> Verdict:
    """Check a history and hold every promise against it; `cut_short` says why it has no proper end."""
    index = Index(history)
    findings = tuple(check(index))
    facts = Facts(index, findings, measure(index, findings))
    judged = [_load_was_there(facts), *(promise.judge(facts) for promise in promises)]
    judged.append(_nothing_else(facts, promises))
    if cut_short:
        judged.insert(0, Judged(STORY_ENDED, False, cut_short))
    return Verdict(about, tuple(judged), findings, facts.figures, index, cut_short)


def _load_was_there(facts: Facts) -> Judged:
    acknowledged = facts.acknowledged(None)
    read = sum(len(log) for log in facts.index.log.values())
    said = f"{acknowledged:,} acknowledged, {read:,} read"
    return Judged(LOAD_WAS_THERE, bool(acknowledged and read), said)


def _nothing_else(facts: Facts, promises: Sequence[Promise]) -> Judged:
    rest = tuple(
        finding
        for finding in facts.findings
        if not finding.is_harmless and not any(promise.covers(finding) for promise in promises)
    )
    kinds = sorted({finding.kind.value for finding in rest})
    return Judged(NOTHING_ELSE, not rest, f"{len(rest)}: {', '.join(kinds)}" if rest else "0", rest)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _since(time_s: float | None, began_s: float) -> float | None:
    return None if time_s is None else _rounded(time_s - began_s)


def _promise(one: Judged) -> dict[str, Any]:
    return {
        "says": one.says,
        "kept": one.kept,
        "measured": one.measured,
        "findings": len(one.findings),
        "most_s": _rounded(one.most_s),
        "median_s": _rounded(one.median_s),
    }


def _level(one: LevelFigures) -> dict[str, Any]:
    return {
        "written": one.written,
        "acknowledged": one.acknowledged,
        "unknown": one.unknown,
        "lost": one.lost,
        "salvaged": one.salvaged,
        "duplicated": one.duplicated,
        "repeated": one.repeated,
        "rpo_s": _rounded(one.rpo_s),
    }


def _client(one: ClientFigures) -> dict[str, Any]:
    return {
        "name": one.name,
        "does": one.does,
        "kind": one.kind,
        "acks": one.acks,
        "successes": one.successes,
        "returned": one.returned,
        "rto_s": _rounded(one.rto_s),
        "longest_pause_s": _rounded(one.longest_pause_s),
        "passages": [
            {
                "disturbance": passage.disturbance.text,
                "outage_s": _rounded(passage.outage_s),
                "first_s": _rounded(passage.first_s),
            }
            for passage in one.passages
        ],
    }
