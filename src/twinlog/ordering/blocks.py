"""Blocks: how they are hashed, what their metadata say, and what an orderer signs. Pure.

`chain` makes blocks with it, `ledger`, tools and tests check them. A header is hashed as DER (a SEQUENCE
of number, previous hash and data hash), the data as one concatenation; metadata are in no hash, so two
orderers' blocks are equal in header and data and differ in the slot of signatures. Both the older slots
(LAST_CONFIG, ORDERER) and the signed value carry the metadata, for readers of every release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from twinlog.errors import SiteError
from twinlog.ordering.proto import common_pb2, orderer_pb2

Block = common_pb2.Block
SLOTS = 5
NONCE_BYTES = 24
_INTEGER, _OCTETS, _SEQUENCE = b"\x02", b"\x04", b"\x30"
_SHORT_FORM = 0x80  # DER lengths below it are one byte


@dataclass(frozen=True, slots=True)
class Position:
    """How far a channel has come in its log, as each block's metadata say."""

    last_offset: int  # LastOffsetPersisted
    last_original_offset: int = 0  # LastOriginalOffsetProcessed
    last_resubmitted_config_offset: int = 0

    def marshalled(self) -> bytes:
        """As a KafkaMetadata."""
        return orderer_pb2.KafkaMetadata(
            last_offset_persisted=self.last_offset,
            last_original_offset_processed=self.last_original_offset,
            last_resubmitted_config_offset=self.last_resubmitted_config_offset,
        ).SerializeToString()


def header_bytes(number: int, previous_hash: bytes, data_hash: bytes) -> bytes:
    """A header as DER."""
    # One more bit than the number has: INTEGER is signed, and 128 must not read as -128.
    whole = number.to_bytes(number.bit_length() // 8 + 1, "big")
    fields = _der(_INTEGER, whole) + _der(_OCTETS, previous_hash) + _der(_OCTETS, data_hash)
    return _der(_SEQUENCE, fields)


def hash_of(header: common_pb2.BlockHeader) -> bytes:
    """A block's hash, which the next block names."""
    return hashlib.sha256(header_bytes(header.number, header.previous_hash, header.data_hash)).digest()


def data_hash(data: Iterable[bytes]) -> bytes:
    """The hash of a block's data: of all entries, one after the other."""
    hashed = hashlib.sha256()
    for entry in data:
        hashed.update(entry)
    return hashed.digest()


def new_block(number: int, previous_hash: bytes, data: Sequence[bytes]) -> Block:
    """A block with empty metadata."""
    return Block(
        header=common_pb2.BlockHeader(number=number, previous_hash=previous_hash, data_hash=data_hash(data)),
        data=common_pb2.BlockData(data=data),
        metadata=common_pb2.BlockMetadata(metadata=[b""] * SLOTS),
    )


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signs blocks: an identity, its signature over bytes, and where nonces come from."""

    creator: bytes
    sign: Callable[[bytes], bytes]
    nonce: Callable[[int], bytes]


def seal(block: Block, position: Position | None, last_config: int, signer: Signer) -> None:
    """Fill a block's metadata and sign it; no position where the channel leaves Kafka with this block."""
    slots = block.metadata.metadata
    consenter = b""
    if position is not None:
        consenter = common_pb2.Metadata(value=position.marshalled()).SerializeToString()
    config = common_pb2.LastConfig(index=last_config)
    signed = common_pb2.OrdererBlockMetadata(last_config=config, consenter_metadata=consenter)
    value = signed.SerializeToString()
    header = common_pb2.SignatureHeader(creator=signer.creator, nonce=signer.nonce(NONCE_BYTES))
    signature_header = header.SerializeToString()
    signature = signer.sign(value + signature_header + _header_of(block))
    slots[common_pb2.ORDERER] = consenter
    slots[common_pb2.LAST_CONFIG] = common_pb2.Metadata(value=config.SerializeToString()).SerializeToString()
    slots[common_pb2.SIGNATURES] = common_pb2.Metadata(
        value=value,
        signatures=[common_pb2.MetadataSignature(signature_header=signature_header, signature=signature)],
    ).SerializeToString()


def signed_bytes(block: Block) -> list[tuple[bytes, bytes, bytes]]:
    """Of each signature of a block: who made it (marshalled identity), the bytes it is over, and itself."""
    slot = common_pb2.Metadata.FromString(_slot(block, common_pb2.SIGNATURES))
    found = []
    for one in slot.signatures:
        creator = common_pb2.SignatureHeader.FromString(one.signature_header).creator
        found.append((creator, slot.value + one.signature_header + _header_of(block), one.signature))
    return found


def position_of(block: Block) -> Position | None:
    """How far the log was worked off with a block; None if the block does not say, as the first one."""
    consenter = _slot(block, common_pb2.ORDERER) or _signed(block).consenter_metadata
    if not consenter:
        return None
    try:
        value = common_pb2.Metadata.FromString(consenter).value
        if not value:
            return None
        told = orderer_pb2.KafkaMetadata.FromString(value)
    except DecodeError as error:
        raise SiteError(
            f"the metadata of block {block.header.number} cannot be read: {error}",
            hint="was the channel ordered by something else than Kafka?",
        ) from None
    return Position(
        told.last_offset_persisted, told.last_original_offset_processed, told.last_resubmitted_config_offset
    )


def last_config_of(block: Block) -> int:
    """The number of the config block that holds at a block."""
    value = common_pb2.Metadata.FromString(_slot(block, common_pb2.LAST_CONFIG)).value
    if value:
        return common_pb2.LastConfig.FromString(value).index
    return _signed(block).last_config.index


def fault_in(block: Block, number: int, previous_hash: bytes) -> str:
    """What keeps a block from being the next one of a chain; empty if nothing does."""
    header = block.header
    if header.number != number:
        return f"it has number {header.number} where {number} is due"
    if header.previous_hash != previous_hash:
        return f"block {number} does not follow the block before it: their hashes differ"
    if header.data_hash != data_hash(block.data.data):
        return f"the data of block {number} do not have the hash that its header names"
    return ""


def _header_of(block: Block) -> bytes:
    return header_bytes(block.header.number, block.header.previous_hash, block.header.data_hash)


def _slot(block: Block, index: int) -> bytes:
    slots = block.metadata.metadata
    return slots[index] if index < len(slots) else b""


def _signed(block: Block) -> common_pb2.OrdererBlockMetadata:
    slot = common_pb2.Metadata.FromString(_slot(block, common_pb2.SIGNATURES))
    return common_pb2.OrdererBlockMetadata.FromString(slot.value)


def _der(tag: bytes, content: bytes) -> bytes:
    length = len(content)
    if length < _SHORT_FORM:
        return tag + bytes([length]) + content
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return tag + bytes([_SHORT_FORM | len(octets)]) + octets + content
