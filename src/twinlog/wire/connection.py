"""One connection to one broker: TCP, TLS, login, and requests in the version both sides know.

`cluster` keeps these; code that needs requests in flight uses `send` and `receive` itself, which
may be called up to five times ahead of each other. Not for use by two threads at a time.
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
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, NoReturn, Self

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from twinlog import __version__
from twinlog.errors import KafkaError, TwinlogError, UnknownOutcome
from twinlog.wire import codes
from twinlog.wire.access import Access, Protocol
from twinlog.wire.addresses import HostPort
from twinlog.wire.deadlines import Clock, Deadline
from twinlog.wire.failures import ClosedByPeer, NotKafka, Stage, explain
from twinlog.wire.login import Answer, log_in
from twinlog.wire.tls import context_for, uses_tls
from twinlog.wire.versions import Range, choose, is_write

MAX_FRAME_BYTES = 256 * 1024 * 1024
_LENGTH = struct.Struct(">i")
_HEADER_BYTES_MOST = 256  # a response header: an id and, rarely, tagged fields
_UNSUPPORTED_VERSION = 35
_UNREADABLE = (ValueError, IndexError, TypeError, struct.error)


@dataclass(frozen=True)
class Pending(Generic[Answer]):
    """A request that was sent and whose answer has not been read yet."""

    name: str
    number: int
    version: int
    answer: type[Answer]

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
        max_version: int | None = None,
    ) -> Answer:
        """Send one request and wait for its answer."""
        deadline = Deadline(self._timeout_s if timeout_s is None else timeout_s, self._clock)
        return self.receive(self.send(request, answer, deadline, max_version=max_version), deadline)

    def send(
        self,
        request: ApiMessage,
        answer: type[Answer],
        deadline: Deadline,
        *,
        max_version: int | None = None,
    ) -> Pending[Answer]:
        """Send one request; its answer is read by `receive`, in the order of sending."""
        version = self._version_for(type(request), max_version)
        self._number += 1
        frame = _encode(request, version, self._number, self._client_id)
        try:
            self._write(frame, deadline)
        except OSError as error:
            self._fail(error)
        pending = Pending(type(request).__name__, self._number, version, answer)
        self._pending.append(pending)
        return pending

    def receive(self, pending: Pending[Answer], deadline: Deadline) -> Answer:
        """Wait for the answer to the oldest request that was sent and not answered yet."""
        if not self._pending or self._pending[0] is not pending:
            raise RuntimeError("answers are read in the order of sending")
        try:
            answer = self._decode(self._read_frame(deadline), pending)
        except OSError as error:
            self._lost(error, pending)
        self._pending.popleft()
        if self._stage is Stage.FIRST:
            self._stage = Stage.READY
        return answer

    def supports(self, request: type[ApiMessage], max_version: int | None = None) -> bool:
        """True if the broker knows a version of a request that we know too."""
        ours = Range(*request.valid_versions)
        return choose(ours, self._versions.get(request.API_KEY), max_version) is not None

    @property
    def is_open(self) -> bool:
        """False after `close` and after any error."""
        return self._socket is not None

    def close(self) -> None:
        """End the connection; harmless if it has ended."""
        if self._socket is not None:
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
        target = (self.address.host, self.address.port)
        try:
            self._socket = socket.create_connection(target, timeout=deadline.timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            self._fail(error)

    def _secure(self, context: ssl.SSLContext, deadline: Deadline) -> None:
        self._stage = Stage.TLS
        try:
            plain = self._armed(deadline)
            # The whole handshake happens inside, within the socket's timeout.
            self._socket = context.wrap_socket(plain, server_hostname=self.address.host)
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

    def _version_for(self, request: type[ApiMessage], cap: int | None) -> int:
        ours, theirs = Range(*request.valid_versions), self._versions.get(request.API_KEY)
        version = choose(ours, theirs, cap)
        if version is None:
            known = f"knows versions {theirs.low} to {theirs.high}" if theirs else "does not know it"
            raise KafkaError(
                f"{request.__name__} cannot be sent: the broker {known}",
                code="UNSUPPORTED_VERSION",
                where=str(self.address),
                hint="is the broker much older or newer than Kafka 4.3? is this a controller's port?",
            )
        return version

    def _armed(self, deadline: Deadline) -> socket.socket:
        """The socket, with its timeout set to the time that is left."""
        if self._socket is None:
            raise ClosedByPeer("the connection was closed before")
        left = deadline.remaining_s()
        if left <= 0.0:
            raise TimeoutError("no time left")
        self._socket.settimeout(left)
        return self._socket

    def _write(self, frame: bytes, deadline: Deadline) -> None:
        rest = memoryview(frame)
        while rest:
            rest = rest[self._armed(deadline).send(rest) :]

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

    def _decode(self, frame: memoryview, pending: Pending[Answer]) -> Answer:
        kind = pending.answer[pending.version]
        header = io.BytesIO(frame[:_HEADER_BYTES_MOST])
        try:
            if kind.parse_header(header).correlation_id != pending.number:
                raise NotKafka(len(frame))
            answer: Answer = kind.decode(frame[header.tell() :])
        except _UNREADABLE as error:
            raise NotKafka(len(frame)) from error
        return answer

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


def _encode(request: Any, version: int, number: int, client_id: str) -> bytes:
    """The bytes of a request, its length in front."""
    request.API_VERSION = version
    request.with_header(correlation_id=number, client_id=client_id)
    return bytes(request.encode(header=True, framed=True))
