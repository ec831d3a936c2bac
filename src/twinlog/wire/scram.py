"""SCRAM (RFC 5802, RFC 7677): how a user proves that it knows a password without sending it.

The pure half of logging in: `connection` carries the messages, `users` stores what
`salted_password` makes of a password. Kafka compares UTF-8 bytes and does no SASLprep, and
neither does this. A server that cannot show that it knows the password too is refused.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from twinlog.wire.access import Mechanism

MIN_ITERATIONS = 4096  # Kafka's own bounds
MAX_ITERATIONS = 16384
# A server names the iterations; without a bound it could keep the client busy for hours.
_MOST_ITERATIONS_ACCEPTED = 1_000_000

_HASHES = {Mechanism.SCRAM_SHA_256: "sha256", Mechanism.SCRAM_SHA_512: "sha512"}


class ScramRefused(ValueError):
    """The server's message is not one that SCRAM allows here."""


def salted_password(password: str, salt: bytes, iterations: int, mechanism: Mechanism) -> bytes:
    """What a server stores (after two more hashes) instead of the password."""
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)


class ScramClient:
    """One login: `first()`, then `answer()` the server's challenge, then `verify()` the server."""

    def __init__(self, user: str, password: str, mechanism: Mechanism, nonce: str = "") -> None:
        self._password = password
        self._mechanism = mechanism
        self._nonce = nonce or secrets.token_urlsafe(24)
        escaped = user.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={escaped},r={self._nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        """The client's first message."""
        return f"n,,{self._first_bare}".encode()

    def answer(self, challenge: bytes) -> bytes:
        """The client's second message: the proof for the server's challenge."""
        fields = _fields(challenge)
        nonce, iterations = fields.get("r", ""), fields.get("i", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ScramRefused("the server did not add to the client's nonce")
        if not iterations.isdigit() or not 0 < int(iterations) <= _MOST_ITERATIONS_ACCEPTED:
            raise ScramRefused("the server's number of iterations is not acceptable")
        salt = base64.b64decode(fields.get("s", ""))
        salted = salted_password(self._password, salt, int(iterations), self._mechanism)
        without_proof = f"c=biws,r={nonce}"
        said = f"{self._first_bare},{challenge.decode()},{without_proof}".encode()
        client_key = self._mac(salted, b"Client Key")
        stored_key = hashlib.new(_HASHES[self._mechanism], client_key).digest()
        signature = self._mac(stored_key, said)
        proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
        self._server_signature = self._mac(self._mac(salted, b"Server Key"), said)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, final: bytes) -> None:
        """Refuse a server that does not know the password itself."""
        fields = _fields(final)
        if "e" in fields:
            raise ScramRefused(f"the server refused: {fields['e']}")
        shown = base64.b64decode(fields.get("v", ""))
        if not self._server_signature or not hmac.compare_digest(shown, self._server_signature):
            raise ScramRefused("the server could not prove that it knows the password")

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, _HASHES[self._mechanism])


def _fields(message: bytes) -> dict[str, str]:
    pairs = (part.partition("=") for part in message.decode().split(","))
    return {name: value for name, _, value in pairs}
