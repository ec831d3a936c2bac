"""From batches to blocks on disk: numbers, hashes, metadata, signature, and one flush for many blocks.

`chain` adds what `consuming` has cut and flushes when no more records are at hand. A block with a config
is on disk alone: what came before it is flushed, then the config is made to hold, then its block is
written, so that a crash between any two of them finds the log behind the last block and does the rest.
No block is put on disk before `settle` returns: what its records had sent again is in the log by then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from twinlog.ordering import blocks
from twinlog.ordering.blocks import Block, Position, Signer
from twinlog.ordering.consuming import WriteBlock
from twinlog.ordering.ledger import Ledger
from twinlog.ordering.support import Support, Written
from twinlog.wire.deadlines import Clock

MOST_BYTES = 16 * 1024 * 1024  # of blocks that wait for a flush


class Writing:
    """The end of one channel's chain."""

    def __init__(
        self, support: Support, ledger: Ledger, settle: Callable[[], None], clock: Clock = time.monotonic
    ) -> None:
        last = ledger.block(ledger.height - 1)
        self._support = support
        self._ledger = ledger
        self._settle = settle
        self._clock = clock
        self._signer = Signer(support.creator, support.sign, os.urandom)
        self._previous_hash = ledger.last_hash
        self._sequence = support.sequence
        self._last_config = blocks.last_config_of(last)
        self._waiting: list[Block] = []
        self._told: list[tuple[Position, float]] = []  # of each block that waits, for the figures
        self._waiting_bytes = 0
        self._filling_since = clock()

    def began(self) -> None:
        """The first message of a batch came."""
        self._filling_since = self._clock()

    def add(self, write: WriteBlock) -> None:
        """Make the next block; `flush` puts it on disk."""
        is_leaving = False
        if write.is_config:
            self.flush()
            before = self._support.consensus_type
            self._support.apply_config(write.batch[0], write.number)
            is_leaving = self._support.consensus_type != before
        block = blocks.new_block(write.number, self._previous_hash, write.batch)
        if self._support.sequence > self._sequence:
            self._sequence, self._last_config = self._support.sequence, write.number
        blocks.seal(block, None if is_leaving else write.position, self._last_config, self._signer)
        self._previous_hash = blocks.hash_of(block.header)
        self._waiting.append(block)
        self._told.append((write.position, self._clock() - self._filling_since))
        self._waiting_bytes += sum(map(len, write.batch))
        self.began()
        if write.is_config or self._waiting_bytes > MOST_BYTES:
            self.flush()

    def flush(self) -> None:
        """Have all blocks on disk, behind what must be in the log before."""
        if not self._waiting:
            return
        self._settle()
        made, told = self._waiting, self._told
        sizes = self._ledger.append(made)
        self._waiting, self._told, self._waiting_bytes = [], [], 0
        self._support.written(
            [
                Written(block.header.number, len(block.data.data), size_bytes, position.last_offset, filled_s)
                for block, size_bytes, (position, filled_s) in zip(made, sizes, told, strict=True)
            ]
        )


def position_at_end(ledger: Ledger) -> Position | None:
    """How far a ledger has worked its log off; None if nothing of it was."""
    last = ledger.block(ledger.height - 1)
    position = blocks.position_of(last)
    if position is None or position.last_resubmitted_config_offset:
        return position
    # A block that was cut by time does not tell the resubmitted config; the last config block does.
    config = blocks.position_of(ledger.block(blocks.last_config_of(last)))
    known = config.last_resubmitted_config_offset if config is not None else 0
    return Position(position.last_offset, position.last_original_offset, known)
