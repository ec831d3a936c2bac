"""What a TLS server shows of itself: the certificates, whoever signed them.

For `certs fetch HOST:PORT`: the way to look at a server before it is trusted. Nothing is verified
here and nothing is sent after the handshake, so what comes back must be compared by a person (or
with a fingerprint) before anybody trusts it.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from typing import Any

from twinlog.errors import SiteError


def fetch(host: str, port: int, timeout_s: float) -> list[str]:
    """The certificates that a TLS server presents as PEM, its own first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    where = f"{host}:{port}"
    try:
        with (
            socket.create_connection((host, port), timeout=timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=_server_name(host)) as secured,
        ):
            return [ssl.DER_cert_to_PEM_cert(der) for der in _chain(secured)]
    except ssl.SSLError as error:
        raise SiteError(
            f"the TLS handshake failed: {error.reason or error}", where=where, hint="is this a TLS port?"
        ) from error
    except OSError as error:
        raise SiteError(
            f"no connection: {error.strerror or error}", where=where, hint="does the server run there?"
        ) from error


def _server_name(host: str) -> str | None:
    # Servers with several names choose by this one; an address may not stand there (RFC 6066).
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host
    return None


def _chain(secured: ssl.SSLSocket) -> list[bytes]:
    # Public since Python 3.13; before that only the object below the socket has it.
    source: Any = secured if hasattr(secured, "get_unverified_chain") else getattr(secured, "_sslobj", None)
    ask = getattr(source, "get_unverified_chain", None)
    if ask is None:
        own = secured.getpeercert(binary_form=True)
        return [own] if own else []
    return [_der(certificate) for certificate in ask() or ()]


def _der(certificate: Any) -> bytes:
    if isinstance(certificate, bytes):
        return certificate
    return ssl.PEM_cert_to_DER_cert(certificate.public_bytes())
