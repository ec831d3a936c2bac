"""Why a connection cannot be had or was lost, in words that guess the operator's mistake.

`connection` catches what sockets and OpenSSL raise and lets `explain` turn it into a
`ConnectionFailed`. A failure says whether trying again can help by itself: a refused
connection may be a broker that is starting, a certificate that is not accepted stays so.
"""

from __future__ import annotations

import socket
import ssl
from enum import StrEnum

from twinlog.errors import SiteError
from twinlog.wire.access import Access
from twinlog.wire.addresses import HostPort
from twinlog.wire.tls import uses_tls

# OpenSSL's numbers for what is wrong with a certificate.
_NOT_YET_VALID, _EXPIRED, _WRONG_NAME, _WRONG_ADDRESS = 9, 10, 62, 64
# The first bytes of what other protocols answer, read as the length of a Kafka frame.
_TLS_RECORDS = range(0x14030000, 0x18040000)
_HTTP = int.from_bytes(b"HTTP", "big")

_IS_IT_UP = "is the site up? twinlog status"
_IS_TLS_MISSING = "is TLS missing? security.protocol must be that of the listener"
_WANTS_CERTIFICATE = "does this listener want a client certificate? CLIENT_TLS and LINK do"
_IS_OURS_TRUSTED = "is our certificate signed by the CA that this site trusts? twinlog certs status"


class Stage(StrEnum):
    """How far a connection had come."""

    CONNECT = "connecting"
    TLS = "the TLS handshake"
    GREETING = "the greeting"
    LOGIN = "logging in"
    FIRST = "the first request"
    READY = "a request"


class ConnectionFailed(SiteError):
    """No connection, or not any more, and nothing was changed by it.

    `retriable` says whether the same attempt may work a little later.
    """

    def __init__(self, what: str, *, retriable: bool, where: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, hint=hint)
        self.retriable = retriable


class ClosedByPeer(ConnectionError):
    """The other side closed the connection between two answers or within one."""


class NotKafka(ConnectionError):
    """What came cannot be an answer of Kafka. `length` is what its first four bytes would mean."""

    def __init__(self, length: int) -> None:
        super().__init__(f"a frame of {length} bytes")
        self.length = length


def explain(error: Exception, stage: Stage, address: HostPort, access: Access) -> ConnectionFailed:
    """The failure that an exception means at a stage of a connection."""
    what, hint, retriable = _reason(error, stage, address, access)
    return ConnectionFailed(what, retriable=retriable, where=str(address), hint=hint)


def _reason(error: Exception, stage: Stage, address: HostPort, access: Access) -> tuple[str, str, bool]:
    match error:
        case ssl.SSLCertVerificationError():
            return (*_untrusted(error, address), False)
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError() | ClosedByPeer() | ConnectionResetError():
            return _closed(stage, access)
        case BrokenPipeError():
            return _closed(stage, access)
        case ssl.SSLError():
            return (*_tls_refused(error, access), False)
        case socket.gaierror():
            again = error.errno == socket.EAI_AGAIN
            return f"the host name '{address.host}' is not known", "is the name right, and in DNS?", again
        case ConnectionRefusedError():
            return "nothing listens there", _IS_IT_UP, True
        case TimeoutError():
            return f"no answer in time during {stage}", _silence_hint(stage), True
        case NotKafka():
            return (*_foreign(error.length), False)
        case _:
            return f"{stage} failed: {type(error).__name__}: {error}", _IS_IT_UP, isinstance(error, OSError)


def _untrusted(error: ssl.SSLCertVerificationError, address: HostPort) -> tuple[str, str]:
    from twinlog.wire import presented  # noqa: PLC0415  only a connection that fails needs it

    shown = presented.peek_certificate(address, timeout_s=2.0)
    if error.verify_code in (_WRONG_NAME, _WRONG_ADDRESS):
        names = ", ".join(presented.names_in(shown)) if shown else ""
        held = f"it is for {names}" if names else "it names no host"
        return (
            f"the broker's certificate is not for '{address.host}': {held}",
            "connect by one of these, or add the name to certificates.names and run twinlog certs renew",
        )
    if error.verify_code == _EXPIRED:
        since = f" on {shown.not_valid_after_utc:%Y-%m-%d %H:%M} UTC" if shown else ""
        return f"the broker's certificate ended{since}", "twinlog certs renew; is this machine's clock right?"
    if error.verify_code == _NOT_YET_VALID:
        since = f" before {shown.not_valid_before_utc:%Y-%m-%d %H:%M} UTC" if shown else ""
        return f"the broker's certificate is not valid{since}", "is this machine's clock right?"
    issuer = f", signed by '{shown.issuer.rfc4514_string()}'," if shown else ""
    return (
        f"the broker's certificate{issuer} is not trusted: {error.verify_message}",
        f"is the CA right? twinlog certs fetch {address} shows what the broker presents",
    )


def _has_ended(cert_pem: str) -> bool:
    from twinlog.wire import presented  # noqa: PLC0415  only a connection that fails needs it

    return presented.has_ended(cert_pem)


def _tls_refused(error: ssl.SSLError, access: Access) -> tuple[str, str]:
    reason = (error.reason or str(error)).upper()
    if "ALERT" not in reason:
        if any(sign in reason for sign in ("WRONG_VERSION", "HTTP_REQUEST", "UNEXPECTED_MESSAGE", "RECORD")):
            return "the listener does not speak TLS", "is it a PLAINTEXT or SASL_PLAINTEXT listener?"
        return f"TLS failed: {reason}", "is this a listener with TLS?"
    said = reason.partition("ALERT_")[2].lower().replace("_", " ")
    if not access.cert_pem:
        return f"the broker ended TLS: {said}", _WANTS_CERTIFICATE
    if "expired" in said or _has_ended(access.cert_pem):
        return "the broker does not accept our certificate: it has expired", "twinlog certs renew"
    if "ca" in said.split() or "certificate" in said:
        return f"the broker does not accept our certificate: {said}", _IS_OURS_TRUSTED
    return f"the broker ended TLS: {said}", "do both sides allow TLS 1.2 or 1.3 with a common cipher?"


def _closed(stage: Stage, access: Access) -> tuple[str, str, bool]:
    what = f"the broker closed the connection during {stage}"
    if stage is Stage.TLS:
        return what, "does this listener speak TLS? is the broker still starting?", True
    if stage is Stage.GREETING and not uses_tls(access):
        return what, _IS_TLS_MISSING, True
    if stage is Stage.GREETING and not access.cert_pem:
        return what, _WANTS_CERTIFICATE, True
    if stage is Stage.GREETING:
        # With TLS 1.3 a refused certificate shows only now, and the alert that says so may get lost.
        if _has_ended(access.cert_pem):
            return f"{what}: our certificate has expired", "twinlog certs renew", False
        return what, _IS_OURS_TRUSTED, True
    if stage is Stage.LOGIN:
        return what, "is the mechanism right, and does this listener take passwords?", True
    if stage is Stage.FIRST and access.mechanism is None:
        return what, "is SASL missing? a listener with passwords ends connections that do not log in", True
    return what, _IS_IT_UP, True


def _silence_hint(stage: Stage) -> str:
    if stage is Stage.CONNECT:
        return "is the host up, and no firewall between?"
    return "is this a Kafka listener, and the broker not overloaded? twinlog status"


def _foreign(length: int) -> tuple[str, str]:
    if length in _TLS_RECORDS:
        return "the listener answers with TLS", _IS_TLS_MISSING
    if length == _HTTP:
        return "the listener speaks HTTP, not Kafka", "is the port right?"
    return "what came back is not an answer of Kafka", "is the port right?"
