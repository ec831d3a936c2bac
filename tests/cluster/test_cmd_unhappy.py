"""Every command on a real site where the topic, the group, the broker or the right is missing.

Where nobody answers, and where an answer does not come in time, is in `tests/program`; where one broker of
several is down in `test_broker_moves.py`, where one hangs in `test_broker_hangs.py`. The program runs in
this process: its start alone would take minutes for so many.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.cluster.conftest import Bus, Site
from tests.site_commands import BROKER, EVERY, GROUP, TOPIC, words_of
from twinlog.cli import app

pytestmark = pytest.mark.cluster

NO_TOPIC = f"there is no topic '{TOPIC}'"
NO_GROUP = f"there is no group '{GROUP}'"
NO_ID = f"no coordinator knows the transactional id '{GROUP}'"
# What is said where the name does not exist; the others have no name that could be wrong.
SAID = {
    **{name: NO_TOPIC for name, words in EVERY.items() if TOPIC in words and name != "topic create"},
    **{f"group {name}": NO_GROUP for name in ("delete", "describe", "lag", "members", "reset")},
    "transactions abort": NO_ID,
    "transactions describe": NO_ID,
    "broker api-versions": f"broker {BROKER}",
    "broker log-dirs": f"broker {BROKER}",
}
# What a user may ask who may read one topic and nothing else; there is no leader to be elected.
ALLOWED = {
    *("topic list", "topic offsets", "consume", "events check", "producers", "elect"),
    *("group list", "transactions list", "broker api-versions"),
}
NO_RIGHT = "AUTHORIZATION_FAILED"


class Calls:
    """Runs command lines in this process and keeps what was not as it should be."""

    def __init__(self, bus: Bus, capsys: pytest.CaptureFixture[str]) -> None:
        self._file = str(bus.file)
        self._capsys = capsys
        self.wrong: list[str] = []

    def refused(self, words: tuple[str, ...], said: str) -> None:
        """It must end with code 1, say this, and give a hint."""
        code = app.run([*words, "-f", self._file])
        told = self._capsys.readouterr()
        if code != 1 or said not in told.err or "hint:" not in told.err or "bug" in told.err:
            self.wrong.append(f"{' '.join(words)}: {code}\n{told.out}{told.err}")

    def answered(self, words: tuple[str, ...]) -> None:
        """It must end well, or with findings."""
        code = app.run([*words, "-f", self._file])
        told = self._capsys.readouterr()
        if code not in (0, 3):
            self.wrong.append(f"{' '.join(words)}: {code}\n{told.out}{told.err}")


@pytest.fixture
def calls(bus: Bus, capsys: pytest.CaptureFixture[str]) -> Iterator[Calls]:
    """All that was wrong is shown at once."""
    made = Calls(bus, capsys)
    yield made
    assert made.wrong == [], "\n".join(made.wrong)


def test_what_is_not_there_is_named_with_a_hint(calls: Calls) -> None:
    for command, said in SAID.items():
        calls.refused((*words_of(command), "--timeout", "5"), said)


def test_a_right_that_is_missing_is_named_with_a_hint_and_nothing_is_changed(
    bus: Bus, site: Site, calls: Calls
) -> None:
    topic = f"cmd-{uuid.uuid4().hex[:8]}"
    bus.done("topic", "create", topic, "--partitions", "1")
    bus.done("produce", topic, "--whole-file", str(bus.file))
    bus.done("user", "grant", "stock", "--consume", topic)
    there = {TOPIC: topic, BROKER: str(site.bus.home().layout("a").brokers[0].id)}
    for command in EVERY:
        words = tuple(there.get(word, word) for word in words_of(command))
        as_stock = (*words, "--user", "stock", "--timeout", "5")
        if command in ALLOWED:
            calls.answered(as_stock)
        else:
            # Groups that a user may not see are not there for it.
            calls.refused(as_stock, NO_GROUP if SAID.get(command) == NO_GROUP else NO_RIGHT)
    (row,) = [row for row in bus.json("topic", "offsets", topic)]
    assert (row["partition"], row["start"], row["end"]) == (0, 0, 1)
    bus.done("user", "revoke", "stock", "--consume", topic)
    bus.done("topic", "delete", topic, "--yes")
