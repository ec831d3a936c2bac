"""Ports that nobody listens on, for nodes and whatever else is given one for life.

`home` asks for them when it decides what a node keeps; `prerequisites` looks whether they are still free.
"""

from __future__ import annotations

import socket
import zlib

from twinlog.errors import PrerequisiteError

FIRST_PORT = 20000
LAST_PORT = 31999  # below the range that the kernel gives to outgoing connections


def free_ports(host: str, count: int, *, seed: str, avoid: frozenset[int]) -> list[int]:
    """Ports next to each other that nobody listens on; the seed spreads buses over the range."""
    span = LAST_PORT - FIRST_PORT - count
    start = zlib.crc32(seed.encode()) % span
    for step in range(0, span, count):
        first = FIRST_PORT + (start + step) % span
        ports = list(range(first, first + count))
        if avoid.isdisjoint(ports) and all(_is_free(host, port) for port in ports):
            return ports
    raise PrerequisiteError(
        f"no {count} free ports between {FIRST_PORT} and {LAST_PORT} on {host}", hint="ss -ltn"
    )


def _is_free(host: str, port: int) -> bool:
    try:
        bind(host, port)
    except OSError:
        return False
    return True


def bind(host: str, port: int) -> None:
    """Raise OSError if nobody could listen on a port now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen(1)
