"""An envelope that came in: taken apart once, as far as everybody after needs it. Pure.

Broadcast and Deliver read their requests here; the registrar reads what comes back from the log. Bytes
are brought into the one form that all peers accept: what has fields that nobody knows is refused, fields
in another order are put in order, and from then on only these bytes are carried.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from twinlog.ordering.identity import Signer
from twinlog.ordering.proto import common_pb2
from twinlog.ordering.statuses import bad

CONFIG: Final = common_pb2.CONFIG
CONFIG_UPDATE: Final = common_pb2.CONFIG_UPDATE
ORDERER_TRANSACTION: Final = common_pb2.ORDERER_TRANSACTION
_PAYLOAD_FIRST: Final = b"\x0a"  # the tag of its field


class Message(NamedTuple):
    """One envelope and what its headers say."""

    raw: bytes  # the envelope in its one form
    payload: bytes
    signature: bytes
    creator: bytes
    channel_id: str
    type: int
    data: bytes

    @property
    def size_bytes(self) -> int:
        """As limits count it."""
        return len(self.payload) + len(self.signature)


def read(raw: bytes) -> Message:
    """Take an envelope apart; raises a refusal for one that is no envelope."""
    try:
        envelope = common_pb2.Envelope.FromString(raw)
        payload, signature = envelope.payload, envelope.signature
        content = common_pb2.Payload.FromString(payload)
        if not content.HasField("header"):
            raise bad("the message has no header")
        header = content.header
        channel = common_pb2.ChannelHeader.FromString(header.channel_header)
        creator = common_pb2.SignatureHeader.FromString(header.signature_header).creator
    except DecodeError:
        raise bad("the message cannot be decoded") from None
    clean = raw
    if raw[:1] != _PAYLOAD_FIRST or len(raw) != _field_bytes(len(payload)) + _field_bytes(len(signature)):
        clean = common_pb2.Envelope(payload=payload, signature=signature).SerializeToString()
        if clean != envelope.SerializeToString():
            raise bad("the envelope has fields that nobody knows")
    return Message(clean, payload, signature, creator, channel.channel_id, channel.type, content.data)


def _field_bytes(size: int) -> int:
    """What a field of so many bytes takes in an envelope; an empty one is left out."""
    return size and 1 + max(1, (size.bit_length() + 6) // 7) + size


def signed(
    kind: int,
    channel_id: str,
    data: bytes,
    signer: Signer,
    timestamp_s: int = 0,
    *,
    certificate_hash: bytes = b"",
) -> bytes:
    """A new envelope of this process's own, version and epoch 0."""
    channel = common_pb2.ChannelHeader(type=kind, channel_id=channel_id, tls_cert_hash=certificate_hash)
    channel.timestamp.seconds = timestamp_s
    header = common_pb2.Header(
        channel_header=channel.SerializeToString(), signature_header=signer.header().SerializeToString()
    )
    payload = common_pb2.Payload(header=header, data=data).SerializeToString()
    return common_pb2.Envelope(payload=payload, signature=signer.sign(payload)).SerializeToString()
