"""The ordering service on a real site of four brokers: equal chains, losses of brokers and orderers.

The first test is short. The drills take minutes: a hundred thousand transactions, one and two brokers away,
brokers and orderers killed at random under load, and the loss of a whole site.
"""

from __future__ import annotations

import json
import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cluster.conftest import Bus, MakeBus
from twinlog.ordering import callers, messages
from twinlog.ordering.fleet import Fleet, Recorded
from twinlog.ordering.proto import common_pb2
from twinlog.sites import processes
from twinlog.sites.layout import Node
from twinlog.wire.deadlines import Deadline

pytestmark = pytest.mark.cluster

ONE_SITE = """\
bus: ordered
kafka:
  message.max.bytes: 3MiB
  replica.fetch.max.bytes: 3MiB
  offsets.topic.num.partitions: 1
sites:
  a: {brokers: 4, memory: 256MB, controller_memory: 128MB}
users:
  orderer: {auth: mtls, produce: ["*"], consume: ["*"], create: ["*"]}
"""
TWO_SITES = """\
bus: ordered
kafka:
  message.max.bytes: 3MiB
  replica.fetch.max.bytes: 3MiB
  offsets.topic.num.partitions: 1
sites:
  a: {brokers: 4, memory: 256MB, controller_memory: 128MB}
  b: {brokers: 4, memory: 256MB, controller_memory: 128MB}
link: {include: ["*"]}
users:
  orderer: {auth: mtls, produce: ["*"], consume: ["*"], create: ["*"]}
"""
SIZES = ("--absolute-max-bytes", str(2**20))
SOON_S = 90.0
SUCCESS, UNAVAILABLE = 200, 503


def until(condition: Callable[[], bool], what: str, timeout_s: float = SOON_S) -> None:
    """Wait for a condition."""
    deadline, pause = Deadline(timeout_s), threading.Event()
    while not condition():
        assert not deadline.passed, what
        pause.wait(0.1)


class Service:
    """The orderers of a bus, as a test uses them."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus

    @property
    def fleet(self) -> Fleet:
        return Fleet(self.bus.home())

    @property
    def recorded(self) -> Recorded:
        return self.fleet.recorded()

    def send(self, orderer: str, channel: str, data: bytes) -> int:
        """Send one transaction; the status."""
        fleet = self.fleet
        raw = messages.signed(common_pb2.ENDORSER_TRANSACTION, channel, data, fleet.client())
        answers = callers.broadcast(fleet.targets(self.recorded)[orderer], [raw], SOON_S)
        return answers[0][0]

    def contents(self, orderer: str, channel: str, last: int | None = None) -> list[list[bytes]]:
        """The data of the transactions of each block but the first."""
        fleet = self.fleet
        wanted = callers.span(1, last, waits=last is not None)
        found = callers.blocks(fleet.targets(self.recorded)[orderer], channel, wanted, fleet.client(), SOON_S)
        return [[messages.read(raw).data for raw in block.data.data] for block in found]

    def process(self, orderer: str) -> psutil.Process | None:
        """The process of an orderer, if it runs."""
        fleet = self.fleet
        return next(one.find() for one in fleet.backgrounds(self.recorded) if one.name == orderer)

    def submit(self, channel: str, *args: str, history: Path, exit_code: int = 0) -> Any:
        """Run `order submit` to its end."""
        return self.bus.json(
            "order", "submit", channel, *args, "--history", str(history), exit_code=exit_code
        )

    def verify(self, *args: str) -> Any:
        """Compare all chains when every orderer has the same height; what was found."""

        def is_level() -> bool:
            rows = self.bus.json("order", "verify")
            return all(len(set(row["heights"].values())) == 1 for row in rows)

        until(is_level, "the orderers do not come to the same height")
        return self.bus.json("order", "verify", *args)


def brokers(bus: Bus, site: str = "a") -> tuple[Node, ...]:
    return tuple(bus.home().layout(site).brokers)


def kill(*nodes: Node) -> None:
    """End nodes as crashes would."""
    found = list(processes.find(nodes).values())
    for process in found:
        process.kill()
    psutil.wait_procs(found, SOON_S)


@pytest.fixture(scope="module")
def bus(make_bus: MakeBus) -> Iterator[Bus]:
    made = make_bus(ONE_SITE)
    made.done("order", "up", *SIZES, "--batch-timeout", "1s", "--max-messages", "3")
    yield made
    made.done("order", "down")


@pytest.fixture(scope="module")
def service(bus: Bus) -> Service:
    return Service(bus)


def test_three_orderers_on_four_brokers_cut_the_same_blocks(service: Service, tmp_path: Path) -> None:
    service.bus.done("order", "channel", "seed")
    assert [service.send("orderer-0", "seed", b"foo"), service.send("orderer-2", "seed", b"baz")] == [
        SUCCESS
    ] * 2
    assert service.send("orderer-0", "seed", b"bar") == SUCCESS
    assert service.contents("orderer-1", "seed", last=1) == [[b"foo", b"baz", b"bar"]]
    history = tmp_path / "history"
    told = service.submit("seed", "--transactions", "300", "--clients", "8", history=history)
    assert (told["done"], told["unknown"], told["not_done"]) == (300, 0, 0)
    (row,) = service.verify("seed", "--history", str(history))
    assert row["is_equal"], row["faults"]
    assert row["transactions"] == 1 + 3 + 300


@pytest.mark.drill
def test_hundred_thousand_transactions_of_eight_clients_are_each_in_one_block_everywhere(
    service: Service, tmp_path: Path
) -> None:
    service.bus.done("order", "channel", "many")
    history = tmp_path / "history"
    told = service.submit(
        "many", "--transactions", "100000", "--clients", "8", "--size", "200", history=history
    )
    assert told["done"] == 100_000
    (row,) = service.verify("many", "--history", str(history))
    assert row["is_equal"], row["faults"]


@pytest.mark.drill
def test_one_broker_away_changes_nothing_and_two_stop_writes_only(service: Service) -> None:
    bus = service.bus
    bus.done("order", "channel", "losses")
    assert service.send("orderer-0", "losses", b"before") == SUCCESS
    (partition,) = bus.json("topic", "describe", "losses")["partitions"]
    first, second = [node for node in brokers(bus) if node.id in partition["replicas"]][:2]
    kill(first)
    until(lambda: service.send("orderer-1", "losses", b"one away") == SUCCESS, "no write with a broker away")
    bus.done("order", "channel", "made-meanwhile")
    assert service.send("orderer-2", "made-meanwhile", b"works") == SUCCESS
    kill(second)
    until(
        lambda: service.send("orderer-0", "losses", b"two away") == UNAVAILABLE, "a write under M was taken"
    )
    flat = [data for block in service.contents("orderer-2", "losses") for data in block]
    assert b"before" in flat and b"one away" in flat
    bus.done("up")
    until(lambda: service.send("orderer-0", "losses", b"back") == SUCCESS, "writes do not return", 120.0)
    assert all(row["is_equal"] for row in service.verify())


@pytest.mark.drill
def test_nothing_acknowledged_is_lost_while_brokers_and_orderers_die_at_random(
    service: Service, tmp_path: Path
) -> None:
    bus = service.bus
    bus.done("order", "channel", "storm")
    history = tmp_path / "history"
    command = bus.command(
        *("order", "submit", "storm", "--transactions", "45000", "--clients", "8", "--rate", "150"),
        *("--in-flight", "50", "--history", str(history), "-o", "json"),
    )
    dice = random.Random(7)
    with subprocess.Popen(
        command, cwd=bus.directory, env=bus.environment(), stdout=subprocess.PIPE, text=True
    ) as sender:
        pause = threading.Event()
        while sender.poll() is None:
            if dice.random() < 0.5:
                kill(dice.choice(brokers(bus)))
                pause.wait(dice.uniform(0, 5))
                bus.done("up")
            else:
                victim = service.process(f"orderer-{dice.randrange(3)}")
                if victim is not None:
                    victim.kill()
                    victim.wait(SOON_S)
                pause.wait(dice.uniform(0, 5))
                bus.done("order", "up", *SIZES)
            pause.wait(dice.uniform(0, 10))
        assert sender.stdout is not None
        told = json.loads(sender.stdout.read())
    assert told["done"] > 0
    bus.done("up")
    bus.done("order", "up", *SIZES)
    (row,) = service.verify("storm", "--history", str(history))
    assert row["is_equal"], (row["faults"], told)


@pytest.mark.drill
def test_orderers_at_the_other_site_continue_the_same_chain_after_the_loss_of_a_site(
    make_bus: MakeBus, tmp_path: Path
) -> None:
    bus = make_bus(TWO_SITES)
    service = Service(bus)
    bus.done("link", "up")
    bus.done("order", "up", *SIZES, "--batch-timeout", "500ms")
    bus.done("order", "channel", "twins")
    history = tmp_path / "history"
    command = bus.command(
        *("order", "submit", "twins", "--transactions", "3000", "--clients", "4", "--rate", "200"),
        *("--timeout", "10", "--history", str(history), "-o", "json"),
    )
    with subprocess.Popen(
        command, cwd=bus.directory, env=bus.environment(), stdout=subprocess.PIPE, text=True
    ) as sender:
        until(lambda: len(_blocks(service, "orderer-0", "twins")) > 3, "no blocks")
        kill(*bus.home().layout("a").local_nodes)
        sender.wait(SOON_S)
    before = _blocks(service, "orderer-0", "twins")
    bus.done("order", "down")
    bus.done("promote", "--yes")
    bus.done("order", "up", *SIZES, "--site", "b")
    until(lambda: service.send("orderer-1", "twins", b"after") == SUCCESS, "no write at the other site")
    (row,) = service.verify("twins")
    assert row["is_equal"], row["faults"]
    after = _blocks(service, "orderer-0", "twins")
    assert len(after) > len(before)
    assert [block.header for block in after[: len(before)]] == [block.header for block in before]


def _blocks(service: Service, orderer: str, channel: str) -> list[common_pb2.Block]:
    fleet = service.fleet
    target = fleet.targets(service.recorded)[orderer]
    return list(callers.blocks(target, channel, callers.span(0, None), fleet.client(), SOON_S))
