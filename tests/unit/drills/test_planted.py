"""Any story of a bus that works passes; any fault planted in it is found, and its record named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.drills.story import GROUP, PARTITIONS, TOPIC, Story
from twinlog.drills.finding import Finding, Kind
from twinlog.drills.history import (
    Commit,
    Event,
    Extent,
    Final,
    Happening,
    History,
    Operation,
    Outcome,
    Read,
    Salvaged,
    Step,
    Transaction,
    Write,
)
from twinlog.drills.promises import ALWAYS, LostWithinLag
from twinlog.drills.verdict import About, Verdict, judge

PROMISES = (*ALWAYS, LostWithinLag("acks=all only within the lag", frozenset({"all"})))
CLIENTS = (("java-1", True), ("rd-1", False), ("rd-2", True))


def verdict(history: History) -> Verdict:
    return judge(history, PROMISES, About("planted"))


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """A bus that keeps its promises through moves, losses within the lag, retries and transactions."""
    story = Story()
    story.write("twin-1", acks="twin", key=draw(st.integers(0, 3)))
    story.write("java-1", key=0)
    story.read()
    for step in draw(st.lists(st.sampled_from("wwwwwwulnratmf"), max_size=40)):
        key = draw(st.integers(0, 3))
        client, idempotent = draw(st.sampled_from(CLIENTS))
        match step:
            case "w":
                story.write(client, key=key, idempotent=idempotent)
            case "u":
                appended = draw(st.booleans())
                story.write(
                    client, key=key, idempotent=idempotent, outcome=Outcome.UNKNOWN, appended=appended
                )
            case "l":
                story.write(client, key=key, idempotent=idempotent, mirrored=False)
            case "n":
                story.write(client, key=key, idempotent=idempotent, outcome=Outcome.FAILED, appended=False)
            case "r":
                story.read(draw(st.sampled_from(("reader-1", "reader-2"))), commit=True)
            case "a":
                story.transaction(f"a{story.now_s}", [key, key + 1], Step.ABORT)
            case "t":
                story.switchover()  # a transaction is whole when no failover can cut it
                story.transaction(f"t{story.now_s}", [key, key + 1])
            case "m":
                story.switchover()
            case "f":
                story.failover()
    story.switchover()
    story.write("java-1", key=0)
    story.write("java-1", key=0)
    story.write("java-1", key=1)
    story.read("reader-3")
    return story


@given(stories())
def test_story_of_a_bus_that_works_passes(story: Story) -> None:
    told = verdict(story.history())
    assert told.passed, [one for one in told.judged if not one.kept]
    assert {finding.kind for finding in told.findings} <= {Kind.SALVAGED}


@dataclass
class Plant:
    """A history that something is planted in."""

    told: list[Operation]
    active: str
    data: st.DataObject

    def write(self, fits: Callable[[Write], bool] = lambda write: True) -> Write:
        """An acknowledged write that stands in the log."""
        there = {one.value for one in self.finals(self.active)}
        return self.data.draw(
            st.sampled_from(
                [
                    one
                    for one in self.told
                    if isinstance(one, Write)
                    and one.value in there
                    and one.outcome is Outcome.OK
                    and fits(one)
                ]
            )
        )

    def finals(self, site: str) -> list[Final]:
        return [one for one in self.told if isinstance(one, Final) and one.site == site]

    def end(self, partition: int) -> int:
        return max((one.offset for one in self.finals(self.active) if one.partition == partition), default=-1)

    def append(self, value: str, partition: int) -> None:
        offset = self.end(partition) + 1
        self.told += [Final(site, TOPIC, partition, offset, value, 0) for site in ("a", "b")]

    def replace(self, old: Operation, new: Operation) -> None:
        self.told[self.told.index(old)] = new


def lose(plant: Plant) -> str:
    value = plant.write(lambda write: write.acks == "twin").value
    plant.told[:] = [one for one in plant.told if not (isinstance(one, Final) and one.value == value)]
    return value


def duplicate(plant: Plant) -> str:
    write = plant.write()
    assert write.partition is not None
    plant.append(write.value, write.partition)
    return write.value


def copy(plant: Plant) -> str:
    """A plain write stands five times, though its client was disturbed once."""
    now_s = max(one.time_s for one in plant.told) + 1000.0
    write = Write("rd-9", "librdkafka", "all", False, TOPIC, "rd-9:0", Outcome.OK, now_s, now_s + 0.2, "x")
    plant.told += [Event(Happening.FAULT, now_s + 0.1, "a broker killed", {"fault": "late"}), write]
    for _ in range(5):
        plant.append(write.value, 0)
    return write.value


def swap(plant: Plant) -> str:
    """Two writes of a plain client with one key stand in the wrong order, and were answered at once."""
    now_s = max(one.time_s for one in plant.told) + 1.0
    for number in (2, 1):
        value = f"rd-9:{number}"
        plant.told.append(
            Write("rd-9", "librdkafka", "all", False, TOPIC, value, Outcome.OK, now_s, now_s + 0.01, "x")
        )
        plant.append(value, 0)
    return "rd-9:1"


def reorder(plant: Plant) -> str:
    """The last two writes of the story with key 0 change places, and nobody was told their offsets."""
    one, other = [
        write
        for write in plant.told
        if isinstance(write, Write) and (write.client, write.key) == ("java-1", "0")
    ][-2:]
    swap = {one.value: other.value, other.value: one.value}
    for place, told in enumerate(plant.told):
        if isinstance(told, Final):
            plant.told[place] = replace(told, value=swap.get(told.value, told.value))
    for write in (one, other):
        plant.replace(write, replace(write, offset=None))
    return one.value


def invent(plant: Plant) -> str:
    plant.append("stranger:1", plant.data.draw(st.integers(0, PARTITIONS - 1)))
    return "stranger:1"


def refuse(plant: Plant) -> str:
    write = plant.write(lambda write: write.transaction is None)
    plant.replace(write, replace(write, outcome=Outcome.FAILED))
    return write.value


def diverge(plant: Plant) -> str:
    """The standby lacks a record that is not its last one."""
    standby = "b" if plant.active == "a" else "a"
    finals = plant.finals(standby)
    inner = [
        one
        for one in finals
        if any(two.partition == one.partition and two.offset > one.offset for two in finals)
        and any(two.partition == one.partition and two.offset < one.offset for two in finals)
    ]
    gone = plant.data.draw(st.sampled_from(inner))
    plant.told.remove(gone)
    return gone.value


def fall_behind(plant: Plant) -> str:
    """The standby lacks the end of a log."""
    finals = plant.finals("b" if plant.active == "a" else "a")
    last = {one.partition: one for one in sorted(finals, key=lambda one: one.offset) if one.offset > 0}
    gone = plant.data.draw(st.sampled_from(list(last.values())))
    plant.told.remove(gone)
    return gone.value


def not_read(plant: Plant) -> str:
    """Nobody read the standby when all was over."""
    standby = "b" if plant.active == "a" else "a"
    plant.told[:] = [
        one for one in plant.told if not (isinstance(one, Extent | Final) and one.site == standby)
    ]
    return ""


def behead(plant: Plant) -> str:
    """The standby lacks the first record of a log."""
    gone = min(plant.finals("b" if plant.active == "a" else "a"), key=lambda one: (one.offset, one.partition))
    plant.told.remove(gone)
    return gone.value


def give_up_waiting(plant: Plant) -> str:
    """The standby did not get even in time."""
    plant.told.append(Event(Happening.UNEQUAL, 1e4, "the logs do not end alike"))
    return ""


def vanish(plant: Plant) -> str:
    """A reader with read=twin was handed a record that no site has."""
    value = plant.write(lambda write: write.acks == "twin").value
    plant.told[:] = [one for one in plant.told if not (isinstance(one, Final) and one.value == value)]
    plant.told.append(Read("twin-reader", None, TOPIC, 0, 0, value, 1e4, plant.active, twin=True))
    return value


def misplace(plant: Plant) -> str:
    write = plant.write()
    assert write.offset is not None
    plant.replace(write, replace(write, offset=write.offset + 100))
    return write.value


def acknowledge_late(plant: Plant) -> str:
    """The old site acknowledges after the last move."""
    opened = [one for one in plant.told if isinstance(one, Event) and one.what is Happening.OPENED][-1]
    write = plant.write(lambda write: (write.end_s or 0) > opened.time_s)
    plant.replace(write, replace(write, site="b" if plant.active == "a" else "a"))
    return write.value


def read_late(plant: Plant) -> str:
    """A group gets a record that the old site took after the last move; nobody was told of the write."""
    old, now_s = "b" if plant.active == "a" else "a", max(one.time_s for one in plant.told) + 1.0
    late = Write("late", "java", "all", True, TOPIC, "late:0", Outcome.UNKNOWN, now_s, now_s)
    plant.told += [
        late,
        Salvaged(old, TOPIC, 0, 1000, late.value),
        Read("reader", GROUP, TOPIC, 0, 1000, late.value, now_s + 1.0),
    ]
    return late.value


def tear(plant: Plant) -> str:
    """Two more writes of one transaction, of which one is not there."""
    for number in (1, 2):
        plant.told.append(
            Write(
                "torn",
                "java",
                "all",
                True,
                TOPIC,
                f"torn:{number}",
                Outcome.OK,
                1e4,
                1e4,
                transaction="torn",
            )
        )
    plant.told.append(Transaction("torn", "torn", Step.COMMIT, Outcome.OK, 1e4))
    plant.append("torn:1", 0)
    return "torn:2"


def show_aborted(plant: Plant) -> str:
    write = plant.write(lambda write: write.transaction is None)
    plant.replace(write, replace(write, transaction="aborted"))
    plant.told.append(Transaction(write.client, "aborted", Step.ABORT, Outcome.OK, write.time_s))
    return write.value


def rewind(plant: Plant) -> str:
    plant.told.append(Commit("reader", GROUP, TOPIC, 0, 0, 1e4, Outcome.OK))
    return ""


def read_again(plant: Plant) -> str:
    read = plant.data.draw(st.sampled_from([one for one in plant.told if isinstance(one, Read)]))
    plant.told.append(replace(read, time_s=1e4))
    return read.value


def skip(plant: Plant) -> str:
    """The group never gets the last but one record of partition 0."""
    value = next(one.value for one in plant.finals(plant.active) if one.offset == plant.end(0) - 1)
    plant.told[:] = [one for one in plant.told if not (isinstance(one, Read) and one.value == value)]
    return value


PLANTS: dict[Callable[[Plant], str], Kind] = {
    lose: Kind.LOST,
    duplicate: Kind.DUPLICATED,
    copy: Kind.DUPLICATED,
    swap: Kind.REORDERED,
    reorder: Kind.REORDERED,
    invent: Kind.PHANTOM,
    refuse: Kind.PHANTOM,
    diverge: Kind.DIVERGED,
    fall_behind: Kind.BEHIND,
    not_read: Kind.NOT_READ,
    behead: Kind.DIVERGED,
    give_up_waiting: Kind.BEHIND,
    vanish: Kind.VANISHED,
    misplace: Kind.MOVED,
    acknowledge_late: Kind.STALE,
    read_late: Kind.STALE,
    tear: Kind.TORN,
    show_aborted: Kind.ABORTED,
    rewind: Kind.REWOUND,
    read_again: Kind.REREAD,
    skip: Kind.SKIPPED,
}


def test_every_kind_that_can_break_a_promise_is_planted() -> None:
    """Losses that salvage has are part of honest stories; whether they were allowed is the verdict's."""
    harmless = {kind for kind in Kind if Finding(kind, "").is_harmless}
    assert set(PLANTS.values()) == set(Kind) - harmless - {Kind.SALVAGED}


@given(st.data(), stories(), st.sampled_from(list(PLANTS)))
def test_planted_fault_fails_the_drill_and_names_exactly_its_record(
    data: st.DataObject, story: Story, plant: Callable[[Plant], str]
) -> None:
    named = ""

    def change(told: list[Operation]) -> None:
        nonlocal named
        named = plant(Plant(told, story.active, data))

    told = verdict(story.history(change))
    assert not told.passed
    assert [one.value for one in told.findings if one.kind is PLANTS[plant]] == [named]
    # Whatever else is found, but for honest losses, is about the same record: torn and lost, say.
    assert {one.value for one in told.findings if one.kind is not Kind.SALVAGED} == {named}
