"""The health page tells pollers where clients should go, and bears whoever asks."""

from __future__ import annotations

import http.client
import json
import socket
import time
from dataclasses import replace

import pytest

from tests.running.traffic.loopback import HERE, WAIT_S, connect, hear, is_cut, wait_until
from twinlog.errors import SiteError
from twinlog.traffic import page
from twinlog.traffic.gate import Counters
from twinlog.traffic.page import Page, SiteView, View
from twinlog.traffic.serving import Serving

ACTIVE = View(
    bus="orders",
    sentence="a is active and b follows",
    active="a",
    term=7,
    sites=(
        SiteView("a", "active", "well", "writes are acknowledged in 4 ms"),
        SiteView("b", "standby", "well", "it follows", lag_records=12, lag_s=0.34),
    ),
    counters=Counters(connections_now=3, connections_total=90, failures={"127.0.0.1:9093": 2}),
)
MOVING = replace(ACTIVE, sentence="moving from a to b", active=None, reason="moving from a to b", term=None)


class Board:
    """What the page shows; tests change it while the page is served."""

    def __init__(self) -> None:
        self.view = ACTIVE

    def __call__(self) -> View:
        return self.view


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def served(serving: Serving, board: Board) -> Page:
    made = Page(HERE, board, timeout_s=1.0)
    serving.open(made)
    return made


def ask(served: Page, path: str, method: str = "GET") -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection(served.address.host, served.address.port, timeout=WAIT_S)
    connection.request(method, path)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response, body


def code(served: Page, path: str) -> int:
    return ask(served, path)[0].status


def raw(served: Page, request: bytes) -> bytes:
    with connect(served.address) as client:
        client.sendall(request)
        return hear(client, 1 << 20)


def test_the_active_site_is_well_and_the_other_is_not(served: Page) -> None:
    response, body = ask(served, "/site/a")
    assert (response.status, body) == (200, "a is active\n")
    response, body = ask(served, "/site/b")
    assert (response.status, body) == (503, "b is not active: a is active\n")


def test_while_no_site_is_active_both_say_why(served: Page, board: Board) -> None:
    board.view = MOVING
    for name in "ab":
        response, body = ask(served, f"/site/{name}")
        assert (response.status, body) == (503, f"{name} is not active: moving from a to b\n")


@pytest.mark.parametrize("path", ["/site/c", "/site/", "/site/a/b", "/sites", "/favicon.ico", "//site/a"])
def test_unknown_sites_and_pages_are_not_found(served: Page, path: str) -> None:
    assert code(served, path) == 404


def test_the_page_for_people_says_all_of_it(served: Page) -> None:
    response, body = ask(served, "/")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    for text in ("a is active and b follows", "Term: 7", "<td>12</td>", "0.3", "unknown", "127.0.0.1:9093"):
        assert text in body


def test_the_page_for_people_cannot_be_written_by_names(served: Page, board: Board) -> None:
    board.view = replace(ACTIVE, sentence="<script>alert(1)</script>", sites=(SiteView("<b>", "", "", "&"),))
    body = ask(served, "/")[1]
    assert "<script>" not in body and "<b>" not in body and "&lt;script&gt;" in body


def test_the_status_is_json_with_null_for_unknown(served: Page) -> None:
    response, body = ask(served, "/status?pretty")
    status = json.loads(body)
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    assert (status["active"], status["term"], status["counters"]["connections_now"]) == ("a", 7, 3)
    assert status["sites"][0]["lag_records"] is None
    assert status["sites"][1]["lag_s"] == 0.34
    assert status["counters"]["failures"] == {"127.0.0.1:9093": 2}


def test_no_answer_is_kept_by_anybody(served: Page) -> None:
    assert {ask(served, path)[0].headers["Cache-Control"] for path in ("/", "/status", "/site/b")} == {
        "no-store"
    }


def test_head_has_the_code_and_no_body(served: Page) -> None:
    response, body = ask(served, "/site/b", "HEAD")
    assert (response.status, body) == (503, "")
    assert int(response.headers["Content-Length"]) > 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get"])
def test_the_page_is_for_reading_only(served: Page, method: str) -> None:
    response, _ = ask(served, "/site/a", method)
    assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")


def test_a_body_that_nobody_asked_for_does_not_spoil_the_answer(served: Page) -> None:
    request = b"POST / HTTP/1.1\r\nContent-Length: 60000\r\n\r\n" + b"x" * 60_000
    assert raw(served, request).startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /site/a HTTP/1.0\r\n\r\n", b"200"),
        (b"GET http://gate:8080/site/a HTTP/1.1\r\nHost: gate\r\n\r\n", b"200"),
        (b"GET /site/%61 HTTP/1.1\r\n\r\n", b"200"),
        (b"GET /site/a\r\n\r\n", b"400"),
        (b"GET /site/a HTTP/2.0\r\n\r\n", b"400"),
        (b"GET http://[ HTTP/1.1\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        (b"\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000, b"431"),
        (b"A" * 100_000, b"431"),
    ],
    ids=["1.0", "proxy", "escaped", "0.9", "2.0", "bad", "tls", "empty", "headers", "noise"],
)
def test_requests_of_every_kind_get_their_code(served: Page, request_bytes: bytes, status: bytes) -> None:
    assert raw(served, request_bytes).split(b" ")[1] == status


def test_a_request_that_does_not_end_is_given_up(served: Page) -> None:
    with connect(served.address) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        assert is_cut(slow)


def test_many_who_say_nothing_do_not_keep_pollers_out_for_long(served: Page) -> None:
    idle = [connect(served.address) for _ in range(page.MAX_CONNECTIONS + 20)]

    def is_answered() -> bool:
        try:
            return code(served, "/site/a") == 200
        except (OSError, http.client.HTTPException):
            return False

    wait_until(is_answered)
    for one in idle:
        one.close()


def test_a_client_that_goes_away_early_does_no_harm(served: Page) -> None:
    for _ in range(20):
        with connect(served.address) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert code(served, "/site/a") == 200


def test_a_plain_poller_follows_a_move(served: Page, board: Board) -> None:
    """What a load balancer does: ask each site's page, use the one that says 200."""

    def in_use() -> list[str]:
        return [name for name in "ab" if code(served, f"/site/{name}") == 200]

    seen = []
    for view in (ACTIVE, MOVING, replace(ACTIVE, active="b", sentence="b is active", term=8)):
        board.view = view
        seen.append(in_use())
    assert seen == [["a"], [], ["b"]]


def test_closing_drops_who_is_still_asking(serving: Serving, board: Board) -> None:
    made = Page(HERE, board, timeout_s=WAIT_S)
    serving.open(made)
    with connect(made.address) as client:
        client.sendall(b"GET / HT")
        began = time.monotonic()
        serving.close()
        assert time.monotonic() - began < WAIT_S / 2
        assert is_cut(client)


def test_a_busy_port_is_named(serving: Serving, board: Board) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = replace(HERE, port=taken.getsockname()[1])
        with pytest.raises(SiteError, match="the health page cannot listen on"):
            serving.open(Page(address, board))
