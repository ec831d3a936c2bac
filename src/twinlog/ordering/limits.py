"""What a site must be for the ordering service to keep its promises. Pure.

`twinlog order up` asks before it starts anything. With K brokers, N copies and M of them needed for a
write, one broker may be lost without anybody noticing if 1 < M < N < K; and the largest message must
fit through everything between a client and a follower. A fault names the value to change, and where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ROOM_BYTES = 1024 * 1024
GOOD_PREFERRED_BYTES = 1024 * 1024
LEAST_BROKERS = 4


@dataclass(frozen=True)
class Figures:
    """The values that matter, from the file, the site and the channel's configuration."""

    site: str
    brokers: int  # K
    replication: int  # N
    min_insync: int  # M
    absolute_max_bytes: int
    preferred_max_bytes: int
    replica_fetch_bytes: int
    message_bytes: int
    request_bytes: int
    bootstrap: int = 2
    retention_bytes: int = -1


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, and what to write instead."""

    what: str
    hint: str


def faults(figures: Figures) -> Iterator[Fault]:
    """What keeps the ordering service from being started there."""
    k, n, m = figures.brokers, figures.replication, figures.min_insync
    where = f"sites.{figures.site}"
    if k < LEAST_BROKERS:
        yield Fault(f"site {figures.site} has {k} brokers: K must be at least 4", f"{where}: brokers: 4")
    elif n >= k:
        yield Fault(f"{n} copies on {k} brokers: N must be less than K", f"--replication {k - 1}")
    if m >= n:
        hint = f"--min-insync {n - 1}" if n > 2 else "--replication 3 --min-insync 2"
        yield Fault(f"{m} of {n} copies for each write: M must be less than N", hint)
    if m <= 1:
        yield Fault(f"{m} copies for each write: M must be more than 1", "--min-insync 2")
    needed = figures.absolute_max_bytes + ROOM_BYTES
    if figures.replica_fetch_bytes < needed:
        yield Fault(
            f"replica.fetch.max.bytes is {figures.replica_fetch_bytes}, and a message of "
            f"AbsoluteMaxBytes needs {needed}",
            f"{where}: kafka: {{replica.fetch.max.bytes: {needed}}}, or a smaller --absolute-max-bytes",
        )
    if figures.message_bytes < max(figures.replica_fetch_bytes, needed):
        least = max(figures.replica_fetch_bytes, needed)
        yield Fault(
            f"message.max.bytes is {figures.message_bytes}, less than the {least} that replicas fetch",
            f"{where}: kafka: {{message.max.bytes: {least}}}",
        )
    if figures.request_bytes <= figures.message_bytes:
        yield Fault(
            f"socket.request.max.bytes is {figures.request_bytes}, not more than message.max.bytes",
            f"{where}: kafka: {{socket.request.max.bytes: {figures.message_bytes + ROOM_BYTES}}}",
        )
    if figures.preferred_max_bytes > figures.absolute_max_bytes:
        yield Fault(
            f"the preferred size, {figures.preferred_max_bytes}, is over AbsoluteMaxBytes",
            f"--preferred-max-bytes {figures.absolute_max_bytes}",
        )


def doubts(figures: Figures) -> Iterator[Fault]:
    """What works and is not advised."""
    if figures.preferred_max_bytes > GOOD_PREFERRED_BYTES:
        yield Fault(
            f"a preferred size of {figures.preferred_max_bytes} bytes is over 1 MiB",
            "--preferred-max-bytes 1048576",
        )
    if figures.bootstrap < 2:
        yield Fault(
            "orderers know fewer than two brokers, and find none when that one is away", "name two or more"
        )
    if figures.retention_bytes >= 0:
        yield Fault(
            f"log.retention.bytes is {figures.retention_bytes}; channels are kept whole all the same",
            "leave it out if the site is for ordering only",
        )
