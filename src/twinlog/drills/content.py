"""What a report says, as titled tables of text: the terminal and the page draw the same ones.

`report` and `page` call it. Nothing is escaped or shortened here; a table that is cut off says how many
rows it leaves out, and the JSON has them all. What nobody could measure is "unknown", and a client that
did not come back has "never" for a time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from twinlog.drills.figures import ClientFigures, Disturbance
from twinlog.drills.finding import Finding, Kind
from twinlog.drills.index import where
from twinlog.drills.marks import marks_of
from twinlog.drills.verdict import Verdict

KEPT, BROKEN = "kept", "BROKEN"
NOT_APPLICABLE = "-"
JSON_FILE = "verdict.json"  # beside the history
ALL_OF_IT = f"{JSON_FILE}, in the directory of the history, has all of this and what was left out."
GROUP_OF = "group "  # before the names of groups, which count as one client each


@dataclass(frozen=True)
class Column:
    """One column: its heading, and whether it holds numbers."""

    heading: str
    right: bool = False


@dataclass(frozen=True)
class Section:
    """One table with a title and a sentence about it; rows may be missing, then `note` says why."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def visible(text: str) -> str:
    """The text with everything as its code that does not show: control characters, half characters."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def headline(verdict: Verdict) -> str:
    """The verdict in one line."""
    return f"drill {verdict.about.drill}: {verdict.word.upper()} ({load(verdict)})"


def load(verdict: Verdict) -> str:
    """How much was done, for how long, and with which seed; before that, why it was not all."""
    acknowledged = sum(one.acknowledged for one in verdict.figures.levels)
    seed = "" if verdict.about.seed is None else f", seed {verdict.about.seed}"
    calm = verdict.figures.load_per_s
    load = "" if calm is None else f"; load: {calm:,.0f} writes/s were acknowledged outside disturbances"
    short = f"the story did not come to its end: {verdict.cut_short}; " if verdict.cut_short else ""
    return f"{short}{acknowledged:,} writes acknowledged in {verdict.seconds:.1f} s{seed}{load}"


def sections(verdict: Verdict, most_findings: int) -> list[Section]:
    """All tables; of each kind of finding the first `most_findings`."""
    found = [
        promises(verdict),
        levels(verdict),
        moves(verdict),
        clients(verdict),
        events(verdict),
        *findings(verdict, most_findings),
        settings(verdict),
    ]
    return [section for section in found if section.rows or section.note]


def promises(verdict: Verdict) -> Section:
    """Every promise, and whether it was kept."""
    rows = tuple((KEPT if one.kept else BROKEN, one.says, one.measured) for one in verdict.judged)
    return Section("Promises", _columns("", "promise", "measured"), rows)


def levels(verdict: Verdict) -> Section:
    """What became of the writes of each acks level."""
    columns = _columns("acks", *(f">{one}" for one in ("sent", "acked", "unknown", "lost", "salvaged")))
    columns += _columns(">twice", ">retries", ">RPO s")
    rows = tuple(
        (
            one.acks,
            *(f"{count:,}" for count in (one.written, one.acknowledged, one.unknown, one.lost, one.salvaged)),
            *(f"{count:,}" for count in (one.duplicated, one.repeated)),
            "unknown" if one.rpo_s is None else f"{one.rpo_s:.2f}",
        )
        for one in verdict.figures.levels
    )
    note = "RPO is the age of the oldest lost write when the fault began. Lost counts salvaged ones too."
    if verdict.index.unread:
        note += f" The last read of {' and '.join(sorted(verdict.index.unread))} failed: more may be lost."
    return Section("Records", columns, rows, note)


def moves(verdict: Verdict) -> Section:
    """What disturbed the bus, and how soon it reacted."""
    began_s = verdict.index.began_s
    rows = tuple(
        (
            one.text,
            f"{one.began_s - began_s:.2f}",
            _since(one.detected_s, one),
            _since(one.opened_s, one),
            one.site or NOT_APPLICABLE,
        )
        for one in verdict.figures.disturbances
    )
    columns = _columns("disturbance", ">at s", ">detected s", ">open s", "site")
    note = "Detection and opening are counted from the fault, or from the fence of a planned move."
    return Section("Disturbances", columns, rows, note if rows else "")


def clients(verdict: Verdict) -> Section:
    """How long each client was without the bus; the worst of all disturbances, and the median outage."""
    columns = _columns("client", "kind", "acks", ">done", ">first", ">outage", ">median", ">pause")
    rows = tuple(
        (
            one.name.removeprefix(GROUP_OF),
            one.kind or (GROUP_OF.strip() if one.name.startswith(GROUP_OF) else NOT_APPLICABLE),
            one.acks or NOT_APPLICABLE,
            f"{one.successes:,}",
            _worst([passage.first_s for passage in one.passages if passage.disturbance.opened_s]),
            _worst([passage.outage_s for passage in one.passages]),
            _median(one),
            f"{one.longest_pause_s:.2f}",
        )
        for one in verdict.figures.clients
    )
    note = (
        "In seconds. First: from the fault or fence to the first acknowledged write, or consumed record, "
        "at the site that opened. Outage: between two across a disturbance. Pause: the longest of all."
    )
    return Section("Clients", columns, rows, note)


def events(verdict: Verdict) -> Section:
    """What happened to the bus, with the numbers of the timeline."""
    rows = tuple((str(one.number), f"{one.at_s:.2f}", one.what.value, one.text) for one in marks_of(verdict))
    return Section("Events", _columns(">no", ">at s", "what", ""), rows)


def findings(verdict: Verdict, most: int) -> list[Section]:
    """What was found, kind by kind."""
    kinds: dict[Kind, list[Finding]] = defaultdict(list)
    for finding in verdict.findings:
        kinds[finding.kind].append(finding)
    return [_findings(kind, kinds[kind], most) for kind in Kind if kind in kinds]


def settings(verdict: Verdict) -> Section:
    """What ran, and how it was set."""
    about = verdict.about
    rows = [("version of " + name, value) for name, value in about.versions.items()]
    rows += list(about.settings.items())
    return Section("Versions and settings", _columns("", ""), tuple(rows), ALL_OF_IT)


def _findings(kind: Kind, found: list[Finding], most: int) -> Section:
    rows = tuple(
        (
            one.value or NOT_APPLICABLE,
            one.acks or NOT_APPLICABLE,
            where(one.position) if one.position else NOT_APPLICABLE,
            one.what,
            one.last_seen,
        )
        for one in found[:most]
    )
    left = len(found) - len(rows)
    note = f"{left:,} more are in {JSON_FILE}." if left else ""
    columns = _columns("record", "acks", "position", "what", "last seen")
    return Section(f"Found: {kind.value} ({len(found):,})", columns, rows, note)


def _columns(*headings: str) -> tuple[Column, ...]:
    return tuple(Column(one.removeprefix(">"), one.startswith(">")) for one in headings)


def _since(time_s: float | None, disturbance: Disturbance) -> str:
    return NOT_APPLICABLE if time_s is None else f"{time_s - disturbance.began_s:.2f}"


def _worst(times: list[float | None]) -> str:
    if not times:
        return NOT_APPLICABLE
    known = [time_s for time_s in times if time_s is not None]
    return f"{max(known):.2f}" if len(known) == len(times) else "never"


def _median(client: ClientFigures) -> str:
    known = [passage.outage_s for passage in client.passages if passage.outage_s is not None]
    return f"{median(known):.2f}" if known else NOT_APPLICABLE
