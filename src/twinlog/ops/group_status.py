"""How a group is doing, judged without thresholds by what it committed and what was written. Pure.

A member that commits is watched over its last commits: the window. A group that commits every hour and
one that commits ten times a second are judged by the same rules, because the window is as long as
they make it. `group_lag` reads what is needed; the commands show the worst place of a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise

from twinlog.wire.commits import Commit


class Status(StrEnum):
    """How reading goes at one place, or in the whole group; each member says what it means."""

    OK = "ok"  # nothing left to read, or less than before
    UNKNOWN = "unknown"  # there may be something to read, and too few commits, or none, to say more
    BEHIND = "falling behind"  # it reads and commits, and more is written meanwhile
    REWOUND = "rewound"  # it committed an offset below one that it had committed before
    STALLED = "stalled"  # it commits the same offset again and again, and there is more to read
    STOPPED = "stopped"  # no commit for longer than the whole window, and there is something to read

    @property
    def wants_attention(self) -> bool:
        """True if `group lag` should say so by its exit code."""
        return self not in (Status.OK, Status.UNKNOWN)


_WORSE = list(Status)


def worst(statuses: Iterable[Status]) -> Status:
    """The status of a group: that of the place that is worst off; unknown if no place is known."""
    return max(statuses, key=_WORSE.index, default=Status.UNKNOWN)


def judge(
    commits: Sequence[Commit],
    *,
    lag_records: int,
    lag_then: int | None,
    now_ms: int,
    has_members: bool,
) -> Status:
    """How reading goes at one place.

    `commits` are the last ones, oldest first; `lag_then` is how far behind the oldest of them was when
    it was made, None where nobody can say.
    """
    if _is_rewound(commits):
        return Status.REWOUND
    if lag_records <= 0:
        return Status.OK
    if not has_members:
        return Status.STOPPED
    if len(commits) < 2:
        return Status.UNKNOWN
    window_ms = commits[-1].time_ms - commits[0].time_ms
    if now_ms - commits[-1].time_ms > window_ms > 0:
        return Status.STOPPED
    if commits[0].offset == commits[-1].offset:
        return Status.STALLED
    if lag_then is None:
        return Status.UNKNOWN
    return Status.BEHIND if lag_records > lag_then else Status.OK


def _is_rewound(commits: Sequence[Commit]) -> bool:
    return any(later.offset < earlier.offset for earlier, later in pairwise(commits))
