"""A channel for tests of chains: configuration in plain fields, blocks signed with a hash."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path

from twinlog.ordering import blocks
from twinlog.ordering.ledger import Ledger
from twinlog.ordering.proto import common_pb2
from twinlog.ordering.support import BatchSize, Refused, Written

GENESIS = blocks.new_block(0, b"", [b"genesis"])
LIMITS = BatchSize(max_message_count=3, absolute_max_bytes=100_000, preferred_max_bytes=100_000)


def envelope(name: str, kind: int = common_pb2.MESSAGE) -> bytes:
    """An envelope that can be told from others by its name."""
    channel = common_pb2.ChannelHeader(type=kind, tx_id=name).SerializeToString()
    payload = common_pb2.Payload(header=common_pb2.Header(channel_header=channel))
    return common_pb2.Envelope(payload=payload.SerializeToString(), signature=b"s").SerializeToString()


def name_of(encoded: bytes) -> str:
    """The name in an envelope."""
    payload = common_pb2.Payload.FromString(common_pb2.Envelope.FromString(encoded).payload)
    return common_pb2.ChannelHeader.FromString(payload.header.channel_header).tx_id


class SingleChannel:
    """A `Support` whose sequence rises with each config that is applied, and that refuses by name."""

    def __init__(self, channel_id: str, orderer: str = "orderer", sequence: int = 0) -> None:
        self.channel_id = channel_id
        self.creator = orderer.encode()
        self.sequence = sequence
        self.batch_size = LIMITS
        self.batch_timeout_s = 0.2
        self.resubmits = True
        self.consensus_type = "kafka"
        self.refused: set[str] = set()
        self.applied: list[tuple[str, int]] = []
        self.blocks: list[Written] = []
        self.crashes: list[BaseException] = []
        self.crash_came = threading.Event()

    def revalidate(self, encoded: bytes) -> int:
        if name_of(encoded) in self.refused:
            raise Refused("no longer wanted")
        return self.sequence

    def reprocess_config(self, encoded: bytes) -> tuple[bytes, int]:
        if name_of(encoded) in self.refused:
            raise Refused("out of date")
        return envelope(f"{name_of(encoded)}+", common_pb2.CONFIG), self.sequence

    def sign(self, message: bytes) -> bytes:
        return hashlib.sha256(self.creator + message).digest()

    def apply_config(self, encoded: bytes, number: int) -> None:
        name = name_of(encoded)
        if name == "impossible":
            raise ValueError("cannot be applied")
        self.sequence += 1
        self.applied.append((name, number))
        if name == "leave":
            self.consensus_type = "etcdraft"

    def written(self, written: Sequence[Written]) -> None:
        self.blocks += written

    def crashed(self, error: BaseException) -> None:
        self.crashes.append(error)
        self.crash_came.set()


def new_ledger(directory: Path) -> Ledger:
    """A ledger with its first block."""
    ledger = Ledger(directory)
    if not ledger.height:
        ledger.append([GENESIS])
    return ledger


def contents(ledger: Ledger) -> list[list[str]]:
    """The names in each block behind the first."""
    return [list(map(name_of, ledger.block(number).data.data)) for number in range(1, ledger.height)]
