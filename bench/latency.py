"""How old records are when a reader of the standby gets them, at steady rates.

All rates carry 1 MB/s: in large and small records on one topic, and spread over a hundred topics. A
record's time is when its producer took it. The reader is the same for both mirrors, so its own part is
in both figures. The largest age is the largest lag that anybody could have seen. A mirror has the topics of
all rates and is measured at one rate after the other, each time when it has caught up with what was written
before it began; if that takes too long it is measured as it is. Each mirror has two turns, first and last
or in the middle, because brokers get quicker while they run: whoever comes later meets better ones. Before
them comes a short one of ours that does not count: brokers that have just started are slow with small
requests, and only the first turn would meet them. What it saw is told all the same (`cold_max_ms`). The
figures are those of the records of both turns together. A mirror that stands still has its turn again.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from bench import load
from bench.ground import Ground, say, tried, wait_for
from bench.limits import NONE, Limits, held
from bench.measuring import Arrivals, Cpu, Latency, memory_bytes
from bench.peers import Peer
from twinlog.wire.offsets import TopicPartition

START_TIMEOUT_S = 180.0
COLD_S = 10  # of each rate, before the turns that count
FIRST_WARM_S, WARM_S = 10.0, 3.0  # from the first record of a mirror on, and of a rate
TAIL_TIMEOUT_S = 60.0
CATCH_UP_S = 60.0


class Rate(NamedTuple):
    """A steady stream."""

    name: str
    topics: int
    partitions: int  # of each topic
    per_second: int  # records, in all
    value_bytes: int

    def value(self, number: int) -> bytes:
        """The value of a record."""
        return load.numbered(number, self.value_bytes)


SEED_RATES = (
    Rate("100 x 10 KiB/s", 1, 3, 100, 10 << 10),
    Rate("10 x 100 KiB/s", 1, 3, 10, 100 << 10),
    Rate("1 x 1 MB/s", 1, 3, 1, 1_048_000),
)
MANY_TOPICS = (Rate("100 topics x 10 KiB/s", 100, 1, 1000, 1 << 10),)


class Turn(NamedTuple):
    """What was seen of a mirror at one rate, in one of its turns."""

    ages_ms: list[float]
    cpu_share: float
    memory_mb: float
    given: str  # the CPUs that it could use


def measure(
    ground: Ground,
    both: Sequence[Peer],
    seconds: int,
    rates: Sequence[Rate] = SEED_RATES,
    limits: Limits = NONE,
) -> dict[str, Any]:
    """Every rate for both mirrors: rate, name of the mirror, figures."""
    turns: dict[str, dict[str, list[Turn]]] = {rate.name: {} for rate in rates}
    say("brokers warm up at these rates; the next lines do not count")
    cold = _one(ground, both[0], 0, rates, min(seconds, COLD_S), limits)
    for number, peer in enumerate((*both, *reversed(both)), start=1):
        seen = tried(
            f"turn {number}, {peer.name}",
            partial(_one, ground, peer, number, rates, seconds, limits),
        )
        for name, turn in (seen or {}).items():
            turns[name].setdefault(peer.name, []).append(turn)
    found = {
        name: {peer: _together(of_peer) for peer, of_peer in by_peer.items()}
        for name, by_peer in turns.items()
    }
    for name, turn in cold.items():
        found[name][both[0].name]["cold_max_ms"] = max(turn.ages_ms)
    return found


def _together(turns: Sequence[Turn]) -> dict[str, Any]:
    latency = Latency.of([age_ms for turn in turns for age_ms in turn.ages_ms])
    return latency.as_json() | {
        "p50_ms_by_turn": [Latency.of(turn.ages_ms).p50_ms for turn in turns],
        "cpu_share": statistics.mean(turn.cpu_share for turn in turns),
        "memory_mb": max(turn.memory_mb for turn in turns),
        "given": turns[0].given,
    }


def _one(
    ground: Ground,
    peer: Peer,
    turn: int,
    rates: Sequence[Rate],
    seconds: int,
    limits: Limits,
    attempt: int = 1,
) -> dict[str, Turn]:
    topics = {
        rate: [
            f"rate-{turn}-{attempt}-{peer.name}-{rate.value_bytes}-{number}" for number in range(rate.topics)
        ]
        for rate in rates
    }
    declared = {
        name: {"partitions": rate.partitions, "mirror": peer.mirrors}
        for rate, names in topics.items()
        for name in names
    }
    found = {}
    with ground.topics(declared) as partitions, held(ground, peer, limits) as limit:
        peer.start(list(declared))
        try:
            for number, rate in enumerate(rates):
                places = [place for place in partitions if place[0] in topics[rate]]
                stream = Steady(ground, peer, rate, places)
                if number == 0:
                    stream.wait_for_first()
                    limit.hold()
                warm_s = FIRST_WARM_S if number == 0 else WARM_S
                found[rate.name] = stream.measure(seconds, warm_s)._replace(given=limit.given)
        finally:
            peer.stop()
    return found


class Steady:
    """One rate through one mirror, from its first record on."""

    def __init__(self, ground: Ground, peer: Peer, rate: Rate, places: list[TopicPartition]) -> None:
        self._peer = peer
        self._rate = rate
        self._arrivals = Arrivals(ground, places)
        self._stream = load.Stream(ground, places, rate.per_second, rate.value)
        self._stream.start()

    def wait_for_first(self) -> None:
        """Return when something has arrived."""
        try:
            wait_for("the first records", lambda: self._arrivals.count > 0, START_TIMEOUT_S)
        except BaseException:
            self._end()
            raise

    def measure(self, seconds: int, warm_s: float) -> Turn:
        """The ages of all records that are written in so many seconds; it has ended then."""
        try:
            self.wait_for_first()
            self._catch_up()
            pause = threading.Event()
            pause.wait(warm_s)
            cpu = Cpu(self._peer.processes)
            first, used = time.time(), cpu.seconds()
            pause.wait(seconds)
            last, used = time.time(), cpu.seconds() - used
            memory_mb = memory_bytes(self._peer.processes()) / 1e6
            total = self._stream.end()
            wait_for("the last records", lambda: self._arrivals.count >= total, TAIL_TIMEOUT_S)
        finally:
            self._end()
        turn = Turn(self._arrivals.between(first, last), used / (last - first), memory_mb, "")
        found = Latency.of(turn.ages_ms)
        say(
            f"{self._rate.name}, {self._peer.name}: p50 {found.p50_ms:.0f} ms, p99 {found.p99_ms:.0f} ms,"
            f" at most {found.max_ms:.0f} ms, {turn.cpu_share:.0%} of a core, {memory_mb:.0f} MB"
        )
        return turn

    def _catch_up(self) -> None:
        began = time.monotonic()
        try:
            wait_for("catching up", lambda: self._behind <= max(1, self._rate.per_second), CATCH_UP_S)
        except TimeoutError:
            say(f"{self._peer.name} is still {self._behind} records behind after {CATCH_UP_S:g} s")
        took_s = time.monotonic() - began
        if took_s > 1:
            say(f"{self._peer.name} took {took_s:.1f} s to catch up with what was there when it began")

    @property
    def _behind(self) -> int:
        return sum(self._stream.counts.values()) - self._arrivals.count

    def _end(self) -> None:
        self._stream.halt()
        self._arrivals.end()
