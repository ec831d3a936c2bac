"""TLS for connections: a context made from the PEM texts of an Access.

`connection` makes one context for each connection, `cluster` one for all of its connections.
A private key is on disk only while OpenSSL reads it, in a directory that nobody else can enter.
Nothing older than TLS 1.2 is spoken.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from twinlog.errors import UsageError
from twinlog.wire.access import Access, Protocol

_NO_CHECK_TIME = ssl.VerifyFlags(0x200000)  # X509_V_FLAG_NO_CHECK_TIME; Python has no name for it


def uses_tls(access: Access) -> bool:
    """True if the access is for a listener with TLS."""
    return access.protocol in (Protocol.SSL, Protocol.SASL_SSL)


def context_for(access: Access) -> ssl.SSLContext:
    """The TLS context that an access asks for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = access.verify_peer and access.verify_hostname
    context.verify_mode = ssl.CERT_REQUIRED if access.verify_peer else ssl.CERT_NONE
    # A CA that is itself signed by another one is trusted as it stands, as Java does.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not access.verify_time:
        context.verify_flags |= _NO_CHECK_TIME
    try:
        if access.ca_pem:
            context.load_verify_locations(cadata=access.ca_pem)
        else:
            context.load_default_certs()
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(
            "the CA certificate cannot be read", hint="is it PEM text, with BEGIN CERTIFICATE?"
        ) from error
    if access.cert_pem:
        _load_pair(context, access)
    return context


def _load_pair(context: ssl.SSLContext, access: Access) -> None:
    # OpenSSL takes the client's certificate and key from a file only.
    with tempfile.TemporaryDirectory(prefix="twinlog-") as private:
        path = Path(private) / "client.pem"
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(f"{access.cert_pem}\n{access.key_pem}\n")
        try:
            context.load_cert_chain(path, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise UsageError(
                "the client's certificate and key cannot be used",
                hint="are both PEM text, do they belong together, and is the key not encrypted?",
            ) from error


def _no_password() -> str:
    """Answer OpenSSL's question for a pass phrase, which would else be asked on the terminal."""
    return ""
