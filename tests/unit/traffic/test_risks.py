"""What a failover would lose is a number only where somebody has measured it."""

from __future__ import annotations

import time

import pytest

from twinlog.mirror.board import FRESH_S, Board, PartitionNews
from twinlog.traffic.risks import AtRisk, Source, by_topic, told

NEWS = [PartitionNews("orders", 0, position=7, active_end=10), PartitionNews("orders", 1, 5, 5)]


def board(state: str = "running", age_s: float = 0.0, news: list[PartitionNews] = NEWS) -> Board:
    return Board(state=state, written_at=time.time() - age_s, partitions=news)


def test_a_mirror_at_work_is_believed() -> None:
    assert by_topic(told(board()), ["orders"], Source.MIRROR) == [AtRisk("orders", 3, Source.MIRROR)]


@pytest.mark.parametrize(
    "old",
    [None, board(age_s=FRESH_S + 1), board("paused"), board("starting")],
    ids=["never", "gone", "paused", "starting"],
)
def test_a_mirror_that_reads_nothing_makes_the_loss_unknown(old: Board | None) -> None:
    assert by_topic(told(old), ["orders"], Source.MIRROR) == [AtRisk("orders", None, Source.NOBODY)]


def test_one_partition_that_was_never_read_makes_its_topic_unknown_and_no_other() -> None:
    news = [*NEWS, PartitionNews("orders", 2), PartitionNews("calm", 0, position=4, active_end=4)]
    assert by_topic(told(board(news=news)), ["calm", "orders"], Source.MIRROR) == [
        AtRisk("calm", 0, Source.MIRROR),
        AtRisk("orders", None, Source.NOBODY),
    ]
