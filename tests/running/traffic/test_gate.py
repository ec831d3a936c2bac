"""The gate lets clients through to the active site, moves them, and holds little."""

from __future__ import annotations

import resource
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.traffic.loopback import (
    HERE,
    WAIT_S,
    brokers,
    connect,
    dead_address,
    deaf_address,
    hear,
    is_cut,
    silent_address,
    wait_until,
)
from twinlog.errors import SiteError
from twinlog.traffic.gate import MAX_CONNECTING, Gate, Route, affordable
from twinlog.traffic.passage import Patience
from twinlog.traffic.rotation import FAILED_LATELY_S, Rotation
from twinlog.traffic.serving import Serving
from twinlog.wire.addresses import HostPort

QUICK = Patience(connect_s=0.2, first_answer_s=0.3, drain_s=1.0, quiet_s=0.1)
Opener = Callable[..., Gate]


@pytest.fixture
def serving() -> Iterator[Serving]:
    made = Serving()
    yield made
    made.close()


@pytest.fixture
def opened(serving: Serving) -> Opener:
    def open_gate(route: Route, patience: Patience = QUICK, **settings: int) -> Gate:
        gate = Gate({"CLIENT": HERE}, patience=patience, **settings)
        gate.move(route)
        serving.open(gate)
        return gate

    return open_gate


def to(site: str, *addresses: HostPort) -> Route:
    return Route.to(site, {"CLIENT": addresses})


def enter(gate: Gate) -> socket.socket:
    return connect(gate.addresses["CLIENT"])


def greeted(gate: Gate) -> bytes:
    with enter(gate) as client:
        return hear(client, 2)


def turned_away(gate: Gate) -> bool:
    try:
        with enter(gate) as client:
            return is_cut(client)
    except ConnectionResetError:  # before connecting had returned
        return True


def test_an_active_site_is_reached_byte_by_byte(opened: Opener) -> None:
    with brokers("a1") as (a1,):
        gate = opened(to("a", a1.address))
        with enter(gate) as client:
            assert hear(client, 2) == b"a1"
            client.sendall(bytes(range(256)) * 100)
            assert hear(client, 25_600) == bytes(range(256)) * 100
            assert gate.counters.connections_now == 1
        wait_until(lambda: gate.counters.connections_now == 0)
        assert gate.counters.connections_total == 1


def test_clients_are_spread_over_all_brokers(opened: Opener) -> None:
    with brokers("a1", "a2", "a3") as site:
        gate = opened(to("a", *(broker.address for broker in site)))
        assert sorted(greeted(gate) for _ in range(6)) == [b"a1", b"a1", b"a2", b"a2", b"a3", b"a3"]


def test_each_listener_leads_to_its_own_port(serving: Serving) -> None:
    with brokers("c1", "t1") as (scram, tls):
        gate = Gate({"CLIENT": HERE, "CLIENT_TLS": HERE})
        serving.open(gate)
        gate.move(Route.to("a", {"CLIENT": (scram.address,), "CLIENT_TLS": (tls.address,)}))
        for listener, name in (("CLIENT", b"c1"), ("CLIENT_TLS", b"t1")):
            with connect(gate.addresses[listener]) as client:
                assert hear(client, 2) == name


def test_no_active_site_ends_new_connections_at_once(opened: Opener) -> None:
    gate = opened(Route.closed("moving from a to b"))
    assert all(turned_away(gate) for _ in range(50))
    assert gate.counters.refused_closed == 50
    assert gate.counters.connections_total == 0
    assert gate.route.reason == "moving from a to b"


def test_a_move_cuts_the_old_site_and_leads_to_the_new_one(opened: Opener) -> None:
    with brokers("a1", "b1") as (a1, b1):
        gate = opened(to("a", a1.address))
        clients = [enter(gate) for _ in range(20)]
        assert {hear(client, 2) for client in clients} == {b"a1"}
        gate.move(to("b", b1.address))
        assert all(is_cut(client) for client in clients)
        assert greeted(gate) == b"b1"
        assert gate.counters.cut == 20
        for client in clients:
            client.close()


def test_closing_the_route_cuts_the_old_site(opened: Opener) -> None:
    with brokers("a1") as (a1,):
        gate = opened(to("a", a1.address))
        with enter(gate) as client:
            assert hear(client, 2) == b"a1"
            gate.move(Route.closed("no site is active"))
            assert is_cut(client)


def test_more_brokers_of_the_same_site_cut_nobody(opened: Opener) -> None:
    with brokers("a1", "a2") as (a1, a2):
        gate = opened(to("a", a1.address))
        with enter(gate) as client:
            assert hear(client, 2) == b"a1"
            gate.move(to("a", a1.address, a2.address))
            client.sendall(b"still there")
            assert hear(client, 11) == b"still there"
        assert gate.counters.cut == 0


def test_a_move_while_a_broker_is_being_reached_does_not_end_there(opened: Opener) -> None:
    with deaf_address() as deaf, brokers("b1") as (b1,):
        gate = opened(to("a", deaf), Patience(connect_s=WAIT_S, reach_s=WAIT_S))
        clients = [enter(gate) for _ in range(MAX_CONNECTING + 20)]  # some wait for their turn
        wait_until(lambda: gate.counters.connections_now == len(clients))
        gate.move(to("b", b1.address))
        assert all(is_cut(client) for client in clients)
        wait_until(lambda: gate.counters.connections_now == 0)
        assert greeted(gate) == b"b1"
        for client in clients:
            client.close()


def test_routes_from_many_threads_leave_one_standing(opened: Opener) -> None:
    with brokers("a1", "b1") as (a1, b1):
        gate = opened(Route.closed("not yet"))
        routes = [to("a", a1.address), Route.closed("moving"), to("b", b1.address)] * 30
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(gate.move, routes))
        gate.move(to("b", b1.address))
        assert greeted(gate) == b"b1"


def test_a_dead_broker_is_passed_over(opened: Opener) -> None:
    with dead_address() as dead, brokers("a2") as (a2,):
        gate = opened(to("a", dead, a2.address))
        assert [greeted(gate) for _ in range(8)] == [b"a2"] * 8
        assert gate.counters.failures == {str(dead): 1}  # once, then it comes last


def test_a_broker_that_does_not_accept_is_passed_over(opened: Opener) -> None:
    with deaf_address() as deaf, brokers("a2") as (a2,):
        gate = opened(to("a", deaf, a2.address))
        began = time.monotonic()
        assert [greeted(gate) for _ in range(4)] == [b"a2"] * 4
        assert time.monotonic() - began < 10 * QUICK.connect_s + 1  # one wait, not four
        assert gate.counters.failures == {str(deaf): 1}


def test_a_broker_that_never_answers_is_left_for_another(opened: Opener) -> None:
    with silent_address() as silent, brokers("a2") as (a2,):
        gate = opened(to("a", silent, a2.address))
        with enter(gate) as client:
            client.sendall(b"hello")
            assert is_cut(client)
        assert [greeted(gate) for _ in range(4)] == [b"a2"] * 4
        assert gate.counters.failures == {str(silent): 1}


def test_a_site_that_is_merely_slow_is_not_left(opened: Opener) -> None:
    with socket.create_server(("127.0.0.1", 0)) as slow:
        gate = opened(to("a", HostPort(*slow.getsockname()[:2])))
        with enter(gate) as client, slow.accept()[0] as broker:
            client.sendall(b"hello")
            assert hear(broker, 5) == b"hello"
            client.settimeout(4 * QUICK.first_answer_s)
            with pytest.raises(TimeoutError):
                client.recv(1)
            broker.sendall(b"at last")
            assert hear(client, 7) == b"at last"


def test_no_broker_at_all_ends_the_connection(opened: Opener) -> None:
    with dead_address() as one, dead_address() as two:
        gate = opened(to("a", one, two))
        assert turned_away(gate)
        wait_until(lambda: gate.counters.connections_now == 0)
        assert gate.counters.unreached == 1


def test_a_half_close_passes_through_and_the_answer_comes_back(opened: Opener) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        gate = opened(to("a", HostPort(*server.getsockname()[:2])))
        with enter(gate) as client, server.accept()[0] as broker:
            broker.settimeout(WAIT_S)
            client.sendall(b"all I have to say")
            client.shutdown(socket.SHUT_WR)
            assert hear(broker, 100) == b"all I have to say"  # and then the end
            broker.sendall(b"x" * 300_000)
            broker.shutdown(socket.SHUT_WR)
            assert hear(client, 300_001) == b"x" * 300_000
        wait_until(lambda: gate.counters.connections_now == 0)


def test_a_broker_that_resets_resets_the_client(opened: Opener) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        gate = opened(to("a", HostPort(*server.getsockname()[:2])))
        with enter(gate) as client:
            broker, _ = server.accept()
            client.sendall(b"hello")
            wait_until(lambda: broker.recv(5, socket.MSG_PEEK) == b"hello")
            broker.close()  # with bytes unread: a reset
            assert is_cut(client)
        wait_until(lambda: gate.counters.connections_now == 0)


def test_tls_passes_through(opened: Opener) -> None:
    """What the client says first arrives as it was: the gate takes no part in the handshake."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        gate = opened(to("a", HostPort(*server.getsockname()[:2])))
        to_broker, from_broker = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        with pytest.raises(ssl.SSLWantReadError):
            context.wrap_bio(from_broker, to_broker, server_hostname="gate").do_handshake()
        hello = to_broker.read()
        with enter(gate) as client, server.accept()[0] as broker:
            client.sendall(hello)
            assert hear(broker, len(hello)) == hello


def test_five_hundred_connections_pass_at_once(opened: Opener) -> None:
    with brokers("a1", "a2", "a3") as site:
        # Five hundred at once on one machine: a connect may wait its turn for a while.
        patient = Patience(connect_s=30.0, reach_s=60.0, first_answer_s=60.0)
        gate = opened(to("a", *(broker.address for broker in site)), patient)
        clients = [enter(gate) for _ in range(500)]
        assert {hear(client, 2) for client in clients} == {b"a1", b"a2", b"a3"}
        assert gate.counters.connections_now == 500
        for number, client in enumerate(clients):
            client.sendall(b"%04d" % number)
        assert [hear(client, 4) for client in clients] == [b"%04d" % number for number in range(500)]
        gate.move(Route.closed("no site is active"))
        assert all(is_cut(client) for client in clients)
        for client in clients:
            client.close()
        wait_until(lambda: gate.counters.connections_now == 0)


def test_connections_beyond_the_limit_are_refused_and_counted(opened: Opener) -> None:
    with brokers("a1") as (a1,):
        gate = opened(to("a", a1.address), max_connections=3)
        inside = [enter(gate) for _ in range(3)]
        assert [hear(client, 2) for client in inside] == [b"a1"] * 3
        assert turned_away(gate)
        assert gate.counters.refused_full == 1
        inside.pop().close()
        wait_until(lambda: gate.counters.connections_now == 2)
        assert greeted(gate) == b"a1"
        for client in inside:
            client.close()


def test_a_slow_reader_holds_back_the_writer(opened: Opener) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        gate = opened(to("a", HostPort(*server.getsockname()[:2])))
        with enter(gate) as client, server.accept()[0] as broker:
            before = psutil.Process().memory_info().rss
            sent = _send_until_stuck(broker)
            grown = psutil.Process().memory_info().rss - before
            assert sent < 64 << 20  # kernel buffers of two connections, and little of ours
            assert grown < 16 << 20
            broker.setblocking(True)
            finish = threading.Thread(target=broker.sendall, args=(b"end",))
            finish.start()
            assert len(hear(client, sent + 3)) == sent + 3
            finish.join()


def _send_until_stuck(connection: socket.socket) -> int:
    """Send until nothing is taken for a second; how much was."""
    chunk = bytes(1 << 20)
    sent = 0
    connection.settimeout(1.0)
    try:
        while sent < 256 << 20:
            sent += connection.send(chunk)
    except TimeoutError:
        pass
    return sent


@pytest.mark.parametrize(
    "patience",
    [Patience(idle_s=0.3, first_word_s=60), Patience(first_word_s=0.3)],
    ids=["says nothing more", "says nothing"],
)
def test_a_silent_client_is_cut_in_time(opened: Opener, patience: Patience) -> None:
    with brokers("a1") as (a1,):
        gate = opened(to("a", a1.address), patience)
        with enter(gate) as client:
            if patience.idle_s < 1:
                client.sendall(b"hi")
                assert hear(client, 4) == b"a1hi"
            else:
                assert hear(client, 2) == b"a1"
            assert is_cut(client)


def test_one_end_that_stays_open_after_the_other_is_cut_in_time(opened: Opener) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        gate = opened(to("a", HostPort(*server.getsockname()[:2])), Patience(half_closed_s=0.3))
        with enter(gate) as client, server.accept()[0] as broker:
            client.shutdown(socket.SHUT_WR)
            assert is_cut(broker)
            assert is_cut(client)
        wait_until(lambda: gate.counters.connections_now == 0)


def test_a_storm_of_connections_is_turned_away_and_then_let_in(opened: Opener) -> None:
    with brokers("a1") as (a1,):
        gate = opened(Route.closed("moving from a to b"))

        def come_back_until_greeted(_: int) -> bytes:
            while True:
                try:
                    with enter(gate) as client:
                        if heard := hear(client, 2):
                            return heard
                except ConnectionError:
                    pass

        with ThreadPoolExecutor(8) as clients:
            greetings = clients.map(come_back_until_greeted, range(200))
            wait_until(lambda: gate.counters.refused_closed > 300)
            gate.move(to("a", a1.address))
            assert set(greetings) == {b"a1"}
        wait_until(lambda: gate.counters.connections_now == 0)


def test_closing_lets_an_exchange_end(opened: Opener, serving: Serving) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        gate = opened(to("a", HostPort(*server.getsockname()[:2])), Patience(quiet_s=0.5, drain_s=WAIT_S))
        with enter(gate) as client, server.accept()[0] as broker:
            client.sendall(b"ask")
            assert hear(broker, 3) == b"ask"
            closing = threading.Thread(target=serving.close)
            closing.start()
            broker.sendall(b"answer")
            assert hear(client, 7) == b"answer"  # and then the end
            closing.join(WAIT_S)
            assert not closing.is_alive()


def test_closing_does_not_wait_for_ever(opened: Opener, serving: Serving) -> None:
    with brokers("a1") as (a1,):
        gate = opened(to("a", a1.address), Patience(quiet_s=60, drain_s=0.3))
        with enter(gate) as client:
            assert hear(client, 2) == b"a1"
            serving.close()
            assert is_cut(client)
        with pytest.raises(ConnectionRefusedError):
            enter(gate)


def test_a_busy_port_is_named(serving: Serving) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        gate = Gate({"CLIENT_TLS": HERE, "CLIENT": HostPort("127.0.0.1", port)})
        with pytest.raises(SiteError) as raised:
            serving.open(gate)
    assert str(raised.value) == (
        f"127.0.0.1:{port}: the gate (CLIENT) cannot listen on 127.0.0.1:{port}: Address already in use"
    )
    assert raised.value.hint == f"ss -lnpt 'sport = :{port}'"
    with pytest.raises(ConnectionRefusedError):  # the other port was given back
        connect(gate.addresses["CLIENT_TLS"])


def test_an_address_of_another_machine_is_questioned(serving: Serving) -> None:
    with pytest.raises(SiteError) as raised:
        serving.open(Gate({"CLIENT": HostPort("192.0.2.1", 9092)}))
    assert raised.value.hint == "is 192.0.2.1 an address of this machine? ip address"


def test_two_gates_serve_the_same_site(opened: Opener) -> None:
    with brokers("a1") as (a1,):
        one, two = opened(to("a", a1.address)), opened(to("a", a1.address))
        assert greeted(one) == greeted(two) == b"a1"


def test_few_open_files_bound_the_connections() -> None:
    assert affordable(2000, 1024) == 412
    assert affordable(2000, 20_000) == 2000
    assert affordable(2000, 64) == 1
    assert affordable(2000, resource.RLIM_INFINITY) == 2000


ADDRESSES = st.lists(st.integers(1, 9), min_size=1, max_size=6, unique=True).map(
    lambda ports: [HostPort("127.0.0.1", port) for port in ports]
)


@given(ADDRESSES, st.lists(st.tuples(st.integers(1, 9), st.floats(0, 30))), st.floats(30, 60))
def test_rotation_tries_each_broker_once_and_failed_ones_last(
    addresses: list[HostPort], failures: list[tuple[int, float]], now: float
) -> None:
    rotation = Rotation()
    for port, at in sorted(failures, key=lambda failure: failure[1]):
        rotation.failed(HostPort("127.0.0.1", port), at)
    order = rotation.order(addresses, now)
    assert sorted(order) == sorted(addresses)
    lately = [rotation.failed_lately(broker, now) for broker in order]
    assert lately == sorted(lately)


def test_rotation_forgives_after_a_while() -> None:
    rotation = Rotation()
    one, two = HostPort("h", 1), HostPort("h", 2)
    rotation.failed(one, now=100.0)
    assert rotation.order([one, two], now=101.0) == [two, one]
    rotation.order([one, two], now=102.0)
    assert rotation.order([one, two], now=100.0 + FAILED_LATELY_S) == [one, two]
