"""A channel's blocks on disk: two files that only grow, and readers who hear when they have.

`blocks` holds each block behind its length and checksum, `index` the end of each, and is written when the
blocks are flushed. So what the index covers was on disk once and must be there, whole: anything else is
damage, and nothing is done about it unasked. What stands behind it may be half a block, from a process
that was killed or a machine that lost power; it is cut off, because the log still has it. One
process writes, from one thread; any number of threads read. A block is seen when it is on disk.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from crc32c import crc32c
from google.protobuf.message import DecodeError

from twinlog import durable
from twinlog.errors import SiteError
from twinlog.ordering.blocks import Block, fault_in, hash_of

BLOCKS, INDEX = "blocks", "index"
CHECKED_AT_START = 64  # of the blocks that the index covers, the last ones; `faults` checks all
_FRAME = struct.Struct(">II")  # length, checksum
_END = struct.Struct(">Q")
_MODE = 0o600
_REBUILD = "restore the files, or remove the directory: the orderer cuts the blocks again from the log"

Heard = Callable[[], None]


class Ledger:
    """The blocks of one channel."""

    def __init__(self, directory: Path) -> None:
        self.where = str(directory)
        durable.make_private_directory(directory)
        has_index = (directory / INDEX).exists()
        self._blocks = os.open(directory / BLOCKS, os.O_RDWR | os.O_CREAT, _MODE)
        self._index = os.open(directory / INDEX, os.O_RDWR | os.O_CREAT, _MODE)
        self._ends = array("Q")
        self._listening = threading.Lock()
        self._listeners: dict[object, Heard] = {}
        self._last_hash = b""
        try:
            self._lock()
            self._load(is_index_complete=has_index)
            _flush_directory(directory)
            # The system channel has it on record that this channel was made, once that is in a block.
            _flush_directory(directory.parent)
        except BaseException:
            self.close()
            raise

    @property
    def height(self) -> int:
        """How many blocks there are."""
        return len(self._ends)

    @property
    def last_hash(self) -> bytes:
        """The hash of the last block; empty before the first."""
        return self._last_hash

    def read(self, number: int) -> bytes:
        """A block as it was written."""
        start = self._ends[number - 1] if number else 0
        frame = os.pread(self._blocks, self._ends[number] - start, start)
        content = frame[_FRAME.size :]
        if frame[: _FRAME.size] != _FRAME.pack(len(content), crc32c(content)):
            raise self._damaged(f"block {number} is not what was written")
        return content

    def block(self, number: int) -> Block:
        """A block."""
        try:
            return Block.FromString(self.read(number))
        except DecodeError as error:
            raise self._damaged(f"block {number} cannot be read: {error}") from None

    def append(self, blocks: Sequence[Block]) -> list[int]:
        """Add blocks and return when they are on disk; gives their sizes."""
        contents, last_hash = [], self._last_hash
        for number, block in enumerate(blocks, self.height):
            if block.header.number != number or block.header.previous_hash != last_hash:
                raise SiteError(f"block {block.header.number} is not the next one", where=self.where)
            contents.append(block.SerializeToString())
            last_hash = hash_of(block.header)
        start = self._ends[-1] if self._ends else 0
        _write(self._blocks, b"".join(map(_framed, contents)), start)
        os.fsync(self._blocks)
        ends = array("Q")
        for content in contents:
            start += _FRAME.size + len(content)
            ends.append(start)
        self._cover(ends)
        self._last_hash = last_hash
        self.wake()
        return list(map(len, contents))

    def wake(self) -> None:
        """Let all who listen look again, whether there is a block or another reason."""
        with self._listening:
            listeners = list(self._listeners.values())
        for heard in listeners:
            heard()

    def listen(self, heard: Heard) -> Heard:
        """Have a function called at each `wake`, from the writer's thread; gives how to end that."""
        key = object()
        with self._listening:
            self._listeners[key] = heard

        def end() -> None:
            with self._listening:
                self._listeners.pop(key, None)

        return end

    def faults(self, first: int = 0) -> Iterator[str]:
        """What is wrong with the chain from a block on, block by block; nothing if nothing is."""
        previous = hash_of(self.block(first - 1).header) if first else b""
        for number in range(first, self.height):
            try:
                block = self.block(number)
            except SiteError as error:
                yield str(error)
                return
            if fault := fault_in(block, number, previous):
                yield fault
            previous = hash_of(block.header)

    def close(self) -> None:
        """End it; whoever reads has ended before."""
        os.close(self._blocks)
        os.close(self._index)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._blocks, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SiteError(
                "another process writes this ledger", where=self.where, hint="is the orderer running already?"
            ) from None

    def _load(self, *, is_index_complete: bool) -> None:
        """Find the blocks, check the last ones, and cut off what was not written to its end."""
        size_bytes = os.fstat(self._blocks).st_size
        self._ends = _increasing(os.pread(self._index, os.fstat(self._index).st_size, 0))
        if self._ends and self._ends[-1] > size_bytes:
            raise self._damaged(f"blocks end at byte {size_bytes}, and {self._ends[-1]} are known")
        covered = self.height
        first = max(0, covered - CHECKED_AT_START)
        for fault in self.faults(first):
            raise self._damaged(fault)
        self._last_hash = hash_of(self.block(covered - 1).header) if covered else b""
        end = self._scan(size_bytes, is_index_complete)
        if end < size_bytes:
            os.ftruncate(self._blocks, end)
        os.fsync(self._blocks)
        os.ftruncate(self._index, covered * _END.size)
        found, self._ends = self._ends[covered:], self._ends[:covered]
        self._cover(found)

    def _scan(self, size_bytes: int, is_index_complete: bool) -> int:
        """Take in blocks behind those that the index covers; gives where the last whole one ends."""
        end = self._ends[-1] if self._ends else 0
        while end < size_bytes:
            frame = os.pread(self._blocks, _FRAME.size, end)
            length, checksum = _FRAME.unpack(frame) if len(frame) == _FRAME.size else (size_bytes, 0)
            following = end + _FRAME.size + length
            if following > size_bytes:
                return end
            content = os.pread(self._blocks, length, end + _FRAME.size)
            fault = self._next(content) if crc32c(content) == checksum else "its checksum is wrong"
            if fault and not is_index_complete:
                raise self._damaged(f"block {self.height}: {fault}")
            if fault:
                return end
            self._ends.append(following)
            end = following
        return end

    def _next(self, content: bytes) -> str:
        """Take bytes for the next block; what is wrong with that, or nothing."""
        try:
            block = Block.FromString(content)
        except DecodeError as error:
            return str(error)
        fault = fault_in(block, self.height, self._last_hash)
        if not fault:
            self._last_hash = hash_of(block.header)
        return fault

    def _cover(self, ends: array[int]) -> None:
        """Let the index cover blocks that are on disk, and let them be read."""
        encoded = b"".join(map(_END.pack, ends))
        _write(self._index, encoded, self.height * _END.size)
        self._ends.extend(ends)

    def _damaged(self, what: str) -> SiteError:
        return SiteError(f"the ledger is damaged: {what}", where=self.where, hint=_REBUILD)


def _framed(content: bytes) -> bytes:
    return _FRAME.pack(len(content), crc32c(content)) + content


def _write(file: int, content: bytes, at: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written


def _increasing(index: bytes) -> array[int]:
    """The ends in an index, up to where they stop growing: after a loss of power it may end in zeros."""
    ends = array("Q")
    last = 0
    for (end,) in _END.iter_unpack(index[: len(index) - len(index) % _END.size]):
        if end <= last:
            break
        ends.append(end)
        last = end
    return ends


def _flush_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
