"""How far the standby may be behind when a switchover begins."""

from __future__ import annotations

from twinlog.mirror.watch import LinkStatus, PartitionStatus
from twinlog.traffic.beginning import still_lacks


def seen(*ends: tuple[int, int]) -> LinkStatus:
    """A look at partitions, each with the end of the active and of the standby."""
    partitions = [
        PartitionStatus("orders", number, active, standby, max(0, active - standby), 0.0)
        for number, (active, standby) in enumerate(ends)
    ]
    return LinkStatus({"state": "running"}, True, partitions, [])


class Bus:
    """Looks that follow one another, a tenth of a second apart."""

    def __init__(self, *looks: LinkStatus) -> None:
        self.now_s = 0.0
        self.left = list(looks)

    def look(self) -> LinkStatus:
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def lacks(self, most_s: float = 30.0) -> str:
        return still_lacks(self.look(), self.look, most_s, clock=lambda: self.now_s, wait=self.wait)


def test_standby_that_has_everything_is_not_waited_for() -> None:
    bus = Bus(seen((5, 5), (7, 7)))
    assert bus.lacks() == ""
    assert bus.now_s == 0.0


def test_standby_that_comes_to_where_the_active_was_is_close_though_the_active_has_gone_on() -> None:
    bus = Bus(seen((50, 40)), seen((60, 45)), seen((70, 50)))
    assert bus.lacks() == ""
    assert 0.1 <= bus.now_s <= 0.3


def test_standby_that_does_not_come_there_in_time_is_too_far_behind() -> None:
    bus = Bus(seen((5, 5), (900, 10)), seen((9, 9), (950, 60)))
    assert bus.lacks(most_s=30.0) == "orders-1 is at 60, and the active was at 900"
    assert 30.0 < bus.now_s < 31.0


def test_what_stands_behind_an_open_transaction_is_not_waited_for() -> None:
    look = seen((9, 9), (900, 10))
    look.partitions[1].stable_end = 10
    assert Bus(look).lacks() == ""


def test_partition_that_came_later_does_not_count() -> None:
    assert Bus(seen((5, 4)), seen((5, 5), (80, 0))).lacks() == ""
