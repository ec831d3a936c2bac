"""How many transactions a second one orderer takes, with 1, 8 and 32 client streams, beside a real broker.

Run by `make bench-order`. Broker, orderer and clients share this machine. Transactions are signed before the
clock starts and every signature is checked; a transaction counts when its answer has come. Rounds of
the three take turns, and the median of each counts. In the end a second orderer is started, which cuts
all blocks again from the log, and both chains are compared. The last line on stdout is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from bench.broadcast import Stream, run
from bench.ground import ACTIVE, ground, interruptible, say, wait_for
from twinlog.ordering import callers, fleet, submission
from twinlog.ordering.comparison import compare
from twinlog.ordering.fleet import Fleet, Options, Recorded
from twinlog.ordering.statuses import SUCCESS
from twinlog.spec.model import KAFKA_VERSION

CHANNEL = "speed"
STREAMS = (1, 8, 32)
ENVELOPE_BYTES = 1070  # as the envelopes were that Fabric's orderer was measured with
TIMEOUT_S = 300.0
IN_FLIGHT = 2000
FABRIC = {1: 1799, 8: 3766, 32: 5448}  # Fabric 1.4.12 on two cores, beside a mock broker
KAFKA = {"message.max.bytes": "12MiB", "replica.fetch.max.bytes": "12MiB"}
USERS = {"orderer": {"auth": "mtls", "produce": ["*"], "consume": ["*"], "create": ["*"]}}
OPTIONS = Options(orderers=1, replication=1, min_insync=1, read="all", tls=False)


@contextmanager
def ordering() -> Iterator[tuple[Fleet, Recorded]]:
    """A site of one broker and an orderer, gone in the end."""
    with ground("order", 1, (ACTIVE,), kafka=KAFKA, users=USERS) as made:
        found = Fleet(made.home)
        recorded = found.prepare(OPTIONS)
        found.launch(recorded)
        yield found, recorded


def create_channel(found: Fleet, recorded: Recorded) -> None:
    """Have the channel, and wait until it takes transactions."""
    (target,) = found.targets(recorded).values()
    update = fleet.creation(found, CHANNEL)
    load = submission.Load(CHANNEL, 1)
    probe = submission.transaction(load, found.client(), 0, 0)

    def answers(envelope: bytes) -> bool:
        return callers.broadcast(target, [envelope], TIMEOUT_S)[0][0] == SUCCESS

    wait_for("the system channel", lambda: answers(update), TIMEOUT_S)
    wait_for("the channel", lambda: answers(probe), TIMEOUT_S)


def measure(found: Fleet, recorded: Recorded, streams: int, transactions: int, size: int) -> dict[str, float]:
    """One round: transactions a second, and what they cost the orderer."""
    (member,) = recorded.members
    process = found.background(member).find()
    assert process is not None
    each = transactions // streams
    load = submission.Load(CHANNEL, transactions, streams, size_bytes=size, run_id=f"bench-{streams}")
    signers = [found.client(number) for number in range(fleet.CLIENTS)]
    ready = [
        [submission.transaction(load, signers[number % len(signers)], number, index) for index in range(each)]
        for number in range(streams)
    ]
    opened = [Stream(member.address, sent, IN_FLIGHT) for sent in ready]
    before = process.cpu_times()
    seconds = run(opened, TIMEOUT_S)
    after = process.cpu_times()
    for stream in opened:
        stream.socket.close()
    cpu_s = after.user + after.system - before.user - before.system
    return {"tx_per_s": each * streams / seconds, "orderer_us_per_tx": cpu_s / (each * streams) * 1e6}


def data_bytes(found: Fleet) -> int:
    """How much data a transaction holds so that its envelope has the size that is wanted."""
    empty = submission.transaction(submission.Load(CHANNEL, 1, size_bytes=0), found.client(), 0, 0)
    return max(1, ENVELOPE_BYTES - len(empty))


def chains_are_equal(found: Fleet) -> bool:
    """Have a second orderer cut all blocks again, and compare."""
    recorded = found.prepare(Options(**{**vars(OPTIONS), "orderers": 2}))
    found.launch(recorded)
    targets = found.targets(recorded)
    client = found.client()

    def height(name: str) -> int:
        newest = callers.deliver(
            targets[name], callers.seek(CHANNEL, callers.span(None, None), client), TIMEOUT_S
        )
        return max((one.header.number for one in newest if not isinstance(one, int)), default=-1)

    first, second = targets
    wait_for("the second orderer", lambda: height(second) == height(first), TIMEOUT_S)
    chains = {
        name: callers.blocks(target, CHANNEL, callers.span(0, None), client, TIMEOUT_S)
        for name, target in targets.items()
    }
    return compare(CHANNEL, chains).is_equal


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=16_000, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rounds: dict[int, list[dict[str, float]]] = {streams: [] for streams in STREAMS}
    with interruptible(), ordering() as (found, recorded):
        create_channel(found, recorded)
        size = data_bytes(found)
        measure(found, recorded, 8, 2000, size)  # warms everything up
        for number in range(given.rounds):
            for streams in STREAMS:
                one = measure(found, recorded, streams, given.transactions, size)
                rounds[streams].append(one)
                say(
                    f"round {number}, {streams} streams: {one['tx_per_s']:.0f} transactions/s, "
                    f"{one['orderer_us_per_tx']:.0f} us of the orderer's CPU for each"
                )
        equal = chains_are_equal(found)
    told: dict[str, Any] = {
        "kafka": KAFKA_VERSION,
        "cores": psutil.cpu_count(),
        "load_average": os.getloadavg()[0],
        "envelope_bytes": ENVELOPE_BYTES,
        "chains_equal": equal,
    }
    for streams in STREAMS:
        told[f"tx_per_s_{streams}"] = round(statistics.median(one["tx_per_s"] for one in rounds[streams]))
        told[f"fabric_{streams}"] = FABRIC[streams]
        cost = statistics.median(one["orderer_us_per_tx"] for one in rounds[streams])
        told[f"orderer_us_per_tx_{streams}"] = round(cost)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
