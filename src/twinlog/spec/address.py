"""Addresses as text: `host:port` and hosts. Says what is wrong with one, or nothing."""

from __future__ import annotations

import ipaddress
import re

WILDCARDS = ("0.0.0.0", "::", "[::]")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")


def is_loopback(host: str) -> bool:
    """Whether only the machine itself can reach a host of that name or address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def address_problem(text: str) -> tuple[str, str] | None:
    """What is wrong with an address of the form host:port, and a hint; None if nothing is."""
    if "," in text:
        return f"{text!r} is more than one address", "write a list with one address each"
    if "://" in text:
        rest = text.split("://", 1)[1]
        return f"{text!r} has a protocol in front", f"did you mean {rest}?"
    host, colon, port = text.rpartition(":")
    if any(character.isspace() for character in text):
        return f"{text!r} has a blank in it", f"did you mean {''.join(text.split())}?"
    if not colon or not port.isascii() or not port.isdigit():
        return f"{text!r} has no port", f"write host:port, as in {text.strip(':') or '127.0.0.1'}:9092"
    if not 1 <= int(port[:6]) <= 65535:
        return f"port {port} does not exist", "ports are 1 to 65535"
    if host.startswith("[") and host.endswith("]"):
        return host_problem(host[1:-1])
    if ":" in host:
        return f"{text!r} is not host:port", "put an IPv6 address in brackets: [::1]:9092"
    return host_problem(host)


def host_problem(text: str) -> tuple[str, str] | None:
    """What is wrong with a host name or IP address, and a hint; None if nothing is."""
    if ":" in text:
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            return f"{text!r} is not a host", "write the host alone; the port is `port:`"
        return None
    if _HOST.fullmatch(text) is None:
        return f"{text!r} is not a host", "write a name or an IP address, as in 127.0.0.1"
    return None
