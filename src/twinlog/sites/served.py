"""Which certificates running nodes show on their listeners, compared with those on disk.

For `certs status`, and for renewal to see that a node has really taken its new certificate. Nothing
is verified: it is a comparison with a file, so a stranger on the port shows up as another certificate.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from twinlog.errors import SiteError
from twinlog.sites import handshake
from twinlog.sites.authorities import Kind
from twinlog.sites.home import Home
from twinlog.sites.layout import LISTENERS, Listener, Node
from twinlog.sites.pemfiles import read_certificate
from twinlog.wire.presented import has_ended

TIMEOUT_S = 3.0  # a handshake on a busy machine takes a tenth of that
AT_ONCE = 8


@dataclass(frozen=True)
class Served:
    """What one listener of a node shows."""

    node: Node
    listener: Listener
    certificate: Path  # the file that it should show
    same: bool | None  # None if the listener shows nothing
    ended: bool = False  # what it shows is no longer valid

    @property
    def label(self) -> str:
        """As people read it: `a/broker-1 client`."""
        return f"{self.node.name} {self.listener}"


def look(home: Home, nodes: Iterable[Node]) -> list[Served]:
    """Look at every listener of these nodes."""
    listeners = [(node, listener) for node in nodes for listener in LISTENERS[node.kind]]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda pair: _look(home, *pair), listeners))


def fingerprint(pem: str) -> str:
    """The sha256 sum of a certificate, as openssl prints it but in lower case and without colons."""
    return x509.load_pem_x509_certificate(pem.encode()).fingerprint(hashes.SHA256()).hex()


def _look(home: Home, node: Node, listener: Listener) -> Served:
    kind = Kind.SERVER if listener in (Listener.CLIENT, Listener.CLIENT_TLS) else Kind.NODE
    file = home.pki.paths(kind, f"{kind}-{node.id}").certificate
    try:
        shown = handshake.fetch(node.advertise, node.ports[listener], TIMEOUT_S)
    except SiteError:
        return Served(node, listener, file, None)
    if not shown:
        return Served(node, listener, file, None)
    wanted = read_certificate(file).fingerprint(hashes.SHA256()).hex()
    return Served(node, listener, file, fingerprint(shown[0]) == wanted, has_ended(shown[0]))
