"""The highest rate of commits that the mirror follows on one partition.

Run by `make bench-commits`. Every transaction is 100 records of 1 KB, and every commit leaves a marker
that the mirror has to fill at the standby before it may go on. First a backlog of transactions is
copied: the rate that the mirror reaches when nothing else holds it back. Then transactions are written
at growing rates while the mirror runs; a rate is followed when the lag at its end is below a second's
worth. Progress goes to stderr; the last line on stdout is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from functools import partial
from typing import Any

from confluent_kafka import Producer

from bench import load
from bench.ground import ACTIVE, STANDBY, Ground, ground, interruptible, say, wait_for
from bench.measuring import Cpu, watch_copying
from bench.peers import Ours
from twinlog.wire import offsets
from twinlog.wire.offsets import TopicPartition

RECORDS = 100  # of a transaction
START_TIMEOUT_S = 180.0
TRANSACTION_TIMEOUT_S = 60.0


class Writers:
    """Producers that commit on one partition, as fast as they are allowed to.

    They linger as librdkafka does when nobody says otherwise, which makes one batch of a transaction; its
    commit does not wait for that.
    """

    def __init__(self, on: Ground, place: TopicPartition, count: int) -> None:
        self._place = place
        self._producers = [
            load.producer(on, **{"transactional.id": f"{place[0]}-{number}"}) for number in range(count)
        ]
        for producer in self._producers:
            producer.init_transactions(TRANSACTION_TIMEOUT_S)

    def write(self, commits: int, per_second: float | None = None) -> float:
        """So many commits, at most at a rate; gives the seconds that they took."""
        began = time.monotonic()
        share, more = divmod(commits, len(self._producers))
        rate = per_second / len(self._producers) if per_second else None
        threads = [
            threading.Thread(target=self._commit, args=(producer, share + (number < more), rate), daemon=True)
            for number, producer in enumerate(self._producers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.monotonic() - began

    def _commit(self, producer: Producer, commits: int, per_second: float | None) -> None:
        topic, partition = self._place
        value, pause, began = bytes(load.VALUE_BYTES), threading.Event(), time.monotonic()
        for number in range(commits):
            if per_second:
                pause.wait(max(0.0, began + number / per_second - time.monotonic()))
            producer.begin_transaction()
            for _ in range(RECORDS):
                producer.produce(topic, value, partition=partition)
            producer.commit_transaction(TRANSACTION_TIMEOUT_S)


def options() -> argparse.Namespace:
    """What to measure, and how large."""
    parser = argparse.ArgumentParser(prog="bench.commits", description=__doc__)
    parser.add_argument("--brokers", type=int, default=1, help="of each site")
    parser.add_argument("--commits", type=int, default=6000, help="in the backlog")
    parser.add_argument("--producers", type=int, default=4, help="that commit side by side")
    parser.add_argument("--rates", default="100,200,300,400,500,600", help="with commas between; empty: none")
    parser.add_argument("--seconds", type=int, default=15, help="how long each rate lasts")
    return parser.parse_args()


def backlog(on: Ground, chosen: argparse.Namespace) -> dict[str, Any]:
    """Copy transactions that are there already."""
    with on.topics({"backlog": {"partitions": 1}}) as partitions:
        took_s = Writers(on, partitions[0], chosen.producers).write(chosen.commits)
        say(f"wrote {chosen.commits} transactions, {chosen.commits / took_s:.0f} commits per second")
        ours = Ours(on)
        try:
            total = chosen.commits * (RECORDS + 1)
            copied = watch_copying(
                on,
                partitions,
                total,
                partial(ours.start, ["backlog"]),
                Cpu(ours.processes),
                START_TIMEOUT_S + took_s * 10,
            )
        finally:
            ours.stop()
    rate = copied.records_per_s / (RECORDS + 1)
    say(f"backlog: {rate:.0f} commits per second followed")
    return {"commits_per_s": rate, "cpu_s": copied.cpu_s, "seconds": copied.seconds}


def live(on: Ground, chosen: argparse.Namespace, rates: list[int]) -> list[dict[str, Any]]:
    """Follow transactions while they are written, at growing rates."""
    found = []
    with on.topics({"live": {"partitions": 1}}) as partitions:
        ours, writers = Ours(on), Writers(on, partitions[0], chosen.producers)
        ours.start(["live"])
        try:
            _follow(on, partitions, writers, 1, 1)  # until the mirror has begun
            for rate in rates:
                found.append(_follow(on, partitions, writers, rate, chosen.seconds))
        finally:
            ours.stop()
    return found


def _follow(
    on: Ground, partitions: list[TopicPartition], writers: Writers, rate: int, seconds: int
) -> dict[str, Any]:
    took_s = writers.write(rate * seconds, rate)
    with on.cluster(ACTIVE) as active, on.cluster(STANDBY) as standby:

        def behind() -> int:
            here, there = offsets.log_ends(active, partitions), offsets.log_ends(standby, partitions)
            return sum(here.values()) - sum(there.values())

        written, lag = rate * seconds / took_s, behind()
        wait_for("the standby catches up", lambda: behind() == 0, START_TIMEOUT_S + took_s * 10)
    lag_s = lag / (RECORDS + 1) / written
    say(f"live: {written:.0f} commits per second of {rate} wanted, {lag_s:.2f} s behind at the end")
    return {"wanted_per_s": rate, "written_per_s": written, "lag_s": lag_s, "followed": lag_s < 1.0}


def main() -> None:
    """Measure and print."""
    chosen = options()
    rates = [int(rate) for rate in chosen.rates.split(",") if rate]
    with interruptible(), ground("commits", chosen.brokers) as on:
        copied = backlog(on, chosen)
        followed = live(on, chosen, rates)
    kept_up = [one["written_per_s"] for one in followed if one["followed"]]
    result = {
        "bench": "commits",
        "commits_per_s": copied["commits_per_s"],
        "live_commits_per_s": max(kept_up, default=None),
        "brokers_per_site": chosen.brokers,
        "cores": os.cpu_count(),
        "backlog": copied,
        "live": followed,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
