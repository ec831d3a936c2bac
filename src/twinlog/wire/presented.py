"""A look at certificates, to say why one was not accepted.

Apart from `tls`, because a connection that works needs none of it, and what reads certificates takes
longer to import than most commands take to run.
"""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime

from cryptography import x509

from twinlog.wire.addresses import HostPort


def peek_certificate(address: HostPort, timeout_s: float) -> x509.Certificate | None:
    """The certificate that a listener shows, unchecked; None if it shows none in time."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # only looked at, to explain why it was not accepted
    try:
        with (
            socket.create_connection((address.host, address.port), timeout=timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=address.host) as secured,
        ):
            der = secured.getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(der) if der else None
    except (OSError, ValueError):
        return None


def has_ended(cert_pem: str) -> bool:
    """True if the first certificate of a PEM text is no longer valid."""
    ends = x509.load_pem_x509_certificate(cert_pem.encode()).not_valid_after_utc
    return ends < datetime.now(UTC)


def names_in(certificate: x509.Certificate) -> tuple[str, ...]:
    """The host names and addresses that a certificate is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(names.get_values_for_type(x509.DNSName)) + tuple(
        str(address) for address in names.get_values_for_type(x509.IPAddress)
    )
