"""What a reader of blocks asks for: the checks of a request, and where it begins and ends. Pure.

Deliver calls `read`, then `seek`, then `span`, each raising a refusal; between them it looks the channel
up and asks who may read. The order of the checks is what clients see, and must stay.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from twinlog.ordering.policy import SignedData
from twinlog.ordering.proto import common_pb2, orderer_pb2
from twinlog.ordering.statuses import NOT_FOUND, Refusal, bad

SeekInfo = orderer_pb2.SeekInfo


@dataclass(frozen=True)
class Request:
    """A request whose headers are in order."""

    channel_id: str
    signed: SignedData
    data: bytes  # a SeekInfo, not looked at yet


@dataclass(frozen=True)
class Span:
    """The blocks that are asked for."""

    first: int
    last: int  # 2**64 - 1 has no end


def read(raw: bytes, now_s: float, window_s: float, certificate: bytes | None, *, binds: bool) -> Request:
    """Take a request apart; `binds` says that it must name the certificate of its connection."""
    try:
        envelope = common_pb2.Envelope.FromString(raw)
        payload = common_pb2.Payload.FromString(envelope.payload)
        if not payload.HasField("header"):
            raise bad("the request has no header")
        channel = common_pb2.ChannelHeader.FromString(payload.header.channel_header)
        creator = common_pb2.SignatureHeader.FromString(payload.header.signature_header).creator
    except DecodeError:
        raise bad("the request cannot be decoded") from None
    if not channel.HasField("timestamp"):
        raise bad("the request has no timestamp")
    sent_s = channel.timestamp.seconds + channel.timestamp.nanos / 1e9
    if abs(now_s - sent_s) > window_s:
        raise bad(f"the request's timestamp is more than {window_s:g} s from the orderer's clock")
    if binds and (certificate is None or channel.tls_cert_hash != hashlib.sha256(certificate).digest()):
        raise bad("the request does not name the TLS certificate of its connection")
    signed = SignedData(envelope.payload, creator, envelope.signature)
    return Request(channel.channel_id, signed, payload.data)


def seek(data: bytes) -> SeekInfo:
    """What is asked for."""
    try:
        return SeekInfo.FromString(data)
    except DecodeError:
        raise bad("the request holds no SeekInfo") from None


def span(wanted: SeekInfo, height: int) -> Span:
    """Where reading begins and ends in a chain of this height."""
    if not wanted.HasField("start") or not wanted.HasField("stop"):
        raise bad("the request lacks a start or a stop")
    first = _first(wanted.start, height)
    match wanted.stop.WhichOneof("Type"):
        case "oldest":
            last = first
        case "newest":
            last = first if wanted.start == wanted.stop else height - 1
        case "specified":
            last = wanted.stop.specified.number
            if last < first:
                raise bad(f"the stop, {last}, is before the start, {first}")
        case _:
            last = 0
    return Span(first, last)


def _first(start: orderer_pb2.SeekPosition, height: int) -> int:
    match start.WhichOneof("Type"):
        case "oldest":
            return 0
        case "newest":
            return height - 1
        case "next_commit":
            return height
        case "specified" if start.specified.number <= height:
            return start.specified.number
    raise Refusal(NOT_FOUND, "there is no such block, and it is not the next one")


def fails_if_not_ready(wanted: SeekInfo) -> bool:
    """True if a block that is not there yet ends the request."""
    return wanted.behavior == SeekInfo.FAIL_IF_NOT_READY


def is_strict(wanted: SeekInfo) -> bool:
    """True if nothing is served while the channel cannot follow the log."""
    return wanted.error_response != SeekInfo.BEST_EFFORT


def wants_headers(wanted: SeekInfo) -> bool:
    """True if only headers and signatures of blocks are asked for."""
    return wanted.content_type == SeekInfo.HEADER_WITH_SIG_BYTES
