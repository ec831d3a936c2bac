"""A bus from its state and its nodes' files: the nodes are those that the file had."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.sites import properties, recorded
from twinlog.sites.home import Home
from twinlog.sites.layout import Listener, Node
from twinlog.spec.load import parse

FILES = {
    "small": "bus: orders\nsites: {a: {brokers: 1}, b: {brokers: 2, controllers: 3}}\n",
    "elsewhere": "bus: orders\nsites: {a: {brokers: [{listen: 127.0.0.2}, {advertise: kafka.example}]}}\n",
    "six": "bus: orders\nsites: {a: {brokers: 1, listen: '::1', data: disk}}\n",
    "spread": (
        "bus: orders\nsites: {a: {listen: 192.0.2.1, port: 9092, remote: true,"
        " brokers: [{remote: false}, {listen: 192.0.2.7}]}}\n"
    ),
    "away": "bus: orders\nsites: {a: {brokers: 2, listen: 192.0.2.7, port: 9092, remote: true}}\n",
}


def brought_up(file: Path, text: str) -> Home:
    """A bus whose nodes that belong here were formatted and told how to run."""
    home = Home(parse(text.encode(), file, {}).bus, file, {})
    state = home.allocate()
    for name, site in state.sites.items():
        layout = home.layout(name)
        for node in layout.nodes:
            site.nodes[node.id].formatted = True
        for node in layout.local_nodes:
            node.data[0].mkdir(parents=True)
            settings = properties.server_properties(node, layout, home.tls_files(node))
            node.directory.mkdir(parents=True, exist_ok=True)
            (node.directory / "server.properties").write_text(properties.render(settings))
    home.state_file.write(state)
    return home


def outline(node: Node) -> object:
    """What of a node must be known to find, ask, stop and delete it."""
    link = node.address(Listener.LINK) if Listener.LINK in node.ports and not node.remote else ""
    return node.name, node.directory, node.data, node.ports, node.remote, link


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_recorded_bus_has_the_nodes_of_the_file(tmp_path: Path, text: str) -> None:
    home = brought_up(tmp_path / "twinlog.yaml", text)
    known = recorded.home_at(home.file)
    assert known is not None
    assert tuple(known.bus.sites) == tuple(home.bus.sites)
    for name in home.bus.sites:
        wanted = [outline(node) for node in home.layout(name).nodes]
        assert [outline(node) for node in known.layout(name).nodes] == wanted
        assert known.role(name) is home.role(name)


def test_node_that_was_formatted_and_never_told_anything_belongs_here(tmp_path: Path) -> None:
    home = brought_up(tmp_path / "twinlog.yaml", FILES["small"])
    for path in home.directory.glob("sites/*/*/server.properties"):
        path.unlink()
    known = recorded.home_at(home.file)
    assert known is not None
    assert [node.remote for node in known.layout("b").nodes] == [False] * 5


def test_bus_that_was_never_brought_up_is_not_recorded(tmp_path: Path) -> None:
    assert recorded.home_at(tmp_path / "twinlog.yaml") is None
    assert recorded.find(tmp_path / "below") is None


def test_bus_is_found_from_below_without_its_file(tmp_path: Path) -> None:
    brought_up(tmp_path / "twinlog.yaml", FILES["small"])
    assert recorded.find(tmp_path / "some" / "where") == tmp_path / "twinlog.yaml"


def test_forgotten_site_is_added_and_what_the_file_says_stays(tmp_path: Path) -> None:
    home = brought_up(tmp_path / "twinlog.yaml", FILES["small"])
    sites = {"a": home.bus.sites["a"].but(brokers=3)}
    edited = Home(home.bus.but(sites=sites), home.file, {})
    whole = recorded.with_forgotten(edited)
    assert set(whole.bus.sites) == {"a", "b"}
    assert whole.bus.sites["a"] == sites["a"]
    assert [node.id for node in whole.layout("b").brokers] == [1001, 1002]
