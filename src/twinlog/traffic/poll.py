"""How voters are asked: one line of JSON each way over mutual TLS, a connection for each question.

Both ends show a certificate of the link authority made for voting (`Kind.VOTE`); Kafka takes its bearer
for nobody. It is made out to the voter's name, not to its address, and the name is checked in full: the
asker checks that it talks to that voter wherever it runs, the voter that only a site's own agent asks
for that site. Certificates are read for every connection, so that renewed ones count at once. A
conversation has one deadline for all of its parts. A lost answer does no harm: asking again is safe.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from cryptography import x509
from cryptography.x509.oid import NameOID

from twinlog.errors import SiteError
from twinlog.sites.authorities import Kind, Realm
from twinlog.sites.pki import Pki
from twinlog.traffic.serving import listen_on
from twinlog.traffic.votes import Answer, Request, Wish, voter_of
from twinlog.wire.addresses import HostPort
from twinlog.wire.deadlines import Deadline

CONVERSATION_S = 2.0  # milliseconds are usual; more only keeps others out
MOST_CONVERSATIONS = 128
ACCEPT_AGAIN_S = 0.05
LONGEST_LINE = 4096
ANSWER_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "voter": str,
    "granted": bool,
    "why": str,
    "term": int,
    "holder": str,
    "lease_s": (int, float),
    "wait_s": (int, float),
    "blank": bool,
}

Done = TypeVar("Done")


@dataclass(frozen=True)
class Papers:
    """What somebody shows who votes or asks for votes, and whom they believe."""

    bus: str
    store: Path  # key and chain
    trust: Path

    @classmethod
    def issue(cls, pki: Pki, bus: str, name: str) -> Self:
        """Papers in the name of a voter, or of somebody who may only ask what voters know."""
        return cls(bus, pki.issue(Kind.VOTE, name, {name}).store, pki.trust_path(Realm.LINK))

    def context(self, *, serving: bool) -> ssl.SSLContext:
        """The TLS context for one connection, with what the files hold now."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if serving else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(self.trust)
            context.load_cert_chain(self.store)
        except OSError as error:
            raise SiteError(
                f"the certificate for voting cannot be used: {error}",
                where=str(self.store),
                hint="twinlog certs status",
            ) from error
        return context


def may_ask(asker: str, request: Request) -> bool:
    """True if somebody of this name may ask this: for a site only its own agent, what is known anybody."""
    return request.wish is Wish.TELL or asker == voter_of(request.site)


def ask_vote(voter: str, address: HostPort, request: Request, papers: Papers, timeout_s: float) -> Answer:
    """Ask one voter; a SiteError says why there is no answer."""
    deadline = Deadline(timeout_s)
    context = papers.context(serving=False)
    try:
        with socket.create_connection((address.host, address.port), timeout=timeout_s) as plain:
            plain.setblocking(False)
            # The name in the certificate is the voter's own: addresses change, voters do not.
            with context.wrap_socket(plain, server_hostname=voter, do_handshake_on_connect=False) as channel:
                _patiently(channel, channel.do_handshake, deadline)
                _say(channel, asdict(request), deadline)
                answer = _answer_in(_hear(channel, deadline))
    except (OSError, ValueError) as error:
        raise SiteError(
            f"voter {voter} does not answer: {error}",
            where=str(address),
            hint=f"does it run there, and does this machine reach {address}?",
        ) from error
    if answer.voter != voter:
        raise SiteError(f"voter {answer.voter} answered instead of {voter}", where=str(address))
    return answer


def ask_all(
    voters: Mapping[str, HostPort],
    request: Request,
    papers: Papers,
    timeout_s: float,
    heard: Callable[[str, Answer | SiteError], None],
) -> list[threading.Thread]:
    """Ask all voters at once; each answer is told when it comes, from a thread of its own."""

    def ask(voter: str, address: HostPort) -> None:
        try:
            heard(voter, ask_vote(voter, address, request, papers, timeout_s))
        except SiteError as error:
            heard(voter, error)

    threads = [
        threading.Thread(target=ask, args=place, name=f"ask-{place[0]}", daemon=True)
        for place in voters.items()
    ]
    for thread in threads:
        thread.start()
    return threads


def collect(
    voters: Mapping[str, HostPort],
    request: Request,
    papers: Papers,
    timeout_s: float,
    enough: Callable[[Mapping[str, Answer]], bool] = lambda told: False,
) -> dict[str, Answer]:
    """Ask all voters at once; what those said that answered before it was enough, or time was over."""
    told: dict[str, Answer] = {}
    silent: set[str] = set()
    changed = threading.Condition()

    def heard(voter: str, answer: Answer | SiteError) -> None:
        with changed:
            if isinstance(answer, Answer):
                told[voter] = answer
            else:
                silent.add(voter)
            changed.notify_all()

    ask_all(voters, request, papers, timeout_s, heard)
    with changed:
        # Not by joining the threads: the name of a machine may take longer to look up than anybody has.
        changed.wait_for(lambda: len(told) + len(silent) == len(voters) or enough(told), timeout_s)
        return dict(told)


class PollingStation:
    """Where one voter is asked; every conversation has a thread of its own."""

    def __init__(self, address: HostPort, papers: Papers, answer: Callable[[Request], Answer]) -> None:
        self._papers = papers
        self._answer = answer
        self._closed = threading.Event()
        self._places = threading.BoundedSemaphore(MOST_CONVERSATIONS)
        self._socket = listen_on(address, "the voter")
        self._socket.setblocking(True)
        host, port = self._socket.getsockname()[:2]
        self.address = HostPort(host, port)
        threading.Thread(target=self._accept, name="votes", daemon=True).start()

    def close(self) -> None:
        """Answer nobody any more."""
        self._closed.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                # Whoever went away while it waited, or no file left to open: the next one may do better.
                if self._closed.wait(ACCEPT_AGAIN_S):
                    return
                continue
            if not self._places.acquire(blocking=False):
                plain.close()
                continue
            threading.Thread(target=self._serve, args=(plain,), name="vote", daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            # Whoever breaks off or has no right to ask gets no answer; it learns that by the broken line.
            with suppress(OSError, ValueError, SiteError), plain:
                self._converse(plain, Deadline(CONVERSATION_S))
        finally:
            self._places.release()

    def _converse(self, plain: socket.socket, deadline: Deadline) -> None:
        plain.setblocking(False)
        context = self._papers.context(serving=True)
        with context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False) as channel:
            _patiently(channel, channel.do_handshake, deadline)
            asker = _asker(channel, self._papers.bus)
            request = _request_in(_hear(channel, deadline))
            if may_ask(asker, request):
                _say(channel, asdict(self._answer(request)), deadline)


def _asker(channel: ssl.SSLSocket, bus: str) -> str:
    """The name in a certificate that was made for voting on this bus."""
    shown = channel.getpeercert(binary_form=True)
    if shown is None:
        raise ValueError("no certificate was shown")
    subject = x509.load_der_x509_certificate(shown).subject
    name = {part.oid: part.value for part in subject}
    if (name.get(NameOID.ORGANIZATION_NAME), name.get(NameOID.ORGANIZATIONAL_UNIT_NAME)) != (bus, Kind.VOTE):
        raise ValueError("this certificate is not for voting here")
    return str(name.get(NameOID.COMMON_NAME))


def _patiently(channel: ssl.SSLSocket, act: Callable[[], Done], deadline: Deadline) -> Done:
    """Do something with a channel that does not block, until it is done or the deadline has passed."""
    while True:
        try:
            return act()
        except ssl.SSLWantReadError:
            event = select.POLLIN
        except ssl.SSLWantWriteError:
            event = select.POLLOUT
        waiting = select.poll()
        waiting.register(channel, event)
        if deadline.passed or not waiting.poll(deadline.remaining_s() * 1000):
            raise TimeoutError(f"no answer in {deadline.timeout_s:g} s")


def _say(channel: ssl.SSLSocket, message: Mapping[str, Any], deadline: Deadline) -> None:
    line = json.dumps(message).encode() + b"\n"
    while line:
        line = line[_patiently(channel, partial(channel.send, line), deadline) :]


def _hear(channel: ssl.SSLSocket, deadline: Deadline) -> dict[str, Any]:
    line = b""
    while not line.endswith(b"\n"):
        more = _patiently(channel, partial(channel.recv, LONGEST_LINE), deadline)
        if not more:
            raise ConnectionError("it broke off; may this machine ask there?")
        line += more
        if len(line) > LONGEST_LINE:
            raise ValueError("the line is too long")
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("this is not a message of ours")
    return message


def _request_in(message: Mapping[str, Any]) -> Request:
    site, term = message.get("site"), message.get("term")
    if not isinstance(site, str) or not isinstance(term, int) or isinstance(term, bool):
        raise ValueError("this is not a question of ours")
    return Request(Wish(message.get("wish", "")), site, term)


def _answer_in(message: Mapping[str, Any]) -> Answer:
    told = {name: message.get(name) for name in ANSWER_KINDS}
    if not all(isinstance(told[name], kind) for name, kind in ANSWER_KINDS.items()):
        raise ValueError("this is not an answer of ours")
    return Answer(**told)  # type: ignore[arg-type]
