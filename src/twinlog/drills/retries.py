"""What a client's own retries can have done to the log, and how often.

The checkers ask here before they call a repeated or displaced value a fault of the bus. A client tries
again when an answer was lost or was a refusal, and it is in the log twice only if the site had taken it
already: that needs something that broke connections or moved leaders, or a request that had no answer in
time. Each such chance makes one copy more, and no more values than the client had unanswered then. An
idempotent client's copies are told apart by the site, so there only a failover is a chance.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from functools import cached_property
from itertools import pairwise

from twinlog.drills.history import Happening, Outcome, Write
from twinlog.drills.index import Index, Position, point

# No client repeats a request sooner: back-off before a retry is 100 ms by default, less a fifth of jitter.
QUICKEST_RETRY_S = 0.05
REQUEST_S = 5.0  # without an answer a request is sent again: as the printed client files have it
DELIVERY_S = 120.0  # for so long: as they have it too
# What Kafka does about a disturbance later, by itself: copies fall out of sync after 30 s, sessions end
# after seconds, leaders go back to where they were within five minutes.
AFTERMATH_S = 300.0
DISTURBS = frozenset({Happening.FAULT, Happening.HEALED, Happening.FENCED, Happening.OPENED})
# Java's, of clients that do not say when they sent: requests in flight, each with one batch of a partition,
# in which no record of a drill takes less.
REQUESTS_IN_FLIGHT, BATCH_BYTES, RECORD_BYTES = 5, 16_384, 10
MOST_IN_FLIGHT = REQUESTS_IN_FLIGHT * BATCH_BYTES // RECORD_BYTES


class Retries:
    """The retries of one history; what was excused once is counted."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._disturbed_s = [one.time_s for one in index.history.events if one.what in DISTURBS]
        self._broken = tuple(index.broken())
        self._excused: Counter[tuple[str, str, int, float]] = Counter()

    def can_have_been(self, write: Write) -> bool:
        """True if a client may have sent it more than once, and a site may have taken or refused it then."""
        return not _ruled_out(write) and (bool(write.retried) or self.chances(write) > 0)

    def chances(self, write: Write) -> int:
        """How often an answer to it can have been lost after the site had taken it."""
        first_s, last_s = self._unanswered(write)
        first, last = bisect_left(self._disturbed_s, first_s), bisect_right(self._disturbed_s, last_s)
        is_late = first > 0 and self._disturbed_s[first - 1] >= first_s - AFTERMATH_S
        is_amid = any(began_s < first_s <= ended_s for began_s, ended_s in self._broken)
        return last - first + (is_late or is_amid) + self._timeouts(write, first_s, last_s)

    def why_twice(self, write: Write, places: list[Position]) -> str:
        """Why a value may stand in the log so often; empty if it must not."""
        if write.idempotent:
            return self._of_idempotent(write, places)
        again = len(places) - write.sends
        if again <= 0:
            return "its program sent it again"
        most = max(self.chances(write), 1 if write.retried else 0)
        if _ruled_out(write) or again > most or not self._had_it_in_flight(write, places[0]):
            return ""
        return "its client is not idempotent and may have tried again"

    def _of_idempotent(self, write: Write, places: list[Position]) -> str:
        if len(places) <= write.sends:
            return "its program sent it again"
        points = sorted(at for one in self._index.promotions if (at := point(one, places[0][:2])) is not None)
        sites = Counter(bisect_right(points, offset) for _, _, offset in places)
        if _ruled_out(write) or max(sites.values()) > write.sends:
            return ""
        return "its client tried again after a failover, where the promoted site had forgotten it"

    def _unanswered(self, write: Write) -> tuple[float, float]:
        """From when to when its client can have waited for an answer."""
        if write.start_s is None:
            last_s = write.time_s
            return last_s - DELIVERY_S, last_s
        return write.start_s, write.start_s + DELIVERY_S if write.end_s is None else write.end_s

    def _timeouts(self, write: Write, first_s: float, last_s: float) -> int:
        """How many requests can have had no answer in time; of silent clients, by their longest pause."""
        if write.start_s is not None:
            return int((last_s - first_s) // REQUEST_S)
        answers = self._answers[write.client]
        around = answers[max(bisect_left(answers, first_s) - 1, 0) : bisect_right(answers, last_s)]
        return int(max((after - before for before, after in pairwise(around)), default=0.0) // REQUEST_S)

    def _had_it_in_flight(self, write: Write, place: Position) -> bool:
        """Whether a client that does not say when it sent had room for it among its requests in flight."""
        if write.start_s is not None:
            return True  # it was unanswered then, which is all that its requests in flight could tell
        topic, partition, _ = place
        last = bisect_right(self._disturbed_s, write.time_s)
        began_s = self._disturbed_s[last - 1] if last else 0.0
        self._excused[write.client, topic, partition, began_s] += 1
        return self._excused[write.client, topic, partition, began_s] <= MOST_IN_FLIGHT

    @cached_property
    def _answers(self) -> dict[str, list[float]]:
        """When each client was answered, in order."""
        answers: dict[str, list[float]] = defaultdict(list)
        for write in self._index.history.writes:
            if write.end_s is not None:
                answers[write.client].append(write.end_s)
        for row in answers.values():
            row.sort()
        return answers


def _ruled_out(write: Write) -> bool:
    """True if its client says that it sent it once, or was answered before it could have tried again."""
    if write.retried is not None:
        return not write.retried
    return (
        write.outcome is Outcome.OK
        and write.start_s is not None
        and write.end_s is not None
        and write.end_s - write.start_s < QUICKEST_RETRY_S
    )
