"""A broker of a few lines: it answers what a test tells it to, over a real socket.

For what a real Kafka does not do on request: fall silent, speak something else, be very old.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse

from twinlog.wire.addresses import HostPort

Script = Callable[[socket.socket], None]
API_VERSIONS, METADATA, CREATE_TOPICS = 18, 3, 19


@contextmanager
def listening(script: Script, tls: ssl.SSLContext | None = None) -> Iterator[HostPort]:
    """Run a script on every connection until the test is over; gives the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        worker = threading.Thread(target=_serve, args=(server, script, tls), daemon=True)
        worker.start()
        yield HostPort("127.0.0.1", server.getsockname()[1])


def _serve(server: socket.socket, script: Script, tls: ssl.SSLContext | None) -> None:
    while True:
        try:
            plain, _ = server.accept()
        except OSError:
            return  # the test is over
        try:
            with tls.wrap_socket(plain, server_side=True) if tls else plain as connection:
                script(connection)
        except OSError:
            continue  # the client went away, which many tests are about


def read_request(connection: socket.socket) -> tuple[int, int, int]:
    """The next request's api key, version and number."""
    key, version, number = struct.unpack_from(">hhi", read_frame(connection))
    return key, version, number


def read_frame(connection: socket.socket) -> bytes:
    """The next request whole, without its length."""
    (length,) = struct.unpack(">i", _exactly(connection, 4))
    return _exactly(connection, length)


def answer(connection: socket.socket, response: Any, version: int, number: int) -> None:
    """Send a response in a version."""
    response.API_VERSION = version
    response.with_header(correlation_id=number)
    connection.sendall(response.encode(header=True, framed=True))


def greet(connection: socket.socket, further: Mapping[int, tuple[int, int]] | None = None) -> None:
    """Answer the greeting: knows ApiVersions, Metadata, CreateTopics and these further requests."""
    _, version, number = read_request(connection)
    answer(connection, known_apis(further=further), version, number)


def known_apis(
    error_code: int = 0, further: Mapping[int, tuple[int, int]] | None = None
) -> ApiVersionsResponse:
    """An answer to the greeting."""
    versions = {
        API_VERSIONS: (0, ApiVersionsRequest.max_version),
        METADATA: (0, MetadataRequest.max_version),
        CREATE_TOPICS: (2, 7),
        **(further or {}),
    }
    keys = [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in versions.items()
    ]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


def metadata(cluster_id: str) -> MetadataResponse:
    """An answer to Metadata that tests can recognise."""
    return MetadataResponse(brokers=[], cluster_id=cluster_id, controller_id=1, topics=[])


def _exactly(connection: socket.socket, size: int) -> bytes:
    got = bytearray(size)
    rest = memoryview(got)
    while rest:
        count = connection.recv_into(rest)
        if count == 0:
            raise ConnectionError("the client is gone")
        rest = rest[count:]
    return bytes(got)
