"""Who runs on which machine: clients beside the site that their name ends with, or away from both."""

from __future__ import annotations

import pytest

from twinlog.drills import apart, partition
from twinlog.drills.cast import GROUP, TWIN, Client, Program
from twinlog.drills.spread import AWAY, side_of

SITES = ("a", "b")


@pytest.mark.parametrize(
    ("name", "machine"), [("java-all", "a"), ("java-all-b", "b"), ("rd-plain-away", AWAY), ("away-b-a", "a")]
)
def test_client_is_on_the_machine_that_its_name_ends_with_else_beside_the_first_site(
    name: str, machine: str
) -> None:
    assert side_of(Client(name, Program.JAVA, acks="all"), SITES) == machine


def test_clients_that_are_cut_off_are_of_all_levels_and_some_stay_beside_the_active() -> None:
    sides = {side: [one for one in apart.CLIENTS if side_of(one, SITES) == side] for side in ("a", AWAY)}
    assert {one.acks for one in sides[AWAY] if one.writes} == {"1", "all", "twin"}
    assert {one.program for one in sides[AWAY] if not one.writes} == {Program.JAVA, Program.LIBRDKAFKA}
    assert TWIN in sides["a"]


def test_groups_of_a_machine_of_their_own_are_groups_of_their_own() -> None:
    groups = [one.group for one in (*apart.CLIENTS, GROUP) if not one.writes]
    assert len(set(groups)) == len(groups)


def test_when_sites_are_cut_apart_both_sides_write_at_every_level_and_read() -> None:
    for site in SITES:
        beside = [one for one in partition.WITH_GROUPS if side_of(one, SITES) == site]
        assert {"all", "twin"} <= {one.acks for one in beside}
        assert any(not one.writes for one in beside)
