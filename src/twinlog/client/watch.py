"""The watch: one thread that waits with all writes until the standby has them.

A Producer starts it with its first write for acks=twin and tells it each record that the active has
acknowledged. While something waits it asks the standby's leaders for their watermarks, often while
they move, less often while they do not or while answers take long, and then, once for all that is covered,
for the role.
Whatever goes wrong at the standby, it asks again: only a write's own deadline ends the waiting.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from twinlog.client.outcomes import Outcome
from twinlog.client.pace import Pace, Pause
from twinlog.client.pending import Ended, Pending, Write
from twinlog.client.standby import Standby
from twinlog.errors import TwinlogError
from twinlog.wire.deadlines import Clock
from twinlog.wire.offsets import TopicPartition

Resolve = Callable[[Outcome], None]


class Watch:
    """Waits for the standby on behalf of writes; a write is the function that takes its outcome."""

    def __init__(self, standby: Standby, clock: Clock = time.monotonic) -> None:
        self._standby = standby
        self._clock = clock
        self._pending: Pending[Resolve] = Pending()
        self._changed = threading.Condition()
        self._is_closing = False
        self._has_new = False
        self._troubles: Mapping[TopicPartition, str] = {}
        self._pace = Pace()
        self._thread = threading.Thread(target=self._run, name="twinlog-watch", daemon=True)
        self._thread.start()

    def add(self, write: Write[Resolve]) -> None:
        """Wait with a write that the active has."""
        with self._changed:
            self._pending.add(write)
            self._has_new = True
            self._changed.notify()

    def expire(self) -> None:
        """End the writes whose time is over; for a thread that does not itself wait for the standby."""
        with self._changed:
            ended = self._pending.expire(self._clock(), self._troubles)
        _tell(ended)

    def close(self) -> None:
        """End the thread; what still waits ends as unknown at the twin."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()
        _tell(self._pending.give_up("the producer was closed"))

    def _run(self) -> None:
        while self._wait_for_work():
            began = self._clock()
            news = self._turn()
            took_s = self._clock() - began
            self._wait(self._pace.next_pause(news=news, trouble=bool(self._troubles), took_s=took_s))

    def _turn(self) -> bool:
        """Ask once; True if a write was covered or ended."""
        with self._changed:
            self._has_new = False
            places = self._pending.places
        marks, self._troubles = self._look(places)
        with self._changed:
            is_covered = self._pending.seen(marks)
        ended: Ended[Resolve] = []
        if is_covered:
            try:
                standing = self._standby.standing()
            except TwinlogError as error:
                self._troubles = dict.fromkeys(places, f"the standby's role cannot be read: {error}")
            else:
                with self._changed:
                    ended = self._pending.judge(standing)
        _tell(ended)
        return bool(ended)

    def _look(
        self, places: tuple[TopicPartition, ...]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        try:
            answers = self._standby.watermarks(places)
        except TwinlogError as error:
            return {}, dict.fromkeys(places, f"the standby cannot be asked: {error}")
        marks: dict[TopicPartition, int] = {}
        troubles: dict[TopicPartition, str] = {}
        for place, answer in answers.items():
            if isinstance(answer, TwinlogError):
                troubles[place] = f"the standby cannot be asked: {answer}"
            else:
                marks[place] = answer
        return marks, troubles

    def _wait_for_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing or len(self._pending) > 0)
            return not self._is_closing

    def _wait(self, pause: Pause) -> None:
        """Wait, and no longer than the shortest pause once a write is new."""
        least_s, most_s = pause
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing, least_s)
            self._changed.wait_for(lambda: self._is_closing or self._has_new, most_s - least_s)


def _tell(ended: Ended[Resolve]) -> None:
    for resolve, outcome in ended:
        resolve(outcome)
