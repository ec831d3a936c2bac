"""One connection to one broker: TCP, TLS, login, and requests in the version both sides know.

`cluster` keeps these; code that needs requests in flight uses `send` and `receive` itself, which
may be called up to five times ahead of each other. What moves records (`fetching`, `appending`)
brings its own bytes (`RawRequest`), so that records are copied as seldom as the socket allows.
Not for use by two threads at a time.
Every wait ends at a deadline. Any error closes the connection: what a half-read answer would
leave behind must never be taken for the next one. A request that did not leave whole was not
done; a write that left and was not answered is an `UnknownOutcome`.
"""

from __future__ import annotations

import io
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata.api_versions import ApiVersionsRequest, ApiVersionsResponse

from twinlog import __version__
from twinlog.errors import KafkaError, TwinlogError, UnknownOutcome
from twinlog.wire import codes
from twinlog.wire.access import Access, Protocol
from twinlog.wire.addresses import HostPort
from twinlog.wire.compact import skip_tags
from twinlog.wire.deadlines import Clock, Deadline
from twinlog.wire.failures import ClosedByPeer, NotKafka, Stage, explain
from twinlog.wire.tls import context_for, uses_tls
from twinlog.wire.versions import Range, choose, is_write

if TYPE_CHECKING:  # certificates need no login, and its messages take a while to make
    from twinlog.wire.login import Answer

MAX_FRAME_BYTES = 256 * 1024 * 1024
_LENGTH = struct.Struct(">i")
_HEADER_BYTES_MOST = 256  # a response header: an id and, rarely, tagged fields
_UNSUPPORTED_VERSION = 35
_UNREADABLE = (ValueError, IndexError, TypeError, struct.error)
_REQUEST_HEADER = struct.Struct(">hhih")  # api key, version, number, length of the client's id
_NUMBER = struct.Struct(">i")
_NO_TAGS = b"\0"
_MOST_PIECES = 512  # in one call; the system's own limit is 1024
_HIGHEST_NUMBER = 2**31 - 1
_RESET = struct.pack("ii", 1, 0)  # linger for no time: what was not sent yet is thrown away

Piece = bytes | bytearray | memoryview
Result = TypeVar("Result")


@dataclass(frozen=True)
class RawRequest(Generic[Result]):
    """A request that its sender has encoded: what follows the header, and how to read what answers it.

    Only for versions with compact lengths and tagged fields (KIP-482), which fix the form of both headers.
    """

    name: str
    api_key: int
    version: int
    body: Sequence[Piece]
    read: Callable[[memoryview], Result]


@dataclass(frozen=True)
class Pending(Generic[Result]):
    """A request that was sent and whose answer has not been read yet."""

    name: str
    number: int
    read: Callable[[memoryview], Result]  # the whole frame, without its length

    @property
    def is_write(self) -> bool:
        """True if the request may have changed something."""
        return is_write(self.name)


class Connection:
    """A connection that is ready for requests once it has been made."""

    def __init__(
        self,
        address: HostPort,
        access: Access,
        *,
        timeout_s: float = 10.0,
        client_id: str = "twinlog",
        tls: ssl.SSLContext | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.address = address
        self._access = access
        self._timeout_s = timeout_s
        self._client_id = client_id
        self._clock = clock
        self._number = 0
        self._pending: deque[Pending[Any]] = deque()
        self._versions: dict[int, Range] = {}
        self._stage = Stage.CONNECT
        self._socket: socket.socket | None = None
        deadline = Deadline(timeout_s, clock)
        try:
            self._connect(deadline)
            if uses_tls(access):
                self._secure(tls if tls is not None else context_for(access), deadline)
            self._greet(deadline)
            if access.protocol in (Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL):
                from twinlog.wire.login import log_in  # noqa: PLC0415

                self._stage = Stage.LOGIN
                log_in(
                    access, str(address), lambda request, answer: self._exchange(request, answer, deadline)
                )
        except BaseException:
            self.close()
            raise
        self._stage = Stage.FIRST

    # Requests

    def call(
        self,
        request: ApiMessage,
        answer: type[Answer],
        *,
        timeout_s: float | None = None,
        min_version: int = 0,
        max_version: int | None = None,
    ) -> Answer:
        """Send one request and wait for its answer."""
        deadline = Deadline(self._timeout_s if timeout_s is None else timeout_s, self._clock)
        sent = self.send(request, answer, deadline, min_version=min_version, max_version=max_version)
        return self.receive(sent, deadline)

    def send(
        self,
        request: ApiMessage,
        answer: type[Answer],
        deadline: Deadline,
        *,
        min_version: int = 0,
        max_version: int | None = None,
    ) -> Pending[Answer]:
        """Send one request; its answer is read by `receive`, in the order of sending."""
        ours = Range(*type(request).valid_versions)
        high = ours.high if max_version is None else min(ours.high, max_version)
        version = self.agree(type(request).__name__, request.API_KEY, Range(max(ours.low, min_version), high))
        number = self._next_number()
        frame = _encode(request, version, number, self._client_id)

        def read(frame: memoryview) -> Answer:
            return _decode(frame, answer, version, number)

        return self._dispatch([frame], Pending(type(request).__name__, number, read), deadline)

    def send_raw(self, request: RawRequest[Result], deadline: Deadline) -> Pending[Result]:
        """Send a request that is encoded already; its answer is read by `receive` as well."""
        number = self._next_number()
        client = self._client_id.encode()
        header = _REQUEST_HEADER.pack(request.api_key, request.version, number, len(client)) + client
        size = len(header) + len(_NO_TAGS) + sum(len(piece) for piece in request.body)
        frame = [_LENGTH.pack(size) + header + _NO_TAGS, *request.body]

        def read(frame: memoryview) -> Result:
            (answered,) = _NUMBER.unpack_from(frame)
            if answered != number:
                raise NotKafka(len(frame))
            return request.read(frame[skip_tags(frame, _NUMBER.size) :])

        return self._dispatch(frame, Pending(request.name, number, read), deadline)

    def receive(self, pending: Pending[Result], deadline: Deadline) -> Result:
        """Wait for the answer to the oldest request that was sent and not answered yet."""
        if not self._pending or self._pending[0] is not pending:
            raise RuntimeError("answers are read in the order of sending")
        try:
            frame = self._read_frame(deadline)
            try:
                answer = pending.read(frame)
            except _UNREADABLE as error:
                raise NotKafka(len(frame)) from error
        except OSError as error:
            self._lost(error, pending)
        self._pending.popleft()
        if self._stage is Stage.FIRST:
            self._stage = Stage.READY
        return answer

    def agree(self, name: str, api_key: int, ours: Range) -> int:
        """The version of a request to send: the highest that both sides know."""
        theirs = self._versions.get(api_key)
        version = choose(ours, theirs)
        if version is None:
            known = f"knows versions {theirs.low} to {theirs.high}" if theirs else "does not know it"
            raise KafkaError(
                f"{name} cannot be sent: the broker {known}",
                code="UNSUPPORTED_VERSION",
                where=str(self.address),
                hint="is the broker much older or newer than Kafka 4.3? is this a controller's port?",
            )
        return version

    def supports(self, request: type[ApiMessage], max_version: int | None = None) -> bool:
        """True if the broker knows a version of a request that we know too."""
        ours = Range(*request.valid_versions)
        return choose(ours, self._versions.get(request.API_KEY), max_version) is not None

    def knows(self, api_key: int, ours: Range) -> bool:
        """True if the broker knows one of these versions of a request."""
        return choose(ours, self._versions.get(api_key)) is not None

    @property
    def is_open(self) -> bool:
        """False after `close` and after any error."""
        return self._socket is not None

    def close(self) -> None:
        """End the connection; harmless if it has ended."""
        if self._socket is not None:
            if self._pending:
                # Whoever asked will look what became of it; it must not be sent on and arrive after that.
                with suppress(OSError):
                    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Opening

    def _connect(self, deadline: Deadline) -> None:
        target = (_plain(self.address.host), self.address.port)
        try:
            self._socket = socket.create_connection(target, timeout=deadline.timeout_s)  # type: ignore[arg-type]
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            self._fail(error)

    def _secure(self, context: ssl.SSLContext, deadline: Deadline) -> None:
        self._stage = Stage.TLS
        try:
            plain = self._armed(deadline)
            # The whole handshake happens inside, within the socket's timeout.
            self._socket = context.wrap_socket(plain, server_hostname=_plain(self.address.host))
        except OSError as error:
            self._fail(error)

    def _greet(self, deadline: Deadline) -> None:
        """Ask which requests the broker knows (KIP-511: it answers in version 0 if ours is too new)."""
        self._stage = Stage.GREETING
        ours = Range(*ApiVersionsRequest.valid_versions)
        self._versions = {ApiVersionsRequest.API_KEY: ours}
        answer = self._hello(deadline)
        if answer.error_code == _UNSUPPORTED_VERSION:
            theirs = {key.api_key: Range(key.min_version, key.max_version) for key in answer.api_keys}
            known = theirs.get(ApiVersionsRequest.API_KEY, Range(0, 0))
            self._versions = {ApiVersionsRequest.API_KEY: known}
            answer = self._hello(deadline)
        codes.check(answer.error_code, None, "asking what the broker can do", str(self.address))
        self._versions = {key.api_key: Range(key.min_version, key.max_version) for key in answer.api_keys}

    def _hello(self, deadline: Deadline) -> ApiVersionsResponse:
        request = ApiVersionsRequest(client_software_name="twinlog", client_software_version=__version__)
        return self._exchange(request, ApiVersionsResponse, deadline)

    def _exchange(self, request: ApiMessage, answer: type[Answer], deadline: Deadline) -> Answer:
        return self.receive(self.send(request, answer, deadline), deadline)

    # Bytes

    def _next_number(self) -> int:
        self._number = self._number % _HIGHEST_NUMBER + 1
        return self._number

    def _dispatch(self, frame: list[Piece], pending: Pending[Result], deadline: Deadline) -> Pending[Result]:
        try:
            self._write(frame, deadline)
        except OSError as error:
            self._fail(error)
        self._pending.append(pending)
        return pending

    def _armed(self, deadline: Deadline) -> socket.socket:
        """The socket, with its timeout set to the time that is left."""
        if self._socket is None:
            raise ClosedByPeer("the connection was closed before")
        left = deadline.remaining_s()
        if left <= 0.0:
            raise TimeoutError("no time left")
        self._socket.settimeout(left)
        return self._socket

    def _write(self, frame: list[Piece], deadline: Deadline) -> None:
        if isinstance(self._socket, ssl.SSLSocket):
            # TLS cannot gather, and a record of its own for every piece would cost more than one copy.
            rest = memoryview(frame[0] if len(frame) == 1 else b"".join(frame))
            while rest:
                rest = rest[self._armed(deadline).send(rest) :]
            return
        while frame:
            frame = _unsent(frame, self._armed(deadline).sendmsg(frame[:_MOST_PIECES]))

    def _read_frame(self, deadline: Deadline) -> memoryview:
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline))
        if not 0 < length <= MAX_FRAME_BYTES:
            raise NotKafka(length)
        return self._read(length, deadline)

    def _read(self, size: int, deadline: Deadline) -> memoryview:
        whole = memoryview(bytearray(size))
        rest = whole
        while rest:
            count = self._armed(deadline).recv_into(rest)
            if count == 0:
                raise ClosedByPeer("closed")
            rest = rest[count:]
        return whole

    # Trouble

    def _fail(self, error: OSError) -> NoReturn:
        self.close()
        raise explain(error, self._stage, self.address, self._access) from error

    def _lost(self, error: OSError, pending: Pending[Any]) -> NoReturn:
        self.close()
        failure: TwinlogError = explain(error, self._stage, self.address, self._access)
        if pending.is_write:
            failure = UnknownOutcome(
                f"{pending.name} was sent and not answered: {failure.what}",
                where=failure.where,
                hint="it may have been done: look before repeating it",
            )
        raise failure from error


def _plain(host: str) -> str | bytes:
    """A host for sockets and TLS: given bytes they do without IDNA, whose tables take long to load."""
    return host.encode() if host.isascii() else host


def _encode(request: Any, version: int, number: int, client_id: str) -> bytes:
    """The bytes of a request, its length in front."""
    request.API_VERSION = version
    request.with_header(correlation_id=number, client_id=client_id)
    return bytes(request.encode(header=True, framed=True))


def _decode(frame: memoryview, answer: type[Answer], version: int, number: int) -> Answer:
    """The answer in a frame, if it is the one to the request of this number."""
    kind = answer[version]
    header = io.BytesIO(frame[:_HEADER_BYTES_MOST])
    if kind.parse_header(header).correlation_id != number:
        raise NotKafka(len(frame))
    decoded: Answer = kind.decode(frame[header.tell() :])
    return decoded


def _unsent(frame: list[Piece], sent: int) -> list[Piece]:
    """What is left of a frame after so many of its bytes have left."""
    for index, piece in enumerate(frame):
        if sent < len(piece):
            return [memoryview(piece)[sent:], *frame[index + 1 :]]
        sent -= len(piece)
    return []
