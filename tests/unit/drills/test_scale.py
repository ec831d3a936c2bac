"""A drill of half an hour makes a million operations; judging them must not take longer than a coffee."""

from __future__ import annotations

import time

import pytest

from tests.unit.drills.story import Story
from twinlog.drills.promises import ALWAYS
from twinlog.drills.verdict import About, judge

MOST_CPU_S = 30.0  # six on a busy laptop


@pytest.mark.slow
def test_million_operations_are_judged_in_seconds() -> None:
    story = Story()
    for number in range(250_000):
        story.write(f"java-{number % 8}", key=number % 16, acks="twin" if number % 3 else "all")
        if number % 1000 == 999:
            story.read()
        if number % 50_000 == 49_999:
            story.switchover()
    history = story.history()
    began_s = time.process_time()
    verdict = judge(history, ALWAYS, About("large"))
    assert time.process_time() - began_s < MOST_CPU_S
    assert verdict.passed
    assert len(history.writes) + len(history.reads) + len(history.finals) == 1_000_000
