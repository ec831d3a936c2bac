"""Both reports: everything found is in them, nothing is wider than 80 columns, nothing escapes."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.drills.story import Story
from twinlog.drills.cast import EVERYBODY
from twinlog.drills.history import Event, Final, Happening, History, Outcome, Read, Write
from twinlog.drills.marks import Mark, laid_out
from twinlog.drills.page import FINDINGS_SHOWN, page
from twinlog.drills.plot import CHARACTER_PX, timeline
from twinlog.drills.promises import ALWAYS, Within
from twinlog.drills.report import COLUMNS, terminal
from twinlog.drills.verdict import About, Verdict, judge

HOSTILE = '<script>alert("1")</script>&\x1b[2J\r\n\u202e\udc80全角'
ABOUT = About("site-dies", 5, {"kafka": "4.3.1"}, {"promote": "automatic"})


def eventful() -> Verdict:
    """A drill with a switchover, a failover, losses and a phantom."""
    story = Story()
    for number in range(40):
        story.write("java-1", key=number % 3)
        story.write("twin-1", key=number % 2, acks="twin")
        story.event(Happening.LAG, records=number, seconds=0.1)
        if number == 15:
            story.read()
            story.switchover()
    lost = [story.write("rd-1", key=1, mirrored=False) for _ in range(3)]
    story.failover()
    story.write("java-1", key=0)
    story.write("rd-1", key=1)
    story.read()
    verdict = judge(story.with_value_at(900, "ghost"), [*ALWAYS, Within("back in 8 s", 8.0)], ABOUT)
    assert {finding.value for finding in verdict.findings} == {*lost, "ghost"}
    return verdict


def named(text: str) -> Verdict:
    """A drill in which every name and value is this text."""
    write = Write(text, text, text, True, text, f"{text}:1", Outcome.OK, 1.0, 2.0, text, None, text, 0, 0)
    events = [
        Event(Happening.OPENED, 0.5, text, {"site": text}),
        Event(Happening.FAULT, 1.5, text, {"fault": text, "site": text}),
        Event(Happening.OPENED, 2.5, text, {"site": text}),
    ]
    history = History.of([write, *events, Final(text, text, 0, 5, f"{text}:2", 0)])
    return judge(history, [Within(text, 1.0)], About(text, None, {text: text}, {text: text}))


class Page(HTMLParser):
    """What a browser would see of a page: elements, links, and text."""

    VOID = frozenset({"meta", "link", "br"})

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def test_terminal_report_has_verdict_promises_findings_and_settings() -> None:
    verdict = eventful()
    text = terminal(verdict)
    assert text.startswith("drill site-dies: FAIL (")
    flat = " ".join(text.split())
    for word in ("Found: phantom (1)", "ghost", "rd-1:2", "BROKEN", "kafka", "automatic", "switchover to b"):
        assert word in flat
    assert max(map(len, text.splitlines())) <= COLUMNS


def test_names_of_the_whole_cast_stand_unbroken_in_the_terminal() -> None:
    """With times of minutes and counts of hundred thousands beside them."""
    story = Story()
    for client in EVERYBODY:
        if client.writes:
            story.write(client.name, acks=client.acks)
    story.tick(300.0)
    for client in EVERYBODY:
        if not client.writes:
            read = Read(client.name, client.group, "orders", 0, 0, "java-all:0", story.tick())
            story.told.append(read)
    story.switchover()
    verdict = judge(story.history(), ALWAYS, ABOUT)
    many = [
        replace(one, kind=one.kind and "librdkafka", successes=987_654) for one in verdict.figures.clients
    ]
    told = terminal(replace(verdict, figures=replace(verdict.figures, clients=tuple(many))))
    words = {line.split()[0]: line.split() for line in told.splitlines() if line.strip()}
    for client in EVERYBODY:
        kind = "librdkafka" if client.writes else "group"
        assert words[client.name][1] == kind
    assert max(map(len, told.splitlines())) <= COLUMNS


def test_page_has_all_promises_findings_events_and_figures() -> None:
    verdict = eventful()
    parsed = Page(page(verdict))
    text = " ".join("".join(parsed.text).split())
    for judged in verdict.judged:
        assert judged.says in text
        assert judged.measured in text
    for finding in verdict.findings:
        assert finding.what in text
        assert finding.last_seen in text
    for client in verdict.figures.clients:
        assert client.name.removeprefix("group ") in text
    assert not parsed.open
    assert parsed.tags.count("svg") == 2
    assert len(set(parsed.ids)) == len(parsed.ids) == 4


def test_page_needs_nothing_from_anywhere() -> None:
    source = page(eventful())
    parsed = Page(source)
    assert parsed.links == ["data:,"]
    assert not re.search(r"https?:|@import|url\(", source)
    assert "script" not in parsed.tags


def test_names_and_values_of_any_kind_are_escaped_in_the_page() -> None:
    source = page(named(HOSTILE))
    assert "<script" not in source
    assert 'alert("' not in source
    assert "script" not in Page(source).tags
    assert "\\x1b[2J" in source
    source.encode()  # and it can be written to a file


@given(st.text(min_size=1, max_size=60) | st.just(HOSTILE))
def test_names_and_values_of_any_kind_leave_the_terminal_alone(text: str) -> None:
    shown = terminal(named(text))
    for line in shown.split("\n"):
        assert len(line) <= COLUMNS
        assert line.isprintable()


@given(st.text(min_size=1, max_size=60) | st.just(HOSTILE))
def test_names_of_any_kind_leave_the_page_whole(text: str) -> None:
    assert not Page(page(named(text))).open


def test_long_list_is_cut_off_and_says_so() -> None:
    story = Story()
    story.write()
    history = story.history()
    strangers = tuple(
        Final(site, "orders", 1, number, f"ghost:{number}", 0) for number in range(250) for site in ("a", "b")
    )
    verdict = judge(replace(history, finals=(*history.finals, *strangers)), [], ABOUT)
    source = page(verdict)
    assert source.count("nobody sent it") == FINDINGS_SHOWN
    assert "50 more are in verdict.json." in source
    assert len(verdict.as_json()["findings"]) == 250


@pytest.mark.parametrize("width", [360, 1080])
def test_timeline_is_well_formed_titled_and_stays_in_its_box(width: int) -> None:
    root = ElementTree.fromstring(timeline(eventful(), width, "plot"))
    assert [child.tag for child in root[:2]] == ["title", "desc"]
    box = float(root.attrib["height"])
    for element in root.iter():
        for name, most in (("x", width), ("x1", width), ("x2", width), ("y", box), ("y1", box), ("y2", box)):
            assert 0 <= float(element.attrib.get(name, 0)) <= most
    labels = [one.text for one in root.iter("text") if "label" in one.attrib["class"]]
    expected = "3 site killed" if width == 1080 else "3"
    assert expected in labels


def test_reports_say_why_a_story_was_cut_short_and_which_site_nobody_could_read() -> None:
    story = Story()
    story.write()
    story.event(Happening.UNREAD, "no answer", site="b")
    told = judge(story.history(), (), About("site-dies"), "the manager promotes the standby: not after 240 s")
    text = " ".join(terminal(told).split())
    for shown in (text, page(told)):
        assert "the story did not come to its end: the manager promotes the standby: not after 240 s" in shown
        assert "The last read of b failed: more may be lost." in shown
    assert text.startswith("drill site-dies: FAIL (")


def test_history_without_load_or_events_still_gives_reports() -> None:
    verdict = judge(History(), [], About("nothing"))
    assert "drill nothing: FAIL" in terminal(verdict)
    assert not Page(page(verdict)).open


@given(
    st.lists(st.tuples(st.floats(0, 100), st.text(st.characters(codec="ascii"), max_size=30)), max_size=60),
    st.sampled_from([360, 1080]),
)
def test_labels_never_cover_each_other_nor_leave_the_plot(told: list[tuple[float, str]], width: int) -> None:
    marks = [Mark(number, at_s, Happening.FAULT, text) for number, (at_s, text) in enumerate(sorted(told))]
    labels = laid_out(
        marks, lambda at_s: at_s * width / 100, lambda mark: mark.text, right=width, character_px=CHARACTER_PX
    )
    rows: dict[int, list[tuple[float, float]]] = {}
    for label in labels:
        right = label.left + len(label.text) * CHARACTER_PX
        assert right <= max(width, len(label.text) * CHARACTER_PX) + 1e-6
        assert all(right <= left or label.left >= end for left, end in rows.setdefault(label.row, []))
        rows[label.row].append((label.left, right))


def test_both_reports_say_where_everything_is_and_how_large_the_load_was() -> None:
    verdict = eventful()
    verdict = replace(verdict, figures=replace(verdict.figures, load_per_s=503.6))
    for text in (terminal(verdict), "".join(Page(page(verdict)).text)):
        flat = " ".join(text.split())
        assert "verdict.json, in the directory of the history, has all of this" in flat
        assert "load: 504 writes/s were acknowledged outside disturbances" in flat
