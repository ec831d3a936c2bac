"""What the measurement of the client library makes of its slices."""

from __future__ import annotations

from bench.client import Slice, compared


def test_the_ratio_is_that_of_neighbours_and_not_of_all() -> None:
    # The machine is half as fast in the second pair; ours takes a tenth longer each time.
    bare = [Slice(1.0, 0.5), Slice(2.0, 0.5), Slice(1.0, 0.5)]
    ours = [Slice(1.1, 0.6), Slice(2.2, 0.6), Slice(1.1, 0.6)]
    found = compared(bare, ours, records=1000)
    assert found["ratio"] == 0.909
    assert found["ratio_middle_half"] == [0.909, 0.909]
    assert found["cpu_ratio"] == 1.2
    assert (found["bare_per_s"], found["slices"]) == (1000, 3)
