"""Load on a bus whose roles move: clients that know the gate and nothing else, and what they have seen.

For tests of moves. The bus is small, its mirror and its traffic manager run.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer

from tests.cluster.conftest import Bus, MakeBus
from twinlog.sites import processes
from twinlog.wire import offsets
from twinlog.wire.cluster import Cluster

LOG = logging.getLogger("tests.clients")
LOG.setLevel(logging.CRITICAL)  # librdkafka tells of every connection that is closed

WAIT_S = 90.0
PARTITIONS = 3
PLACES = [("orders", number) for number in range(PARTITIONS)]
FILE = """\
bus: moving
kafka:
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 3
sites:
  a: {{brokers: 1}}
  b: {{brokers: 1}}
topics:
  orders: {{partitions: 3}}
  calm: {{partitions: 1}}
users:
  app: {{produce: ["*"], consume: ["*"], groups: ["*"], transactions: ["*"]}}
  ledger: {{auth: mtls, produce: ["*"], consume: ["*"], groups: ["*"]}}
gate:
  address: 127.0.0.1:{gate}
  tls_address: 127.0.0.1:{tls}
  page: 127.0.0.1:{page}
  failover_after: 3s
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def at_work(make_bus: MakeBus, file: str) -> Iterator[Bus]:
    """A bus whose mirror and traffic manager run."""
    gate, tls, page = free_ports(3)
    bus = make_bus(file.format(gate=gate, tls=tls, page=page))
    bus.done("link", "up")
    bus.done("traffic", "up")
    yield bus
    bus.done("traffic", "down")
    bus.done("link", "down")


def client_settings(bus: Bus, user: str = "app") -> dict[str, str]:
    """What `twinlog client --gate` prints, as a program reads it."""
    printed = bus.done("client", user, "--gate", "--format", "librdkafka")
    lines = [line for line in printed.splitlines() if line and not line.startswith("#")]
    return {name.strip(): value.strip() for name, value in (line.split("=", 1) for line in lines)}


@dataclass
class Load:
    """An idempotent producer and a consumer group that know the gate and nothing else."""

    bus: Bus
    name: str
    every_s: float = 0.01
    acknowledged: dict[str, tuple[int, int]] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    read: list[tuple[int, int, str]] = field(default_factory=list)
    sent: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    def produce(self, settings: dict[str, str]) -> None:
        producer = Producer({**settings, "enable.idempotence": True}, logger=LOG)
        while not self.stopping.wait(self.every_s):
            value = f"{self.name}:{self.sent}"
            producer.produce("orders", key=f"{self.sent % 5}", value=value, on_delivery=self._delivered)
            self.sent += 1
            producer.poll(0)
        if producer.flush(WAIT_S):
            self.errors.append("not all was acknowledged")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        assert value is not None
        if error is not None:
            self.errors.append(str(error))
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self.acknowledged[value.decode()] = (partition, offset)
        self.times.append(time.monotonic())

    def consume(self, settings: dict[str, str]) -> None:
        more: dict[str, Any] = {"group.id": self.name, "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, **more, "enable.auto.commit": False}, logger=LOG)
        consumer.subscribe(["orders"])
        while not self.stopping.is_set():
            message = consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            self.read.append((partition, offset, value.decode()))
            consumer.commit(message, asynchronous=True)
        consumer.close()

    def goes_on(self) -> Callable[[], bool]:
        """Asks whether something was acknowledged and read since now."""
        acknowledged, read = len(self.acknowledged), len(self.read)
        return lambda: len(self.acknowledged) > acknowledged + 20 and len(self.read) > read + 20


@contextmanager
def load_on(bus: Bus, name: str, *, every_s: float = 0.01, **instead: str) -> Iterator[Load]:
    """Load by the printed settings, or others `instead` of some, with _ for dots."""
    own = {setting.replace("_", "."): value for setting, value in instead.items()}
    load, settings = Load(bus, name, every_s), {**client_settings(bus), **own}
    threads = [threading.Thread(target=one, args=(settings,)) for one in (load.produce, load.consume)]
    for thread in threads:
        thread.start()
    try:
        wait_for("the load has begun", load.goes_on())
        yield load
    finally:
        load.stopping.set()
        for thread in threads:
            thread.join(WAIT_S)


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {WAIT_S:g} s"
        pause.wait(0.1)


def active_site(bus: Bus) -> str:
    return bus.home().state().active


def other_site(site: str) -> str:
    return "b" if site == "a" else "a"


def kill_site(bus: Bus, site: str) -> None:
    """kill -9 of every node of a site."""
    found = list(processes.find(bus.home().layout(site).local_nodes).values())
    assert found
    processes.end(found, signal.SIGKILL)
    assert processes.wait(found, 10.0) == []


def records_at(bus: Bus, site: str) -> dict[tuple[int, int], str]:
    """Everything that a reader finds at one site."""
    settings = {**bus.home().user_access("app", site).librdkafka(), "group.id": "standby.test"}
    with Cluster(bus.home().admin_access(site)) as cluster:
        ends = offsets.last_stable_offsets(cluster, PLACES)
    consumer = Consumer(
        {**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False}, logger=LOG
    )
    consumer.subscribe(["orders"])
    found: dict[tuple[int, int], str] = {}
    reached = {partition: 0 for _, partition in PLACES}
    deadline = time.monotonic() + WAIT_S
    while any(reached[partition] < end for (_, partition), end in ends.items()):
        assert time.monotonic() < deadline, f"{reached} of {ends}"
        message = consumer.poll(0.5)
        if message is None or message.error() is not None:
            continue
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        found[partition, offset] = value.decode()
        reached[partition] = offset + 1
    consumer.close()
    return found


def wait_until_equal(bus: Bus) -> None:
    home = bus.home()
    with Cluster(home.admin_access("a")) as one, Cluster(home.admin_access("b")) as other:
        wait_for("both logs end alike", lambda: _ends(one) == _ends(other))


def _ends(cluster: Cluster) -> dict[tuple[str, int], int]:
    return offsets.log_ends(cluster, PLACES)


def check(bus: Bus, load: Load) -> None:
    """Everything acknowledged is there once, where it was acknowledged, at both sites."""
    assert load.errors == []
    assert len(load.acknowledged) == load.sent
    wait_until_equal(bus)
    here, there = records_at(bus, "a"), records_at(bus, "b")
    assert here == there
    mine = Counter(value for value in here.values() if value.startswith(f"{load.name}:"))
    assert mine == Counter(load.acknowledged.keys())
    assert all(here[place] == value for value, place in load.acknowledged.items())
