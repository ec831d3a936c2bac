"""Addresses of brokers: a host and a port, read from and written as `host:port`.

Used by connections and by everything that names a listener. An IPv6 address is written in
brackets, as Kafka writes it. Reading what `str` wrote gives the same address again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from twinlog.errors import UsageError

MAX_PORT = 65535


@dataclass(frozen=True, order=True)
class HostPort:
    """Where a listener is."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `host:port`, `[ipv6]:port`, or either with Kafka's `LISTENER://` in front."""
        bare = text.strip().rpartition("://")[2]
        host, colon, port = bare.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise UsageError(f"'{text}' is not an address", hint="write an IPv6 address as [::1]:9092")
        if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) <= MAX_PORT):
            raise UsageError(f"'{text}' is not an address", hint="write host:port, as in 127.0.0.1:9092")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
