"""Who is still served by a site that was fenced."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.sites.fencing import harm, room_for_half, still_served

CLIENT, CLIENT_TLS = 9000, 9001


def of(*clients: tuple[int, int]) -> frozenset[tuple[int, str, int]]:
    """Connections, by the broker's port and the client's."""
    return frozenset((port, "127.0.0.1", other) for port, other in clients)


def test_client_from_before_the_fence_is_served_until_it_is_gone() -> None:
    before = of((CLIENT, 1), (CLIENT, 2), (CLIENT_TLS, 3))
    assert still_served(before, before) == 3
    assert still_served(of((CLIENT_TLS, 3)), before) == 1
    assert still_served(of(), before) == 0


def test_one_that_came_since_waits_at_each_port_and_is_not_served() -> None:
    before = of((CLIENT, 1))
    assert still_served(of((CLIENT, 7), (CLIENT_TLS, 8)), before) == 0
    assert still_served(of((CLIENT, 1), (CLIENT, 7)), before) == 1


def test_more_than_one_that_came_since_were_let_in_before_the_fence_stood() -> None:
    assert still_served(of((CLIENT, 7), (CLIENT, 8), (CLIENT, 9)), of()) == 2


@given(clients=st.integers(0, 2000), others=st.integers(0, 50))
def test_half_of_the_clients_goes_first_and_what_is_not_theirs_is_counted_too(
    clients: int, others: int
) -> None:
    room = room_for_half(clients + others, clients)
    assert room >= 1  # a broker without any connection would be no broker
    if clients + others:
        assert clients + others - room <= clients // 2
        assert others + clients - clients // 2 <= max(room, 1)


TWO = "CLIENT://a.example:9093,LINK://a.example:9094"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"inter.broker.listener.name": "LINK"}, ""),
        ({"inter.broker.listener.name": None, "security.inter.broker.protocol": "LINK"}, ""),
        ({"inter.broker.listener.name": "CLIENT"}, "reached by a listener"),
        ({"inter.broker.listener.name": "LINK", "advertised.listeners": "LINK://a.example:9094"}, "reached"),
        ({"inter.broker.listener.name": "LINK", "advertised.listeners": None}, "reached by a listener"),
        ({"inter.broker.listener.name": "LINK", "process.roles": "broker,controller"}, "controllers too"),
        ({}, "reached by a listener"),
    ],
)
def test_a_cluster_of_others_is_fenced_only_where_the_fence_leaves_us_and_its_quorum_alone(
    settings: dict[str, str | None], why: str
) -> None:
    found = harm({"advertised.listeners": TWO, "process.roles": "broker", **settings}, "a.example:9094")
    assert why in found
    assert bool(why) == bool(found)
