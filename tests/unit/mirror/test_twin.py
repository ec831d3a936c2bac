"""What may be sent now, and what an answer means: the order rule, case by case."""

from __future__ import annotations

import pytest

from twinlog.mirror.reactions import Reaction
from twinlog.mirror.steps import Chain, Copy, Fill
from twinlog.mirror.twin import GUARDED_MS, MOST_IN_FLIGHT, Start, Twin
from twinlog.wire.batches import read
from twinlog.wire.records import Record, encode_batch

LINK = Chain(1 << 62, 2)
ONE, OTHER = Chain(101, 0), Chain(102, 0)
NOW_MS = 1_800_000_000_000
OLD_MS = NOW_MS - GUARDED_MS
NOT_ENOUGH_REPLICAS, OUT_OF_ORDER, TOO_LARGE = 19, 45, 10


class Line:
    """A twin that is offered one batch of one record after the other."""

    def __init__(self, *, sequence: int = 0, holes: frozenset[Chain] = frozenset()) -> None:
        self.twin = Twin(Start(0, LINK, sequence), holes)

    def batch(self, chain: Chain | None = None, sequence: int = -1, timestamp_ms: int = NOW_MS) -> Line:
        producer_id, epoch = chain if chain is not None else (-1, -1)
        encoded = encode_batch(
            [Record(b"v", timestamp_ms)],
            producer_id=producer_id,
            producer_epoch=epoch,
            first_sequence=sequence,
        )
        view = memoryview(bytearray(encoded))
        self.twin.offer([Copy(view, self.twin.planned, 1, timestamp_ms, chain, sequence)])
        return self

    def gap(self, length: int = 1) -> Line:
        self.twin.offer([Fill(self.twin.planned, length)])
        return self

    def send_and_hear(self, count: int = 1) -> Line:
        for _ in range(count):
            step = self.twin.take(NOW_MS)
            assert isinstance(step, Copy)
            assert self.twin.answered(0, step.first)[0] is Reaction.GO
        return self

    def sent(self, now_ms: int = NOW_MS) -> int:
        """How many may be sent now."""
        count = 0
        while self.twin.take(now_ms) is not None:
            count += 1
        return count


def test_first_batch_of_a_twin_goes_alone() -> None:
    assert Line().batch().batch().sent() == 1


def test_link_that_was_answered_is_followed_five_deep() -> None:
    line = Line().batch().send_and_hear()
    for _ in range(10):
        line.batch()
    assert line.sent() == MOST_IN_FLIGHT


def test_kept_chain_that_was_answered_is_followed_in_sequence() -> None:
    line = Line().batch(ONE, 4).send_and_hear()
    line.batch(ONE, 5).batch(ONE, 6).batch(ONE, 7)
    assert line.sent() == 3


def test_another_producer_waits_until_all_was_answered() -> None:
    line = Line().batch(ONE, 4).send_and_hear().batch(ONE, 5).batch(OTHER, 0).batch(OTHER, 1)
    assert line.sent() == 1
    line.twin.answered(0, 1)
    assert line.sent() == 1


def test_next_epoch_of_a_producer_waits_until_all_was_answered() -> None:
    line = Line().batch(ONE, 4).send_and_hear().batch(ONE, 5).batch(Chain(101, 1), 0)
    assert line.sent() == 1


@pytest.mark.parametrize("sequence", [2, 4, 7])
def test_batch_out_of_sequence_goes_alone_and_is_not_followed(sequence: int) -> None:
    # A broker answers a batch that it remembers, and takes the one behind the last it has.
    line = Line().batch(ONE, 4).send_and_hear()
    line.batch(ONE, sequence).batch(ONE, sequence + 1)
    assert line.sent() == 1


def test_gap_in_the_sequence_is_not_sent_behind_an_unanswered_batch() -> None:
    line = Line().batch(ONE, 4).send_and_hear().batch(ONE, 5).batch(ONE, 7)
    assert line.sent() == 1


def test_old_batch_answered_nothing_follows_the_next_one() -> None:
    line = Line().batch(timestamp_ms=OLD_MS).send_and_hear().batch().batch()
    assert line.sent() == 1


def test_old_batch_in_flight_is_not_followed() -> None:
    line = Line().batch().send_and_hear().batch(timestamp_ms=OLD_MS).batch()
    assert line.sent() == 1


def test_long_rest_the_broker_may_have_forgotten_nothing_follows() -> None:
    line = Line().batch().send_and_hear().batch().batch()
    assert line.sent(now_ms=NOW_MS + GUARDED_MS) == 1


def test_gap_waits_and_is_waited_for() -> None:
    line = Line().batch().send_and_hear().batch().gap(3).batch()
    assert line.sent() == 1
    assert line.twin.next_is_fill
    line.twin.answered(0, 1)
    assert line.twin.take(NOW_MS) == Fill(2, 3)
    assert line.sent() == 0
    assert line.twin.filled(0, 5)[0] is Reaction.GO
    assert line.sent() == 1


def test_chain_is_still_guarded_behind_a_gap() -> None:
    line = Line().batch(ONE, 4).send_and_hear().gap()
    line.twin.take(NOW_MS)
    line.twin.filled(0, 2)
    assert line.batch(ONE, 5).batch(ONE, 6).sent() == 2


def test_producer_with_a_hole_goes_under_the_links_name() -> None:
    line = Line(sequence=9, holes=frozenset({ONE})).batch(ONE, 4).batch(Chain(101, 1), 0)
    first = line.twin.take(NOW_MS)
    assert isinstance(first, Copy)
    assert read(first.view).header[9:12] == (*LINK, 9)
    assert line.twin.answered(OUT_OF_ORDER, -1)[0] is Reaction.RENEW


def test_links_sequence_counts_its_own_records_and_wraps() -> None:
    line = Line(sequence=2**31 - 1).batch().batch(ONE, 0).batch()
    sequences = []
    for _ in range(3):
        step = line.twin.take(NOW_MS)
        assert isinstance(step, Copy)
        sequences.append(read(step.view).header.base_sequence)
        line.twin.answered(0, step.first)
    assert sequences == [2**31 - 1, 0, 0]
    assert line.twin.link_stands_at == (LINK, 1)


def test_refusal_closes_the_twin_and_what_follows_is_not_settled() -> None:
    line = Line().batch().send_and_hear().batch().batch()
    assert line.sent() == 2
    assert line.twin.answered(NOT_ENOUGH_REPLICAS, -1)[0] is Reaction.REDERIVE
    assert line.twin.is_closed and line.twin.in_flight == 1
    line.twin.answered(0, 2)  # cannot be; and if it were, it would not stand where it should
    assert (line.twin.in_flight, line.twin.settled, line.twin.link_stands_at) == (0, 1, (LINK, 1))
    assert line.batch().sent() == 0


def test_closed_twin_sends_nothing_and_settles_what_was_in_flight() -> None:
    line = Line().batch().send_and_hear().batch().batch()
    line.twin.take(NOW_MS)
    line.twin.close()
    assert line.sent() == 0
    line.twin.answered(0, 1)
    assert line.twin.settled == 2


def test_hole_names_the_chain_that_was_refused() -> None:
    line = Line().batch(ONE, 4)
    line.twin.take(NOW_MS)
    reaction, sent = line.twin.answered(OUT_OF_ORDER, -1)
    assert (reaction, sent.chain) == (Reaction.HOLE, ONE)


def test_lasting_refusal_stops() -> None:
    line = Line().batch()
    line.twin.take(NOW_MS)
    assert line.twin.answered(TOO_LARGE, -1)[0] is Reaction.STOP


def test_offer_that_does_not_continue_the_plan_is_an_error() -> None:
    with pytest.raises(AssertionError, match="expected 0"):
        Line().twin.offer([Fill(1, 1)])


def test_bytes_wait_until_they_are_taken() -> None:
    line = Line().batch().gap()
    size = line.twin.queued_bytes
    assert size > 0
    line.twin.take(NOW_MS)
    assert line.twin.queued_bytes == 0
    assert line.twin.has_steps and not line.twin.is_idle
