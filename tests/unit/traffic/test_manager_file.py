"""What the traffic manager takes the bus for when it carries out a move, and when it looks again."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.sites.home import Home
from twinlog.spec.load import load
from twinlog.traffic.decide import Nothing, Wait
from twinlog.traffic.manager import TURN_S, pause_s, read_anew

FILE = "bus: orders\nkafka_version: 4.2.1\nsites:\n  a: {brokers: 1}\n"


def test_move_goes_by_the_file_as_it_is_then_and_not_by_one_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "twinlog.yaml"
    file.write_text(FILE)
    began = Home(load(file, {}).bus, file)
    file.write_text(FILE.replace("4.2.1", "4.3.1"))
    assert read_anew(began).bus.kafka_version_of("a") == "4.3.1"
    file.write_text(FILE.replace("4.2.1", "soon"))
    assert read_anew(began).bus.kafka_version_of("a") == "4.2.1"
    file.unlink()
    assert read_anew(began) is began


def test_pause_ends_when_what_is_waited_for_is_due() -> None:
    assert pause_s(Wait("failing", 10.1), 10.0) == pytest.approx(0.1)
    assert pause_s(Wait("failing", 20.0), 10.0) == TURN_S
    assert pause_s(Wait("a moment that has passed", 9.0), 10.0) == TURN_S
    assert pause_s(Nothing("all is well"), 10.0) == TURN_S
