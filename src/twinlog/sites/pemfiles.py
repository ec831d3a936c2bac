"""Keys and certificates in files of their own, read with errors that name the file.

Below `pki`, which decides what lies where.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from twinlog.errors import SiteError


def write_if_changed(path: Path, text: str, write: Callable[[Path, str], None]) -> None:
    """Replace a file unless it says the same already."""
    # Brokers watch these files' times: an unchanged one must not look new.
    if not path.exists() or path.read_text() != text:
        write(path, text)


def read_certificate(path: Path) -> x509.Certificate:
    """The first certificate in a file."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError as error:
        raise SiteError("this is not a certificate in PEM form", where=str(path)) from error
    except FileNotFoundError as error:
        raise SiteError("a certificate is missing", where=str(path), hint="twinlog certs status") from error


def read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The private key in a file that Twinlog wrote."""
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise SiteError("this is not a private key in PEM form", where=str(path)) from error
    except FileNotFoundError as error:
        raise SiteError("a private key is missing", where=str(path), hint="is it kept elsewhere?") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise SiteError("this key is not one that Twinlog made", where=str(path))
    return key
