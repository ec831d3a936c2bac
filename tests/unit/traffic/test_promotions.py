"""Failovers are remembered with their points, each once, also when further moves follow."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.sites.home import Home
from twinlog.spec.load import parse
from twinlog.traffic import promotions
from twinlog.traffic.moves import Kind, Move
from twinlog.traffic.promotions import Promotion

FILE = b"bus: mill\nsites: {a: {brokers: 1}, b: {brokers: 1}}\ntopics: {orders: {}}\n"
POINTS = st.dictionaries(
    st.sampled_from(["orders", "payments"]),
    st.dictionaries(st.integers(0, 2), st.integers(0, 9), min_size=1, max_size=3),
    max_size=2,
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    file = tmp_path / "twinlog.yaml"
    return Home(parse(FILE, file, {}).bus, file)


def failover(term: int, points: dict[str, dict[int, int]]) -> Move:
    return Move.begin(Kind.FAILOVER, "mill", ("a", "b"), term, points=points)


def test_failovers_are_read_in_the_order_of_their_terms_each_once(home: Home) -> None:
    assert promotions.read(home) == []
    promotions.note(home, failover(4, {"orders": {0: 9}}))
    promotions.note(home, failover(2, {"orders": {0: 5}}))
    promotions.note(home, failover(4, {"orders": {0: 8}}))  # the step was taken again
    expected = [Promotion(2, {"orders": {0: 5}}), Promotion(4, {"orders": {0: 8}})]
    assert promotions.read(home) == expected


@given(st.lists(POINTS, max_size=4))
def test_lowest_points_are_the_lowest_of_each_partition(many: list[dict[str, dict[int, int]]]) -> None:
    found = promotions.lowest(Promotion(term, points) for term, points in enumerate(many))
    places = {(topic, number) for points in many for topic, own in points.items() for number in own}
    assert {(topic, number) for topic, own in found.items() for number in own} == places
    for topic, number in places:
        told = [points[topic][number] for points in many if number in points.get(topic, {})]
        assert found[topic][number] == min(told)
