"""What the supervisor decides, over any run of events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.sites.supervisor import (
    BACKOFF_S,
    STEADY_S,
    History,
    Seen,
    decide,
    remembered,
)

NODE = "a/broker-1"
WAIT_S = 10.0  # for a thread to start; it takes milliseconds


@dataclass
class Watched:
    """A node and its supervisor in a time of their own."""

    now_s: float = 0.0
    seen: Seen = field(default_factory=lambda: Seen(NODE, running=True))
    history: History = field(default_factory=History)
    said: str = ""
    restarts: list[float] = field(default_factory=list)

    def change(self, **what: object) -> None:
        """Something happens to the node."""
        self.seen = replace(self.seen, **what)  # type: ignore[arg-type]

    def turn(self) -> None:
        """One turn of the supervisor, as its loop takes it."""
        self.history = remembered(self.seen, self.history, self.now_s)
        step = decide(self.seen, self.history, self.now_s)
        self.said = step.why
        if step.restart:
            self.restarts.append(self.now_s)
            self.history = History(self.history.restarts + 1, self.now_s)
            self.seen = replace(self.seen, running=True)


events = st.lists(
    st.one_of(
        st.just({"running": False}),
        st.just({"running": True}),  # somebody brought it up
        st.sampled_from([{"held": "twinlog down", "running": False}, {"held": ""}]),
        st.sampled_from([{"has_disk": False, "running": False}, {"has_disk": True}]),
        st.floats(0.1, 2 * STEADY_S),
    ),
    max_size=60,
)


@given(events)
def test_whatever_happens_a_node_is_restarted_only_if_it_died_by_itself_on_its_own_disk(
    happened: list[dict[str, object] | float],
) -> None:
    watched = Watched()
    for event in happened:
        if isinstance(event, dict):
            watched.change(**event)
        else:
            watched.now_s += event
        before, count = watched.seen, len(watched.restarts)
        watched.turn()
        if len(watched.restarts) > count:
            assert not before.running and not before.held and before.has_disk
        assert watched.said


@given(st.lists(st.floats(0.1, STEADY_S / 2), min_size=1, max_size=200))
def test_a_node_that_keeps_dying_is_restarted_ever_later_and_then_no_more(pauses: list[float]) -> None:
    watched = Watched()
    for pause_s in pauses:
        watched.change(running=False)
        watched.turn()
        watched.now_s += pause_s
    assert len(watched.restarts) <= len(BACKOFF_S)
    for number, (earlier, later) in enumerate(zip(watched.restarts, watched.restarts[1:], strict=False), 1):
        assert later - earlier >= BACKOFF_S[number]


def test_a_crash_loop_is_said_and_stays_until_the_node_has_run_for_a_while() -> None:
    watched = Watched()
    for _ in range(3 * len(BACKOFF_S)):
        watched.change(running=False)
        watched.turn()
        watched.now_s += max(BACKOFF_S)
    assert watched.said == f"crash loop: died {len(BACKOFF_S) + 1} times; not restarted any more"
    watched.now_s += 10 * STEADY_S
    watched.turn()
    assert watched.said.startswith("crash loop")
    watched.change(running=True)
    watched.turn()
    watched.change(running=False)
    watched.turn()
    assert watched.said == f"died; restart 1 of {len(BACKOFF_S)}"


def test_a_node_that_ran_steadily_is_restarted_at_once() -> None:
    watched = Watched()
    for _ in range(20):
        watched.change(running=False)
        watched.turn()
        assert watched.seen.running
        watched.now_s += STEADY_S
        watched.turn()
    assert len(watched.restarts) == 20


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (Seen(NODE, running=True), "runs"),
        (Seen(NODE, running=False, held="a rolling restart"), "held: a rolling restart"),
        (
            Seen(NODE, running=False, has_disk=False),
            "its data directory is gone; it is not formatted again",
        ),
        (Seen(NODE, running=False), "died; restart 1 of 6"),
    ],
)
def test_every_decision_is_a_sentence(seen: Seen, sentence: str) -> None:
    assert decide(seen, History(), 0.0).why == sentence
