"""What a consumer with read="twin" hands out, and when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinlog.client.held import Held
from twinlog.wire.received import Received

PLACES = (("orders", 0), ("orders", 1))


def record(place: tuple[str, int], offset: int) -> Received:
    return Received(*place, offset, None, b"x", (), 0)


reads = st.tuples(st.just("read"), st.sampled_from(PLACES), st.integers(1, 4))
marks = st.tuples(st.just("confirm"), st.sampled_from(PLACES), st.integers(0, 30))


@given(st.lists(reads | marks, max_size=40))
def test_a_record_comes_out_once_in_order_and_only_below_a_confirmed_watermark(
    happened: list[tuple[str, tuple[str, int], int]],
) -> None:
    held = Held()
    next_offset = dict.fromkeys(PLACES, 0)
    confirmed = dict.fromkeys(PLACES, 0)
    out: dict[tuple[str, int], list[int]] = {place: [] for place in PLACES}
    for what, place, number in happened:
        if what == "read":
            first = next_offset[place]
            next_offset[place] += number
            held.put(record(place, offset) for offset in range(first, first + number))
        else:
            confirmed[place] = max(confirmed[place], number)
            held.confirm({place: number})
        for one in held.take():
            out[(one.topic, one.partition)].append(one.offset)
        for each in PLACES:
            assert out[each] == list(range(min(confirmed[each], next_offset[each])))
            assert (each in held.places) == (confirmed[each] < next_offset[each])
    assert (held.size_bytes == 0) == (held.places == ())


def test_a_watermark_that_frees_nothing_need_not_be_confirmed() -> None:
    held = Held()
    held.put([record(PLACES[0], 5)])
    assert not held.would_free({PLACES[0]: 5})
    assert not held.would_free({PLACES[1]: 9})
    assert held.would_free({PLACES[0]: 6})


def test_records_of_a_lost_partition_are_forgotten_whether_free_or_not() -> None:
    held = Held()
    held.put([record(PLACES[0], 0), record(PLACES[0], 1), record(PLACES[1], 0)])
    held.confirm({PLACES[0]: 1, PLACES[1]: 1})
    held.drop([PLACES[0]])
    assert held.take() == [record(PLACES[1], 0)]
    assert held.places == ()
    assert held.size_bytes == 0
