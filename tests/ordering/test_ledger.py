"""The ledger on real files: what is read back, what a kill at any byte leaves, what is called damage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from twinlog.errors import SiteError
from twinlog.ordering import blocks, ledger
from twinlog.ordering.blocks import Block
from twinlog.ordering.ledger import Ledger

_WAIT_S = 10.0


def _chain(count: int, previous: bytes = b"", first: int = 0) -> list[Block]:
    made = []
    for number in range(first, first + count):
        made.append(blocks.new_block(number, previous, [b"tx" * number, bytes([number % 256])]))
        previous = blocks.hash_of(made[-1].header)
    return made


def _filled(directory: Path, count: int) -> list[Block]:
    chain = _chain(count)
    opened = Ledger(directory)
    for block in chain:
        opened.append([block])
    opened.close()
    return chain


def _reopened(directory: Path) -> list[Block]:
    opened = Ledger(directory)
    try:
        assert list(opened.faults()) == []
        return [opened.block(number) for number in range(opened.height)]
    finally:
        opened.close()


def test_blocks_are_read_back_after_a_restart(tmp_path: Path) -> None:
    chain = _chain(5)
    opened = Ledger(tmp_path / "new" / "mychannel")
    sizes = opened.append(chain[:3])
    assert (opened.height, sizes) == (3, [len(block.SerializeToString()) for block in chain[:3]])
    assert opened.append(chain[3:])
    assert opened.read(1) == chain[1].SerializeToString()
    assert opened.last_hash == blocks.hash_of(chain[-1].header)
    opened.close()
    assert _reopened(tmp_path / "new" / "mychannel") == chain


def test_new_ledger_is_empty(tmp_path: Path) -> None:
    opened = Ledger(tmp_path)
    assert (opened.height, opened.last_hash) == (0, b"")
    with pytest.raises(IndexError):
        opened.read(0)
    opened.close()


def test_block_that_does_not_follow_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    chain = _filled(tmp_path, 2)
    opened = Ledger(tmp_path)
    for wrong in (_chain(1), _chain(1, first=2), _chain(1, opened.last_hash, first=3)):
        with pytest.raises(SiteError, match="not the next one"):
            opened.append(wrong)
    opened.close()
    assert _reopened(tmp_path) == chain


def test_write_ends_at_any_byte_leaves_the_whole_blocks_and_goes_on(tmp_path: Path) -> None:
    chain = _filled(tmp_path, 4)
    written, index = (tmp_path / ledger.BLOCKS).read_bytes(), (tmp_path / ledger.INDEX).read_bytes()
    ends = [int.from_bytes(index[at : at + 8], "big") for at in range(0, len(index), 8)]
    for size in range(ends[0], len(written)):
        whole = sum(end <= size for end in ends)
        # The index covers no more than what was flushed before, here the first block.
        (tmp_path / ledger.BLOCKS).write_bytes(written[:size])
        (tmp_path / ledger.INDEX).write_bytes(index[:8])
        assert _reopened(tmp_path) == chain[:whole]
        opened = Ledger(tmp_path)
        opened.append(chain[whole:])
        opened.close()
        assert (tmp_path / ledger.BLOCKS).read_bytes() == written


def test_index_ends_at_any_byte_or_in_zeros_is_made_again(tmp_path: Path) -> None:
    chain = _filled(tmp_path, 3)
    index = (tmp_path / ledger.INDEX).read_bytes()
    for size in range(len(index)):
        for rest in (b"", bytes(len(index) - size)):
            (tmp_path / ledger.INDEX).write_bytes(index[: size - size % 8 if rest else size] + rest)
            assert _reopened(tmp_path) == chain
            assert (tmp_path / ledger.INDEX).read_bytes() == index


def test_index_is_missing_is_made_again(tmp_path: Path) -> None:
    chain = _filled(tmp_path, 3)
    (tmp_path / ledger.INDEX).unlink()
    assert _reopened(tmp_path) == chain


def test_unflushed_blocks_are_garbage_are_cut_off(tmp_path: Path) -> None:
    chain = _filled(tmp_path, 3)
    with (tmp_path / ledger.BLOCKS).open("ab") as file:
        file.write(bytes(5000))
    assert _reopened(tmp_path) == chain


@pytest.mark.parametrize("number", [0, 1, 2])
def test_bit_of_a_flushed_block_flips_is_damage_and_nothing_is_cut(tmp_path: Path, number: int) -> None:
    _filled(tmp_path, 3)
    written = bytearray((tmp_path / ledger.BLOCKS).read_bytes())
    written[written.index(_chain(3)[number].header.data_hash)] ^= 1
    (tmp_path / ledger.BLOCKS).write_bytes(written)
    with pytest.raises(SiteError, match=f"damaged: .*block {number} ") as raised:
        Ledger(tmp_path)
    assert "cuts the blocks again" in raised.value.hint
    (tmp_path / ledger.INDEX).unlink()  # without it nobody knows what was flushed
    with pytest.raises(SiteError, match=f"block {number}: its checksum is wrong"):
        Ledger(tmp_path)
    assert (tmp_path / ledger.BLOCKS).read_bytes() == written


def test_flushed_blocks_are_gone_is_damage(tmp_path: Path) -> None:
    _filled(tmp_path, 3)
    os.truncate(tmp_path / ledger.BLOCKS, 100)
    with pytest.raises(SiteError, match="blocks end at byte 100"):
        Ledger(tmp_path)


def test_old_block_is_damaged_is_found_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "CHECKED_AT_START", 1)
    _filled(tmp_path, 3)
    with (tmp_path / ledger.BLOCKS).open("r+b") as file:
        file.seek(20)
        file.write(b"\xff\xff")
    opened = Ledger(tmp_path)
    assert opened.block(2).header.number == 2
    with pytest.raises(SiteError, match="block 0 is not what was written"):
        opened.read(0)
    assert [fault for fault in opened.faults() if "block 0" in fault]
    opened.close()


def test_new_ledger_survives_a_loss_of_power_with_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: set[int] = set()
    flush = os.fsync

    def note(file: int) -> None:
        flushed.add(os.fstat(file).st_ino)
        flush(file)

    monkeypatch.setattr(os, "fsync", note)
    Ledger(tmp_path / "chains" / "new").close()
    assert {(tmp_path / "chains").stat().st_ino, (tmp_path / "chains/new").stat().st_ino} <= flushed


def test_second_writer_is_refused(tmp_path: Path) -> None:
    opened = Ledger(tmp_path)
    with pytest.raises(SiteError, match="another process"):
        Ledger(tmp_path)
    opened.close()
    Ledger(tmp_path).close()


def test_readers_are_told_of_a_block_when_they_can_read_it(tmp_path: Path) -> None:
    opened, seen = Ledger(tmp_path), list[Block]()
    for _ in range(4):
        opened.listen(lambda: seen.append(opened.block(opened.height - 1)))
    chain = _chain(3)
    for block in chain:
        opened.append([block])
    assert seen == [block for block in chain for _ in range(4)]
    opened.close()


def test_listener_is_called_until_it_ends(tmp_path: Path) -> None:
    opened, heard = Ledger(tmp_path), []
    end = opened.listen(lambda: heard.append(opened.height))
    opened.append(_chain(1))
    opened.wake()
    end()
    opened.wake()
    assert heard == [1, 1]
    opened.close()


_WRITER = """
import sys
from pathlib import Path
from twinlog.ordering import blocks
from twinlog.ordering.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
while True:
    made = []
    previous = ledger.last_hash
    for number in range(ledger.height, ledger.height + 3):
        made.append(blocks.new_block(number, previous, [bytes(1000 + number)]))
        previous = blocks.hash_of(made[-1].header)
    ledger.append(made)
    print(ledger.height, flush=True)
"""


def test_writer_is_killed_again_and_again_loses_no_block_that_it_told(tmp_path: Path) -> None:
    told = 0
    for turns in (1, 4, 9):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        for _ in range(turns):
            told = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        writer.wait(_WAIT_S)
        writer.stdout.close()
        assert len(_reopened(tmp_path)) >= told
