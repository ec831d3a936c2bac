"""Orderers as their clients call them: with gRPC's own library, over TLS or in the clear.

Used by `twinlog order submit`, `fetch`, `blocks`, `verify` and by tests. It shares no code with the server's
side of the conversation, so whatever it reads is what any other client would read.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast

import grpc
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate
from google.protobuf.message import DecodeError

from twinlog.errors import SiteError
from twinlog.ordering import messages
from twinlog.ordering.identity import Signer
from twinlog.ordering.proto import common_pb2, orderer_pb2
from twinlog.ordering.statuses import NAMES, SUCCESS

BROADCAST = "/orderer.AtomicBroadcast/Broadcast"
DELIVER = "/orderer.AtomicBroadcast/Deliver"
_OPTIONS = [
    ("grpc.max_receive_message_length", 100 * 1024 * 1024),
    ("grpc.max_send_message_length", 100 * 1024 * 1024),
    ("grpc.use_local_subchannel_pool", 1),  # a connection for each channel, as separate clients have
]
SeekInfo = orderer_pb2.SeekInfo
SeekPosition = orderer_pb2.SeekPosition


@dataclass(frozen=True)
class Target:
    """Where an orderer listens, and what its clients need to reach it."""

    address: str
    root_pem: bytes | None = None  # None: in the clear
    cert_pem: bytes | None = None  # with mutual TLS
    key_pem: bytes | None = field(default=None, repr=False)

    @property
    def certificate_hash(self) -> bytes:
        """What requests name where an orderer wants to know the connection that they come by."""
        if self.cert_pem is None:
            return b""
        certificate = load_pem_x509_certificate(self.cert_pem)
        return hashlib.sha256(certificate.public_bytes(Encoding.DER)).digest()

    def channel(self) -> grpc.Channel:
        """A connection, made when it is first used."""
        if self.root_pem is None:
            channel: grpc.Channel = grpc.insecure_channel(self.address, _OPTIONS)
        else:
            credentials = grpc.ssl_channel_credentials(self.root_pem, self.key_pem, self.cert_pem)
            channel = grpc.secure_channel(self.address, credentials, _OPTIONS)
        return channel


def broadcast(target: Target, envelopes: Iterable[bytes], timeout_s: float) -> list[tuple[int, str]]:
    """Send envelopes on one stream; the status of each that was answered, with what was said."""
    answers: list[tuple[int, str]] = []
    with target.channel() as channel:
        try:
            for raw in channel.stream_stream(BROADCAST)(iter(envelopes), timeout=timeout_s):
                response = orderer_pb2.BroadcastResponse.FromString(raw)
                answers.append((response.status, response.info))
        except grpc.RpcError as error:
            raise _unreachable(target, error) from None
    return answers


def seek(channel_id: str, wanted: SeekInfo, signer: Signer, certificate_hash: bytes = b"") -> bytes:
    """A request for blocks."""
    now_s = int(time.time())
    return messages.signed(
        common_pb2.DELIVER_SEEK_INFO,
        channel_id,
        wanted.SerializeToString(),
        signer,
        now_s,
        certificate_hash=certificate_hash,
    )


def at(number: int) -> SeekPosition:
    """The block of a number."""
    return SeekPosition(specified=orderer_pb2.SeekSpecified(number=number))


def newest() -> SeekPosition:
    """The last block that there is."""
    return SeekPosition(newest=orderer_pb2.SeekNewest())


def span(first: int | None, last: int | None, *, waits: bool = False, strict: bool = False) -> SeekInfo:
    """Blocks from one number to another; None is the newest. `strict`: not while the log is out of reach."""
    behaviour = SeekInfo.BLOCK_UNTIL_READY if waits else SeekInfo.FAIL_IF_NOT_READY
    return SeekInfo(
        start=newest() if first is None else at(first),
        stop=newest() if last is None else at(last),
        behavior=behaviour,
        error_response=SeekInfo.STRICT if strict else SeekInfo.BEST_EFFORT,
    )


def deliver(target: Target, request: bytes, timeout_s: float) -> Iterator[common_pb2.Block | int]:
    """Blocks, then the status with which the request ended."""
    with target.channel() as channel:
        call = channel.stream_stream(DELIVER)(iter([request]), timeout=timeout_s)
        try:
            for raw in call:
                response = orderer_pb2.DeliverResponse.FromString(raw)
                if response.WhichOneof("Type") == "block":
                    yield response.block
                else:
                    yield int(response.status)
                    return
        except grpc.RpcError as error:
            raise _unreachable(target, error) from None
        except DecodeError:
            raise SiteError("the orderer's answer cannot be read", where=target.address) from None
        finally:
            call.cancel()


def blocks(
    target: Target, channel_id: str, wanted: SeekInfo, signer: Signer, timeout_s: float
) -> Iterator[common_pb2.Block]:
    """Blocks of a channel; raises for any end but a good one."""
    request = seek(channel_id, wanted, signer, target.certificate_hash)
    for found in deliver(target, request, timeout_s):
        if isinstance(found, common_pb2.Block):
            yield found
        elif found != SUCCESS:
            raise SiteError(
                f"the orderer answered {NAMES.get(found, found)} for blocks of channel {channel_id}",
                where=target.address,
                hint="twinlog order status",
            )


def _unreachable(target: Target, error: grpc.RpcError) -> SiteError:
    details = cast(grpc.Call, error).details()
    return SiteError(
        f"the call to the orderer failed: {details}", where=target.address, hint="twinlog order status"
    )
