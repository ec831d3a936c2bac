"""Patience at the start of a channel: attempts at short intervals, then at long ones. Pure but for its wait.

`chain` takes each step to its log with it: topic, CONNECT, reader. An attempt is made at once and then at
every interval until its total is over; who is asked to end stops waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from twinlog.errors import TwinlogError
from twinlog.ordering.localconfig import Retry
from twinlog.wire.deadlines import Clock

Result = TypeVar("Result")
Wait = Callable[[float], bool]  # for so many seconds; True if asked to end


class AskedToEnd(TwinlogError):
    """No more attempts are wanted."""


def retried(
    attempt: Callable[[], Result],
    retry: Retry,
    wait: Wait,
    *,
    failed: Callable[[TwinlogError], None],
    clock: Clock = time.monotonic,
) -> Result:
    """What an attempt gives, once it gives something; raises the last reason if it never does.

    `failed` hears every reason, and ends the attempts by raising it.
    """
    spans = (retry.short_interval_s, retry.short_total_s), (retry.long_interval_s, retry.long_total_s)
    last: TwinlogError | None = None
    for interval_s, total_s in spans:
        begun = clock()
        while True:
            try:
                return attempt()
            except TwinlogError as error:
                failed(error)
                last = error
            if clock() - begun + interval_s > total_s:
                break
            if wait(interval_s):
                raise AskedToEnd("asked to end")
    assert last is not None
    raise last
