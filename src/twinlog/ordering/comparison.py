"""Do all orderers have the same chain, and is in it what was acknowledged? Pure.

`twinlog order verify` and the drills walk the chains of all orderers through it, a block of each at a time.
A chain is whole if numbers, hashes and data fit together; chains are equal if headers, data and the log
offsets in the metadata are, byte by byte. Signatures differ: each orderer makes its own, and all are checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from twinlog.ordering import messages, signatures
from twinlog.ordering.blocks import Block, fault_in, hash_of, signed_bytes
from twinlog.ordering.certification import first_certificate
from twinlog.ordering.proto import common_pb2
from twinlog.ordering.proto.msp_pb2 import SerializedIdentity
from twinlog.ordering.statuses import Refusal
from twinlog.ordering.submission import DONE, NOT_DONE, Sent

EQUAL_SLOTS = (common_pb2.LAST_CONFIG, common_pb2.ORDERER)
MOST_FAULTS = 20  # are told; after so many nobody reads on


@dataclass
class Compared:
    """What a walk through all chains of one channel found."""

    channel_id: str
    heights: dict[str, int] = field(default_factory=dict)
    compared: int = 0  # blocks that all of them have
    transactions: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """True if nothing was found."""
        return not self.faults


def compare(
    channel_id: str, chains: Mapping[str, Iterable[Block]], history: History | None = None
) -> Compared:
    """Walk all chains together; where one ends before another the rest is only checked in itself."""
    found = Compared(channel_id, dict.fromkeys(chains, 0))
    previous = dict.fromkeys(chains, b"")
    walks: dict[str, Iterator[Block]] = {name: iter(chain) for name, chain in chains.items()}
    number = 0
    while True:
        row = {name: block for name, walk in walks.items() if (block := next(walk, None)) is not None}
        if not row or len(found.faults) >= MOST_FAULTS:
            break
        for name, block in row.items():
            if fault := fault_in(block, number, previous[name]):
                found.faults.append(f"{name}: {fault}")
            elif not _is_signed_well(block):
                found.faults.append(f"{name}: the signature of block {number} is wrong")
            previous[name] = hash_of(block.header)
            found.heights[name] = number + 1
        found.faults += _differences(number, row)
        first = next(iter(row.values()))
        if len(row) == len(chains):
            found.compared += 1
        found.transactions += len(first.data.data)
        if history is not None:
            history.block(first)
        number += 1
    if history is not None:
        found.faults += history.faults()
    return found


def _is_signed_well(block: Block) -> bool:
    """True if every signature of a block is that of the certificate that stands beside it."""
    for creator, data, signature in signed_bytes(block):
        key = first_certificate(SerializedIdentity.FromString(creator).id_bytes).public_key()
        if not isinstance(key, EllipticCurvePublicKey) or not signatures.verify(key, data, signature):
            return False
    return True


def _differences(number: int, row: Mapping[str, Block]) -> Iterator[str]:
    (first_name, first), *others = row.items()
    for name, block in others:
        where = f"block {number} of {name} and {first_name}"
        if block.header != first.header:
            yield f"{where}: headers differ"
        if list(block.data.data) != list(first.data.data):
            yield f"{where}: data differ"
        for slot in EQUAL_SLOTS:
            if (
                list(block.metadata.metadata)[slot : slot + 1]
                != list(first.metadata.metadata)[slot : slot + 1]
            ):
                yield f"{where}: metadata {slot} differ"


class History:
    """What clients were told, held against what is in the blocks."""

    def __init__(self, run_id: str, sent: Iterable[Sent]) -> None:
        self._run_id = run_id
        self._outcomes = {(one.client, one.number): one.outcome for one in sent}
        self._seen: dict[tuple[int, int], int] = {}
        self._last: dict[int, int] = {}
        self._faults: list[str] = []

    def block(self, block: Block) -> None:
        """Take a block's transactions in."""
        for raw in block.data.data:
            key = _identity(raw, self._run_id)
            if key is None:
                continue
            self._seen[key] = self._seen.get(key, 0) + 1
            client, number = key
            if self._outcomes.get(key) == DONE:
                if number < self._last.get(client, -1):
                    self._faults.append(
                        f"transaction {number} of client {client} stands behind {self._last[client]}"
                    )
                self._last[client] = max(number, self._last.get(client, -1))

    def faults(self) -> Iterator[str]:
        """What does not fit."""
        yield from self._faults[:MOST_FAULTS]
        missing = [
            key for key, outcome in self._outcomes.items() if outcome == DONE and key not in self._seen
        ]
        if missing:
            yield f"{len(missing)} acknowledged transactions are in no block, the first is {missing[0]}"
        twice = [key for key, count in self._seen.items() if count > 1]
        if twice:
            yield f"{len(twice)} transactions are in more than one place, the first is {twice[0]}"
        refused = [key for key in self._seen if self._outcomes.get(key) == NOT_DONE]
        if refused:
            yield f"{len(refused)} refused transactions are in a block, the first is {refused[0]}"
        strange = [key for key in self._seen if key not in self._outcomes]
        if strange:
            yield f"{len(strange)} transactions in blocks were never sent, the first is {strange[0]}"


def _identity(raw: bytes, run_id: str) -> tuple[int, int] | None:
    """Who sent a transaction and its number, if it is one of this run."""
    try:
        parts = messages.read(raw).data.split(b"/", 3)
    except Refusal:
        return None
    if len(parts) != 4 or parts[0] != run_id.encode():
        return None
    try:
        return int(parts[1]), int(parts[2])
    except ValueError:
        return None
