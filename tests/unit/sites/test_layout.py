"""Node ids, ports and directories of local sites."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import SiteError
from twinlog.sites.layout import (
    Kept,
    Kind,
    Listener,
    SiteLayout,
    allocate,
    kept_otherwise,
    lay_out,
    random_id,
)
from twinlog.sites.state import BusState
from twinlog.spec.model import Broker, Bus, Password, Site, User

HOME = Path("/bus/.twinlog")


def bus(a: Site, b: Site | None = None) -> Bus:
    sites = {"a": a} if b is None else {"a": a, "b": b}
    return Bus(bus="orders", sites=sites)


def laid_out(declared: Bus, state: BusState | None = None) -> dict[str, SiteLayout]:
    ports = count(20000)
    state = state or BusState(bus="orders", active="a")
    allocate(declared, state, HOME, lambda host, wanted: [next(ports) for _ in range(wanted)])
    return {name: lay_out(declared, name, state, HOME) for name in declared.sites}


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 5, 7]), st.sampled_from([1, 3, 5, 7]))
def test_node_ids_and_ports_of_two_sites_never_meet(a: int, b: int, in_a: int, in_b: int) -> None:
    sites = laid_out(bus(Site(brokers=a, controllers=in_a), Site(brokers=b, controllers=in_b)))
    nodes = [*sites["a"].nodes, *sites["b"].nodes]
    assert len({node.id for node in nodes}) == len(nodes) == a + b + in_a + in_b
    ports = [port for node in nodes for port in node.ports.values()]
    assert len(set(ports)) == len(ports)
    assert sites["a"].producer_range != sites["b"].producer_range
    assert sites["a"].cluster_id != sites["b"].cluster_id


def test_growing_a_site_keeps_what_its_nodes_have() -> None:
    state = BusState(bus="orders", active="a")
    before = laid_out(bus(Site(brokers=1)), state)["a"]
    after = laid_out(bus(Site(brokers=3)), state)["a"]
    assert after.brokers[0] == before.brokers[0]
    assert after.controllers == before.controllers
    assert [node.id for node in after.brokers] == [1, 2, 3]


def test_a_site_brought_up_alone_keeps_its_ids_when_another_joins() -> None:
    state = BusState(bus="orders", active="b")
    alone = Bus(bus="orders", sites={"b": Site(brokers=1)})
    before = laid_out(alone, state)["b"]
    after = laid_out(bus(Site(brokers=1), Site(brokers=1)), state)
    assert after["b"].brokers[0].id == before.brokers[0].id
    assert after["a"].brokers[0].id != after["b"].brokers[0].id


def test_ports_of_the_file_are_taken_as_they_are() -> None:
    layout = laid_out(bus(Site(brokers=(Broker(), Broker(port=9500)), port=9092)))["a"]
    assert layout.brokers[0].ports == {Listener.CLIENT: 9092, Listener.CLIENT_TLS: 9093, Listener.LINK: 9094}
    assert layout.brokers[1].ports[Listener.CLIENT] == 9500
    assert layout.controllers[0].ports == {Listener.CONTROLLER: 10092}


def test_a_node_that_is_not_formatted_takes_ports_and_data_that_changed_in_the_file() -> None:
    state = BusState(bus="orders", active="a")
    before = laid_out(bus(Site(brokers=1, port=9092)), state)["a"]
    after = laid_out(bus(Site(brokers=1, port=9192, data=("/disk1", "/disk2"))), state)["a"]
    assert after.brokers[0].ports[Listener.CLIENT] == 9192
    assert after.controllers[0].ports == {Listener.CONTROLLER: 10192}
    assert after.brokers[0].data == (Path("/disk1/a-broker-1"), Path("/disk2/a-broker-1"))
    assert after.brokers[0].directory_ids[:1] == before.brokers[0].directory_ids
    assert len(after.brokers[0].directory_ids) == 2
    assert kept_otherwise(bus(Site(brokers=1, port=9999)), "a", state, HOME) == {}


def test_a_formatted_node_keeps_its_ports_and_data_and_the_hint_is_what_it_keeps() -> None:
    state = BusState(bus="orders", active="a")
    brokers = (Broker(), Broker(data=("/disk1",)), Broker(port=9500))
    first = bus(Site(brokers=brokers, port=9092))
    before = laid_out(first, state)["a"]
    for node in state.sites["a"].nodes.values():
        node.formatted = True
    assert kept_otherwise(first, "a", state, HOME) == {}
    changed = (Broker(data=("/disk1",)), Broker(data=("/disk2",)), Broker(port=9600))
    second = bus(Site(brokers=changed, port=9192))
    after = laid_out(second, state)["a"]
    assert [node.ports for node in after.nodes] == [node.ports for node in before.nodes]
    assert [node.data for node in after.nodes] == [node.data for node in before.nodes]
    assert kept_otherwise(second, "a", state, HOME) == {
        901: [Kept("port 10092", "port: 9092")],
        1: [
            Kept("port 9092", "port: 9092"),
            Kept("its data in /bus/.twinlog/sites/a/broker-1/data", "take `data:` out of the file"),
        ],
        2: [Kept("port 9096", "port: 9092"), Kept("its data in /disk1/a-broker-2", "data: [/disk1]")],
        3: [Kept("port 9500", "port: 9500")],
    }


def test_controllers_stay_once_any_node_of_their_site_is_formatted() -> None:
    state = BusState(bus="orders", active="a")
    laid_out(bus(Site(brokers=1, port=9092)), state)
    state.sites["a"].nodes[1].formatted = True
    moved = bus(Site(brokers=2, port=9192))
    layout = laid_out(moved, state)["a"]
    assert layout.controllers[0].ports == {Listener.CONTROLLER: 10092}
    assert 901 in kept_otherwise(moved, "a", state, HOME)


def test_ports_found_by_chance_are_kept_by_taking_the_sites_line_out() -> None:
    state = BusState(bus="orders", active="a")
    laid_out(bus(Site(brokers=2)), state)
    for node in state.sites["a"].nodes.values():
        node.formatted = True
    kept = kept_otherwise(bus(Site(brokers=2, port=9092)), "a", state, HOME)
    assert {one.hint for of_node in kept.values() for one in of_node} == {"take `port:` out of the file"}
    assert kept.keys() == {901, 1, 2}


def test_ports_that_no_file_could_name_are_kept_by_taking_the_line_out() -> None:
    state = BusState(bus="orders", active="a")
    laid_out(bus(Site(brokers=1)), state)
    node = state.sites["a"].nodes[1]
    node.formatted = True
    node.ports["link"] += 50
    (kept,) = kept_otherwise(bus(Site(brokers=(Broker(port=9092),))), "a", state, HOME)[1]
    assert kept.hint == "take `port:` out of the file"


def test_variables_with_passwords_are_withheld_from_every_node() -> None:
    users = {"shop": User(password=Password(env="SHOP")), "bank": User(password=Password(file="f"))}
    layout = laid_out(Bus(bus="orders", sites={"a": Site(brokers=1)}, users=users))["a"]
    assert [node.withheld for node in layout.nodes] == [("SHOP",), ("SHOP",)]


def test_brokers_are_counted_by_the_file_and_only_as_far_as_they_were_made() -> None:
    state = BusState(bus="orders", active="a")
    assert laid_out(bus(Site(brokers=3)), state)["a"].broker_count == 3
    assert lay_out(bus(Site(brokers=4)), "a", state, HOME).broker_count == 3
    assert lay_out(bus(Site(brokers=2)), "a", state, HOME).broker_count == 2


def test_racks_go_round_and_a_broker_may_have_its_own() -> None:
    layout = laid_out(bus(Site(brokers=(Broker(), Broker(rack="x"), Broker()), racks=("r1", "r2"))))["a"]
    assert [node.rack for node in layout.brokers] == ["r1", "x", "r1"]
    assert layout.controllers[0].rack is None


def test_data_directories_are_relative_to_the_file_and_named_after_the_broker() -> None:
    layout = laid_out(bus(Site(brokers=1, data=("/disk1", "disk2"))))["a"]
    assert layout.brokers[0].data == (Path("/disk1/a-broker-1"), Path("/bus/disk2/a-broker-1"))
    assert len(layout.brokers[0].directory_ids) == 2


def test_nodes_elsewhere_are_laid_out_but_are_not_local() -> None:
    brokers = (Broker(listen="192.0.2.1"), Broker(listen="192.0.2.2", remote=True, port=9092))
    layout = laid_out(bus(Site(brokers=brokers, listen="192.0.2.1")))["a"]
    assert [node.id for node in layout.nodes] == [901, 1, 2]
    assert [node.id for node in layout.local_nodes] == [901, 1]
    elsewhere = laid_out(bus(Site(brokers=brokers, listen="192.0.2.1", port=9092, remote=True)))["a"]
    assert elsewhere.local_nodes == ()


def test_unknown_node_is_named_with_the_known_ones() -> None:
    layout = laid_out(bus(Site(brokers=1)))["a"]
    with pytest.raises(SiteError) as caught:
        layout.node(7)
    assert "901, 1" in caught.value.hint


def test_ipv6_addresses_are_written_in_brackets() -> None:
    layout = laid_out(bus(Site(brokers=1, listen="::1", port=9092)))["a"]
    assert layout.brokers[0].address(Listener.CLIENT) == "[::1]:9092"
    assert layout.brokers[0].kind is Kind.BROKER


def test_random_ids_never_start_with_a_dash() -> None:
    assert not any(random_id().startswith("-") for _ in range(500))
    assert len(random_id()) == 22
