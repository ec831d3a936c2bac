"""Questions to voters over real TLS: who gets an answer, and who does not."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from twinlog.errors import SiteError
from twinlog.sites.authorities import Kind, Realm
from twinlog.sites.pki import Pki
from twinlog.spec.model import Certificates
from twinlog.traffic import poll
from twinlog.traffic.poll import Papers, PollingStation, ask_all, ask_vote, collect
from twinlog.traffic.votes import WITNESS, Answer, Request, Wish
from twinlog.wire.addresses import HostPort

TIMEOUT_S = 10.0  # a question takes milliseconds; the rest is a busy machine
ANYWHERE = HostPort("127.0.0.1", 0)
GRANT = Request(Wish.GRANT, "a", 6)
TELL = Request(Wish.TELL)
GRANTED = Answer(WITNESS, True, "grants term 6 to site a", 6, "a", 4.0, 4.5)


@pytest.fixture
def station(pki: Pki) -> Iterator[PollingStation]:
    opened = PollingStation(ANYWHERE, Papers.issue(pki, "orders", WITNESS), lambda request: GRANTED)
    yield opened
    opened.close()


def test_agent_asks_for_its_site_and_is_answered(pki: Pki, station: PollingStation) -> None:
    papers = Papers.issue(pki, "orders", "site-a")
    assert ask_vote(WITNESS, station.address, GRANT, papers, TIMEOUT_S) == GRANTED


def test_enough_answers_are_not_held_up_by_a_voter_that_hangs(pki: Pki, station: PollingStation) -> None:
    papers = Papers.issue(pki, "orders", "manager")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        voters = {WITNESS: station.address, "site-a": HostPort("127.0.0.1", silent.getsockname()[1])}
        told = collect(voters, TELL, papers, 10 * TIMEOUT_S, lambda told: len(told) == 1)
        assert told == {WITNESS: GRANTED}
        # Without that it is waited for, and then left out.
        assert collect(voters, TELL, papers, 2.0) == {WITNESS: GRANTED}


def test_manager_may_ask_what_is_known(pki: Pki, station: PollingStation) -> None:
    papers = Papers.issue(pki, "orders", "manager")
    assert ask_vote(WITNESS, station.address, TELL, papers, TIMEOUT_S) == GRANTED


@pytest.mark.parametrize("name", ["site-b", "witness", "manager"])
@pytest.mark.parametrize("wish", [Wish.TRY, Wish.GRANT, Wish.RELEASE])
def test_somebody_else_asks_for_a_site_and_gets_no_answer(
    pki: Pki, station: PollingStation, name: str, wish: Wish
) -> None:
    papers = Papers.issue(pki, "orders", name)
    with pytest.raises(SiteError, match="voter witness does not answer"):
        ask_vote(WITNESS, station.address, replace(GRANT, wish=wish), papers, TIMEOUT_S)


@pytest.mark.parametrize("kind", [Kind.NODE, Kind.LINK])
def test_certificate_of_the_same_authority_for_something_else_is_refused(
    pki: Pki, station: PollingStation, kind: Kind
) -> None:
    papers = Papers("orders", pki.issue(kind, "site-a").store, pki.trust_path(Realm.LINK))
    with pytest.raises(SiteError, match="does not answer"):
        ask_vote(WITNESS, station.address, GRANT, papers, TIMEOUT_S)


def test_certificate_of_another_bus_is_refused(tmp_path: Path, pki: Pki, station: PollingStation) -> None:
    stranger = Pki(tmp_path / "pki", "orders", Certificates())
    stranger.ensure()
    theirs = Papers.issue(stranger, "orders", "site-a")
    mixed = replace(theirs, trust=pki.trust_path(Realm.LINK))
    for papers in (theirs, mixed):
        with pytest.raises(SiteError, match="does not answer"):
            ask_vote(WITNESS, station.address, GRANT, papers, TIMEOUT_S)


def test_user_certificate_is_refused(pki: Pki, station: PollingStation) -> None:
    papers = Papers("orders", pki.issue(Kind.USER, "site-a").store, pki.trust_path(Realm.LINK))
    with pytest.raises(SiteError, match="does not answer"):
        ask_vote(WITNESS, station.address, GRANT, papers, TIMEOUT_S)


@pytest.mark.parametrize("kind", [Kind.VOTE, Kind.NODE])
def test_another_voter_at_that_address_is_not_believed(pki: Pki, kind: Kind) -> None:
    papers = Papers("orders", pki.issue(kind, "site-b", {"site-b"}).store, pki.trust_path(Realm.LINK))
    posing = PollingStation(ANYWHERE, papers, lambda request: GRANTED)
    try:
        with pytest.raises(SiteError, match="does not answer"):
            ask_vote(WITNESS, posing.address, TELL, Papers.issue(pki, "orders", "site-a"), TIMEOUT_S)
    finally:
        posing.close()


def test_nobody_there_says_so_with_the_address(pki: Pki) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = HostPort("127.0.0.1", unused.getsockname()[1])
    with pytest.raises(SiteError) as raised:
        ask_vote(WITNESS, address, TELL, Papers.issue(pki, "orders", "manager"), TIMEOUT_S)
    assert raised.value.where == str(address)
    assert raised.value.hint == f"does it run there, and does this machine reach {address}?"


def test_voter_that_hangs_is_given_up_in_time(pki: Pki) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        address = HostPort("127.0.0.1", hanging.getsockname()[1])
        with pytest.raises(SiteError, match=r"no answer in 0\.2 s"):
            ask_vote(WITNESS, address, TELL, Papers.issue(pki, "orders", "manager"), 0.2)


def test_voters_asked_at_once_one_that_hangs_holds_up_nobody(pki: Pki, station: PollingStation) -> None:
    heard: dict[str, Answer | SiteError] = {}
    first, answers = threading.Event(), threading.Condition()

    def note(voter: str, answer: Answer | SiteError) -> None:
        with answers:
            heard[voter] = answer
            answers.notify_all()
        first.set()

    with socket.create_server(("127.0.0.1", 0)) as hanging:
        voters = {"site-b": HostPort("127.0.0.1", hanging.getsockname()[1]), WITNESS: station.address}
        threads = ask_all(voters, TELL, Papers.issue(pki, "orders", "manager"), TIMEOUT_S, note)
        assert first.wait(TIMEOUT_S) and heard == {WITNESS: GRANTED}
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert isinstance(heard["site-b"], SiteError)


@pytest.mark.parametrize(
    "line",
    [b"\n", b"[]\n", b"{}\n", b'{"wish": "tell"}\n', b'{"wish": "x", "site": "a", "term": 1}\n', b"x" * 9000],
)
def test_nonsense_gets_no_answer_and_the_next_question_does(
    pki: Pki, station: PollingStation, line: bytes
) -> None:
    papers = Papers.issue(pki, "orders", "site-a")
    address = (station.address.host, station.address.port)
    with (
        socket.create_connection(address, timeout=TIMEOUT_S) as plain,
        papers.context(serving=False).wrap_socket(plain, server_hostname=WITNESS) as channel,
    ):
        channel.sendall(line)
        with suppress(ConnectionError, ssl.SSLError):  # closed with something left unread
            assert channel.recv(100) == b""
    assert ask_vote(WITNESS, station.address, GRANT, papers, TIMEOUT_S) == GRANTED


def test_silent_callers_lose_their_place_after_a_while(
    pki: Pki, station: PollingStation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll, "CONVERSATION_S", 0.2)
    address = (station.address.host, station.address.port)
    with socket.create_connection(address, timeout=TIMEOUT_S) as silent:
        assert silent.recv(1) == b""


def test_renewed_certificate_counts_at_once(pki: Pki, station: PollingStation) -> None:
    before = Papers.issue(pki, "orders", "site-a")
    pki.issue(Kind.VOTE, WITNESS, {WITNESS}, anew=True)
    pki.issue(Kind.VOTE, "site-a", {"site-a"}, anew=True)
    assert ask_vote(WITNESS, station.address, GRANT, before, TIMEOUT_S) == GRANTED


def test_papers_that_are_missing_are_named(tmp_path: Path, pki: Pki) -> None:
    papers = Papers("orders", tmp_path / "none.pem", pki.trust_path(Realm.LINK))
    with pytest.raises(SiteError, match="the certificate for voting cannot be used"):
        ask_vote(WITNESS, HostPort("127.0.0.1", 1), TELL, papers, TIMEOUT_S)
