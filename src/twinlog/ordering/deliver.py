"""Deliver: blocks for whoever may read them, as fast as each reader takes them.

A session serves one stream in the server's loop: request after request, each block by block. It sends
when all that it sent before is out of our hands, and otherwise waits to be woken: by its client, by the
ledger that has grown, or by a channel that has lost the log. So thousands of readers cost no thread.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from twinlog.errors import SiteError
from twinlog.ordering import seeks
from twinlog.ordering.bundle import Bundle
from twinlog.ordering.calls import Stream
from twinlog.ordering.filters import check_expiry
from twinlog.ordering.ledger import Ledger
from twinlog.ordering.localconfig import Authentication
from twinlog.ordering.metrics import Figures
from twinlog.ordering.policy import SignedData
from twinlog.ordering.proto import common_pb2, orderer_pb2
from twinlog.ordering.seeks import SeekInfo, Span
from twinlog.ordering.server import Post
from twinlog.ordering.statuses import FORBIDDEN, NAMES, NOT_FOUND, SERVICE_UNAVAILABLE, SUCCESS, Refusal

IN_LINE = 4  # requests of one stream that wait for the one before; then its client waits too
AT_ONCE_BYTES = 512 * 1024  # of blocks handed over before the rest of the loop has its turn

LOG = logging.getLogger("twinlog.ordering")


class Channel(Protocol):
    """A channel as its readers see it."""

    @property
    def channel_id(self) -> str:
        """Its name."""

    @property
    def bundle(self) -> Bundle:
        """The configuration that holds now."""

    @property
    def ledger(self) -> Ledger:
        """Its blocks."""

    @property
    def is_errored(self) -> bool:
        """True while it cannot follow the log."""


@dataclass(frozen=True)
class Desk:
    """What all streams share."""

    find: Callable[[str], Channel | None]
    authentication: Authentication
    binds: bool  # mutual TLS: requests name their connection's certificate
    figures: Figures
    post: Post


@dataclass
class _Reading:
    """A request under way."""

    channel: Channel
    signed: SignedData
    wanted: SeekInfo
    span: Span
    next: int
    checked_at: int  # the config sequence at which its sender was allowed to read


class DeliverSession:
    """One stream."""

    def __init__(self, stream: Stream, desk: Desk) -> None:
        self._stream = stream
        self._desk = desk
        self._requests: deque[bytes] = deque()
        self._reading: _Reading | None = None
        self._stop_listening: Callable[[], None] | None = None
        self._has_ended = self._is_gone = self._is_due = self._is_held = False
        desk.figures.stream_opened()

    def message(self, raw: bytes) -> None:
        """Another request; a few may stand in line."""
        self._requests.append(raw)
        self._go_on()
        if not self._is_held and len(self._requests) >= IN_LINE:
            self._is_held = True
            self._stream.hold()

    def half_closed(self) -> None:
        """No more requests come; those that there are will be served."""
        self._has_ended = True
        self._go_on()

    def drained(self) -> None:
        """There is room for more."""
        self._go_on()

    def gone(self) -> None:
        """Serve nobody any more."""
        self._is_gone = True
        if self._reading is not None:
            self._desk.figures.request_completed(self._reading.channel.channel_id, success=False)
            self._reading = None
        self._requests.clear()
        self._leave()
        self._desk.figures.stream_closed()

    def _woken(self) -> None:
        """From the thread of a chain."""
        if not self._is_due:
            self._is_due = True
            self._desk.post(self._look_again)

    def _look_again(self) -> None:
        self._is_due = False
        self._go_on()

    def _go_on(self) -> None:
        """Serve as far as it goes now."""
        while not self._is_gone and self._stream.trailer is None and not self._stream.outgoing:
            try:
                if self._reading is None:
                    if not self._requests:
                        if self._has_ended:
                            self._stream.finish()
                        return
                    self._begin(self._next_request())
                elif not self._send_blocks(self._reading):
                    return
            except Refusal as refusal:
                self._end(refusal.status)
            except SiteError as error:  # a block that cannot be read
                LOG.error("%s", error)
                self._end(SERVICE_UNAVAILABLE)

    def _end(self, status: int) -> None:
        """Answer for the last time on this stream."""
        self._answer(status)
        self._stream.finish()

    def _next_request(self) -> bytes:
        raw = self._requests.popleft()
        if self._is_held and not self._requests:
            self._is_held = False
            self._stream.release()
        return raw

    def _begin(self, raw: bytes) -> None:
        desk = self._desk
        request = seeks.read(
            raw,
            time.time(),
            desk.authentication.time_window_s,
            self._stream.peer_certificate,
            binds=desk.binds,
        )
        channel = desk.find(request.channel_id)
        if channel is None:
            raise Refusal(NOT_FOUND, f"there is no channel {request.channel_id}")
        desk.figures.request_received(channel.channel_id)
        wanted = seeks.seek(request.data)
        if channel.is_errored and seeks.is_strict(wanted):
            raise Refusal(SERVICE_UNAVAILABLE, "the channel cannot follow the log")
        # Asked before the height is read: a block that comes in between must not go unheard.
        self._leave()
        self._stop_listening = channel.ledger.listen(self._woken)
        reading = _Reading(channel, request.signed, wanted, Span(0, 0), 0, checked_at=-1)
        self._check_access(reading)
        reading.span = seeks.span(wanted, channel.ledger.height)
        reading.next = reading.span.first
        self._reading = reading

    def _send_blocks(self, reading: _Reading) -> bool:
        """Send what is there and finds room; False if it must wait."""
        ledger, sent_bytes = reading.channel.ledger, 0
        while sent_bytes < AT_ONCE_BYTES:
            if reading.next >= ledger.height:
                if seeks.fails_if_not_ready(reading.wanted):
                    raise Refusal(NOT_FOUND, f"there is no block {reading.next} yet")
                if reading.channel.is_errored and seeks.is_strict(reading.wanted):
                    raise Refusal(SERVICE_UNAVAILABLE, "the channel cannot follow the log")
                return sent_bytes > 0
            if reading.channel.is_errored and seeks.is_strict(reading.wanted):
                raise Refusal(SERVICE_UNAVAILABLE, "the channel cannot follow the log")
            self._check_access(reading)
            block = ledger.read(reading.next)
            if seeks.wants_headers(reading.wanted):
                block = without_data(block)
            self._stream.send(with_block(block))
            self._desk.figures.block_sent(reading.channel.channel_id)
            sent_bytes += len(block)
            if reading.next == reading.span.last:
                self._answer(SUCCESS)
                return True
            reading.next += 1
        return True

    def _check_access(self, reading: _Reading) -> None:
        """Expiry each time; the policy at first, and whenever the configuration has changed."""
        bundle = reading.channel.bundle
        if bundle.checks_expiry and not self._desk.authentication.no_expiration_checks:
            try:
                check_expiry(reading.signed.identity, datetime.now(UTC))
            except Refusal as refusal:
                raise Refusal(FORBIDDEN, refusal.info) from None
        if bundle.sequence <= reading.checked_at:
            return
        if not bundle.readers.evaluate([reading.signed]):
            raise Refusal(FORBIDDEN, "the channel's policy for readers is not satisfied")
        reading.checked_at = bundle.sequence

    def _answer(self, status: int) -> None:
        self._stream.send(orderer_pb2.DeliverResponse(status=NAMES[status]).SerializeToString())
        if self._reading is not None:
            self._desk.figures.request_completed(self._reading.channel.channel_id, status == SUCCESS)
        self._reading = None
        self._leave()

    def _leave(self) -> None:
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None


def with_block(block: bytes) -> bytes:
    """A response with a block, which is not decoded for that."""
    size, octets = len(block), bytearray(b"\x12")
    while size >= 0x80:
        octets.append(size & 0x7F | 0x80)
        size >>= 7
    octets.append(size)
    return bytes(octets) + block


def without_data(raw: bytes) -> bytes:
    """A block's header and metadata; a block with a configuration stays whole."""
    block = common_pb2.Block.FromString(raw)
    if _is_config(block):
        return raw
    block.ClearField("data")
    return block.SerializeToString()


def _is_config(block: common_pb2.Block) -> bool:
    if len(block.data.data) != 1:
        return False
    envelope = common_pb2.Envelope.FromString(block.data.data[0])
    header = common_pb2.Payload.FromString(envelope.payload).header
    kind = common_pb2.ChannelHeader.FromString(header.channel_header).type
    return kind in (common_pb2.CONFIG, common_pb2.ORDERER_TRANSACTION)
