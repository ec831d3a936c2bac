"""A bus whose nodes are there and whose state is not: nothing is decided anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from twinlog.errors import SiteError, UsageError
from twinlog.sites import certificates as made
from twinlog.sites.authorities import Issued
from twinlog.sites.home import Home
from twinlog.spec.model import Bus, Dns, Gate, Role, Site


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(Bus(bus="orders", sites={"a": Site(), "b": Site()}), tmp_path / "twinlog.yaml", {})


def test_a_bus_that_was_never_brought_up_is_as_declared(home: Home) -> None:
    assert home.role("a") is Role.ACTIVE
    assert home.remembered().sites == {}
    with pytest.raises(SiteError, match="never brought up"):
        home.state()


@pytest.mark.parametrize(
    "ask",
    [Home.state, Home.remembered, Home.allocate, lambda home: home.role("a"), Home.refuse_lost_state],
    ids=["state", "remembered", "allocate", "role", "refuse_lost_state"],
)
def test_a_bus_that_lost_its_state_is_told_how_to_recover_it(
    home: Home, ask: Callable[[Home], object]
) -> None:
    node = home.directory / "sites" / "a" / "broker-1"
    node.mkdir(parents=True)
    (node / "server.properties").write_text("node.id=1\n")
    with pytest.raises(SiteError, match="is lost, and its nodes are there") as caught:
        ask(home)
    assert caught.value.hint == "twinlog recover"
    assert not home.state_file.path.exists()


def test_a_bus_reached_by_a_link_is_the_same_bus(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    bus = Bus(bus="orders", sites={"a": Site(brokers=1)})
    by_link, by_name = Home(bus, tmp_path / "link" / "twinlog.yaml"), Home(bus, real / "twinlog.yaml")
    assert by_link.directory == by_name.directory


def test_a_bus_that_was_moved_is_refused_with_the_way_back(tmp_path: Path) -> None:
    bus = Bus(bus="orders", sites={"a": Site(brokers=1)})
    before = tmp_path / "before"
    before.mkdir()
    Home(bus, before / "twinlog.yaml").allocate()
    after = before.rename(tmp_path / "after")
    with pytest.raises(SiteError, match="was brought up in") as error:
        Home(bus, after / "twinlog.yaml").state()
    assert error.value.hint == f"mv {after / '.twinlog'} {before / '.twinlog'}"


def test_the_directory_of_a_bus_is_its_owners_alone_whoever_made_it(tmp_path: Path) -> None:
    home = Home(Bus(bus="orders", sites={"a": Site(brokers=1)}), tmp_path / "twinlog.yaml")
    home.directory.mkdir(mode=0o755)
    home.allocate()
    assert home.directory.stat().st_mode & 0o777 == 0o700


def test_a_bus_of_another_name_has_no_business_here(home: Home, tmp_path: Path) -> None:
    home.allocate()
    home.refuse_other_bus()
    other = Home(home.bus.but(bus="payments"), tmp_path / "twinlog.yaml", {})
    for ask in (Home.refuse_other_bus, Home.remembered, Home.allocate):
        with pytest.raises(UsageError, match="belongs to bus 'orders' and the file declares 'payments'"):
            ask(other)
    home.state_file.path.write_text("cut off")
    other.refuse_other_bus()  # who needs the state says that it cannot be read


def issued(home: Home, gate: Gate) -> tuple[Issued, Issued]:
    """The certificates of the first broker, for nodes and for clients, of the bus behind such a gate."""
    home = Home(home.bus.but(gate=gate), home.file, {})
    home.pki.ensure()
    for_nodes, for_clients = home.issue_node_certificates(home.layout("a").brokers[0])
    return for_nodes, for_clients


def names(one: Issued) -> frozenset[str]:
    return made.names_of(x509.load_pem_x509_certificate(one.certificate.read_bytes()))


def test_brokers_answer_clients_to_every_name_of_the_gate(home: Home) -> None:
    home.allocate()
    dns = Dns(listen="127.0.0.1:5353", name="Bus.example.org")
    gate = Gate(address="gate.example.org:9092", tls_address="[fd00::7]:9093", dns=dns)
    for_nodes, for_clients = issued(home, gate)
    assert {"gate.example.org", "fd00::7", "bus.example.org", "localhost"} <= names(for_clients)
    assert not names(for_nodes) & {"gate.example.org", "fd00::7", "bus.example.org"}


@pytest.mark.parametrize(
    "changed",
    [
        Gate(address="other.example.org:9092", dns=Dns(listen="127.0.0.1:5353", name="bus.example.org")),
        Gate(address="gate.example.org:9092", dns=Dns(listen="127.0.0.1:5353", name="new.example.org")),
        Gate(address="gate.example.org:9092"),
    ],
    ids=["address", "name", "no-name"],
)
def test_changed_name_of_the_gate_makes_new_certificates_for_clients_alone(home: Home, changed: Gate) -> None:
    home.allocate()
    first = Gate(address="gate.example.org:9092", dns=Dns(listen="127.0.0.1:5353", name="bus.example.org"))
    issued(home, first)
    assert [one.why for one in issued(home, first)] == ["", ""]
    assert [one.why for one in issued(home, changed)] == ["", "its names changed"]
