"""The pages for Prometheus over HTTP and HTTPS: who gets them, and how long a dead site takes."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from twinlog.errors import PrerequisiteError, SiteError, UsageError
from twinlog.export.link import LinkWatch
from twinlog.export.observation import Filters, Watch
from twinlog.export.pages import Looks, Tls, pages, served
from twinlog.sites.authorities import Kind
from twinlog.sites.home import Home
from twinlog.sites.pki import Pki
from twinlog.spec.load import load
from twinlog.spec.model import Certificates
from twinlog.wire.access import Access, Protocol
from twinlog.wire.addresses import HostPort

WAIT_S = 10.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def never_brought_up() -> Access:
    raise SiteError("site b was never brought up")


@contextmanager
def running(login: str | None = None, tls: Tls | None = None, access: str = "127.0.0.1:1") -> Iterator[int]:
    """Pages of a bus whose site a is at an address and whose site b was never brought up."""
    reach = Access((access,), protocol=Protocol.PLAINTEXT)
    watches = {
        "a": Watch(lambda: reach, Filters(), timeout_s=1.0),
        "b": Watch(never_brought_up, Filters(), timeout_s=1.0),
    }
    port = free_port()
    app = pages(Looks("shop", watches, lambda: "a"), login)
    with served(HostPort("127.0.0.1", port), app, tls) as server:
        loop = threading.Thread(target=server.serve_forever, args=(0.02,))
        loop.start()
        try:
            yield port
        finally:
            server.shutdown()
            loop.join()


def ask(port: int, path: str, login: str = "", context: ssl.SSLContext | None = None) -> tuple[int, str]:
    if context is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    else:
        connection = http.client.HTTPSConnection("localhost", port, timeout=WAIT_S, context=context)
    headers = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()} if login else {}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_sites_that_are_down_are_answered_for_in_time_and_say_so() -> None:
    with running() as port:
        for path in ("/metrics", "/metrics/a", "/metrics/b"):
            began_s = time.monotonic()
            status, text = ask(port, path)
            assert time.monotonic() - began_s < 5.0
            assert status == 200
            assert 'twinlog_site_up{bus="shop",site="' in text and "kafka_brokers" not in text
        assert 'twinlog_site_active{bus="shop",site="a"} 1.0' in ask(port, "/metrics")[1]
        assert 'twinlog_site_active{bus="shop",site="b"} 0.0' in ask(port, "/metrics/b")[1]


def test_a_link_between_sites_that_were_never_brought_up_is_a_problem_and_no_number(tmp_path: Path) -> None:
    file = tmp_path / "twinlog.yaml"
    file.write_text("bus: shop\nsites: {a: {brokers: 1}, b: {brokers: 1}}\n")
    end, pause = time.monotonic() + WAIT_S, threading.Event()
    with LinkWatch(Home(load(file, {}).bus, file)) as watch:
        while "does not exist yet" not in (problem := watch.seen().problem):
            assert time.monotonic() < end, problem
            pause.wait(0.02)
    assert watch.seen().partitions == ()


def test_a_site_that_takes_connections_and_never_answers_holds_up_no_scrape() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with running(access=address) as port:
            began_s = time.monotonic()
            status, text = ask(port, "/metrics")
            assert time.monotonic() - began_s < 3.0
            assert status == 200 and 'twinlog_site_up{bus="shop",site="a"} 0.0' in text


def test_other_paths_are_not_found_and_health_needs_no_password() -> None:
    with running(login="prometheus:secret") as port:
        assert ask(port, "/healthz") == (200, "ok\n")
        assert ask(port, "/metrics")[0] == 401
        assert ask(port, "/metrics", "prometheus:wrong")[0] == 401
        assert ask(port, "/metrics", "prometheus:secret")[0] == 200
        assert ask(port, "/metrics/c", "prometheus:secret")[0] == 404
        assert "/metrics/a" in ask(port, "/", "prometheus:secret")[1]


def test_pages_over_tls_are_given_to_those_who_have_a_certificate(tmp_path: Path) -> None:
    pki = Pki(tmp_path, "shop", Certificates())
    pki.ensure()
    page = pki.issue(Kind.SERVER, "server-1", {"localhost"})
    client = pki.issue(Kind.USER, "prometheus")
    authority = pki.trust_path(Kind.SERVER.realm)
    tls = Tls(page.certificate, page.key, authority)
    with running(tls=tls) as port:
        context = ssl.create_default_context(cafile=str(authority))
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            ask(port, "/metrics", context=context)
        context.load_cert_chain(client.certificate, client.key)
        assert ask(port, "/healthz", context=context) == (200, "ok\n")


def test_a_taken_address_and_files_that_are_no_certificates_are_errors_with_hints(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = HostPort("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(PrerequisiteError, match="cannot be served"), served(address, lambda *_: []):
            pass
    bad = tmp_path / "bad.pem"
    bad.write_text("no certificate")
    with pytest.raises(UsageError), served(HostPort("127.0.0.1", free_port()), lambda *_: [], Tls(bad, bad)):
        pass
