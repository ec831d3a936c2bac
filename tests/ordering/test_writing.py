"""Blocks on their way to disk: metadata, configs, one flush for many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ordering.single_channel import SingleChannel, contents, envelope, new_ledger
from twinlog.ordering import blocks, writing
from twinlog.ordering.blocks import Position
from twinlog.ordering.consuming import WriteBlock
from twinlog.ordering.ledger import Ledger
from twinlog.ordering.proto import common_pb2
from twinlog.ordering.writing import Writing, position_at_end


class Desk:
    """Writing over a real ledger, with a note of when it settled."""

    def __init__(self, directory: Path, channel: SingleChannel) -> None:
        self.channel = channel
        self.ledger = new_ledger(directory)
        self.settled_at: list[int] = []
        self.now = 100.0
        self.writing = Writing(
            channel, self.ledger, lambda: self.settled_at.append(self.ledger.height), lambda: self.now
        )

    def add(self, number: int, name: str, *, is_config: bool = False) -> None:
        self.writing.add(WriteBlock(number, [envelope(name)], Position(number * 10, 2, 3), is_config))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, SingleChannel("foo"))


def test_blocks_are_flushed_together_behind_what_was_sent_again(desk: Desk) -> None:
    desk.add(1, "a")
    desk.add(2, "b")
    assert (desk.ledger.height, desk.settled_at) == (1, [])
    desk.writing.flush()
    assert contents(desk.ledger) == [["a"], ["b"]]
    assert (desk.settled_at, desk.channel.blocks[-1].last_offset) == ([1], 20)
    assert list(desk.ledger.faults()) == []
    desk.writing.flush()
    assert desk.settled_at == [1]


def test_much_waits_is_flushed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_BYTES", 10)
    desk.add(1, "a")
    assert desk.ledger.height == 2


def test_block_is_on_disk_is_told_with_its_figures(desk: Desk) -> None:
    desk.now = 101.0
    desk.writing.began()
    desk.now = 103.5
    desk.add(1, "a")
    desk.writing.flush()
    (told,) = desk.channel.blocks
    assert (told.number, told.transactions, told.last_offset, told.filled_s) == (1, 1, 10, 2.5)
    assert told.size_bytes == len(desk.ledger.read(1))


def test_config_is_applied_when_all_before_is_on_disk_and_points_at_itself(desk: Desk) -> None:
    heights: list[int] = []
    apply = desk.channel.apply_config

    def noted(encoded: bytes, number: int) -> None:
        heights.append(desk.ledger.height)
        apply(encoded, number)

    desk.channel.apply_config = noted  # type: ignore[method-assign]
    desk.add(1, "a")
    desk.add(2, "config", is_config=True)
    desk.add(3, "b")
    desk.writing.flush()
    assert (heights, desk.channel.applied) == ([2], [("config", 2)])
    assert [blocks.last_config_of(desk.ledger.block(number)) for number in range(4)] == [0, 0, 2, 2]


def test_orderer_transaction_does_not_change_the_sequence_keeps_the_last_config(desk: Desk) -> None:
    desk.channel.apply_config = lambda encoded, number: None  # type: ignore[method-assign]
    desk.add(1, "new channel", is_config=True)
    assert blocks.last_config_of(desk.ledger.block(1)) == 0


def test_config_cannot_be_applied_writes_no_block(desk: Desk) -> None:
    with pytest.raises(ValueError, match="cannot be applied"):
        desk.add(1, "impossible", is_config=True)
    assert desk.ledger.height == 1


def test_channel_leaves_kafka_with_a_config_leaves_its_position_out(desk: Desk) -> None:
    desk.add(1, "leave", is_config=True)
    assert desk.ledger.block(1).metadata.metadata[common_pb2.ORDERER] == b""
    assert position_at_end(desk.ledger) is None


def test_ledger_is_opened_again_goes_on_with_hashes_and_last_config(desk: Desk, tmp_path: Path) -> None:
    desk.add(1, "config", is_config=True)
    desk.ledger.close()
    again = Desk(tmp_path, SingleChannel("foo", sequence=1))
    again.add(2, "b")
    again.writing.flush()
    assert list(again.ledger.faults()) == []
    assert blocks.last_config_of(again.ledger.block(2)) == 1
    assert position_at_end(again.ledger) == Position(20, 2, 3)


def test_block_was_cut_by_time_finds_the_resubmitted_config_in_the_config_block(desk: Desk) -> None:
    desk.add(1, "config", is_config=True)
    desk.writing.add(WriteBlock(2, [envelope("b")], Position(20, 2)))
    desk.writing.flush()
    assert position_at_end(desk.ledger) == Position(20, 2, 3)


def test_first_block_alone_has_no_position(tmp_path: Path) -> None:
    ledger: Ledger = new_ledger(tmp_path)
    assert position_at_end(ledger) is None
    ledger.close()
