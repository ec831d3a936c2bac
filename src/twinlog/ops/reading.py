"""Reading a topic from one place to another, without a group or as a member of one.

For `twinlog consume` and `twinlog events check`. Without a group nothing is written anywhere: the offsets
to begin and end at are asked first, and librdkafka is given exactly those. In a group reading goes on
where the group stands, and what was handed over is committed piece by piece and at the end, so a
reader that is killed repeats records at the next run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field

from twinlog.errors import SiteError
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.received import Received
from twinlog.wire.receiver import Receiver

PIECE_RECORDS = 1000
TURN_S = 0.5
NO_GROUP = "twinlog-cli"  # librdkafka wants a name; nothing is joined and nothing committed under it


@dataclass(frozen=True)
class Options:
    """How to read, beside from where."""

    follow: bool = False
    read_committed: bool = True
    timeout_s: float = 10.0  # until the first record, or the end, must have come
    tuning: Tuning = field(default_factory=Tuning)


def from_places(
    access: Access,
    positions: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    options: Options,
) -> Generator[Received, None, None]:
    """The records of partitions, from these positions to these ends, or for ever."""
    left = {place for place, offset in positions.items() if options.follow or offset < ends[place]}
    if not left:
        return
    receiver = _receiver(access, NO_GROUP, "earliest", options)
    try:
        receiver.assign({place: positions[place] for place in left})
        for piece in _pieces(receiver, options, lambda: not left):
            for record in piece:
                place = (record.topic, record.partition)
                if place not in left:
                    continue
                if options.follow or record.offset < ends[place]:
                    yield record
                if not options.follow and record.offset + 1 >= ends[place]:
                    left.discard(place)
            if not options.follow:
                # What stands at the end may be a marker, or compacted away: no record tells that it came.
                left.difference_update(receiver.ended)
    finally:
        receiver.close()


def in_group(
    access: Access, topic: str, group: str, start: str, options: Options
) -> Generator[Received, None, None]:
    """The records that a member of a group is given, until it has read to the ends, or for ever."""
    receiver = _receiver(access, group, start, options)
    given: dict[TopicPartition, int] = {}

    def lost(places: list[TopicPartition]) -> None:
        for place in places:
            given.pop(place, None)

    def is_read() -> bool:
        assigned = set(receiver.assigned)
        return not options.follow and bool(assigned) and assigned <= receiver.ended

    try:
        receiver.subscribe([topic], lost)
        for piece in _pieces(receiver, options, is_read):
            for record in piece:
                given[(record.topic, record.partition)] = record.offset + 1
                yield record
            _commit(receiver, given)
    except GeneratorExit:
        _commit(receiver, given)  # the caller has enough, and the rest of the piece was never handed over
        raise
    finally:
        receiver.close()


def _commit(receiver: Receiver, given: dict[TopicPartition, int]) -> None:
    if given:
        receiver.commit(dict(given))
        given.clear()


def _receiver(access: Access, group: str, start: str, options: Options) -> Receiver:
    settings: dict[str, str | int | float | bool] = {
        "enable.partition.eof": True,
        "isolation.level": "read_committed" if options.read_committed else "read_uncommitted",
    }
    return Receiver(access, group=group, start=start, tuning=options.tuning, settings=settings)


def _pieces(receiver: Receiver, options: Options, is_over: Callable[[], bool]) -> Iterator[list[Received]]:
    last_news, ended = time.monotonic(), 0
    while not is_over():
        piece = receiver.take(PIECE_RECORDS, TURN_S)
        if piece or len(receiver.ended) != ended:
            last_news, ended = time.monotonic(), len(receiver.ended)
        elif not options.follow and time.monotonic() - last_news > options.timeout_s:
            raise SiteError(
                f"neither a record nor the end of a partition came within {options.timeout_s:g} s",
                where=receiver.where,
                hint="are all brokers up? twinlog status",
            )
        yield piece
