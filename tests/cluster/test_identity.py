"""Idempotent producers of Java and librdkafka, side by side on one partition, move there and back.

Both know the gate and nothing else, and none is started again. A planned move has drained the link, so the
other site knows their ids and sequences: they go on there, and a batch that is sent again is not written
again.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.programs import bootstrap, console
from tests.cluster.raw.talk import append, topic_ids
from twinlog.mirror import stretch
from twinlog.sites.ports import free_ports
from twinlog.wire import offsets
from twinlog.wire.appending import Appender
from twinlog.wire.batches import clear_position
from twinlog.wire.cluster import Cluster
from twinlog.wire.contents import contents

pytestmark = pytest.mark.cluster

LOG = logging.getLogger("tests.identity")
LOG.setLevel(logging.CRITICAL)  # librdkafka tells of every connection that is closed
WAIT_S = 120.0
ORDERS, CALM = ("orders", 0), ("calm", 0)
PREFIX = 7  # of what Java writes: PREFIX.NUMBER
FILE = """\
bus: identity
kafka:
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 3
sites:
  a: {{brokers: 1}}
  b: {{brokers: 1}}
topics:
  orders: {{partitions: 1}}
  calm: {{partitions: 1}}
users:
  app: {{produce: ["*"], consume: ["*"], groups: ["*"]}}
gate:
  address: 127.0.0.1:{ports[0]}
  tls_address: 127.0.0.1:{ports[1]}
  failover_after: 30s
"""


@dataclass
class Writer:
    """What became of one producer's records."""

    acknowledged: dict[str, int] = field(default_factory=dict)  # value → offset
    errors: list[str] = field(default_factory=list)

    def goes_on(self) -> Callable[[], bool]:
        """Asks whether more was acknowledged since now."""
        before = len(self.acknowledged)
        return lambda: len(self.acknowledged) > before + 20


@pytest.fixture(scope="module")
def moving(make_bus: MakeBus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bus]:
    """A bus whose link and gate are there."""
    ports = free_ports("127.0.0.1", 2, seed=str(tmp_path_factory.getbasetemp()), avoid=frozenset())
    bus = make_bus(FILE.format(ports=ports))
    bus.done("link", "up")
    bus.done("traffic", "up")
    yield bus
    bus.done("traffic", "down")
    bus.done("link", "down")


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {WAIT_S:g} s"
        pause.wait(0.1)


def settings(bus: Bus) -> dict[str, str]:
    """What `twinlog client --gate` prints, as a program reads it."""
    printed = bus.done("client", "app", "--gate", "--format", "librdkafka")
    lines = [line for line in printed.splitlines() if line and not line.startswith("#")]
    return {name.strip(): value.strip() for name, value in (line.split("=", 1) for line in lines)}


def delivered(writer: Writer, error: KafkaError | None, message: Message) -> None:
    value, offset = message.value(), message.offset()
    if error is not None or value is None or offset is None:
        writer.errors.append(str(error))
    else:
        writer.acknowledged[value.decode()] = offset


@contextmanager
def librdkafka(bus: Bus) -> Iterator[Writer]:
    """An idempotent producer of librdkafka at work."""
    writer, stop = Writer(), threading.Event()
    producer = Producer({**settings(bus), "enable.idempotence": True}, logger=LOG)

    def write() -> None:
        number = 0
        while not stop.wait(0.02):
            told: Callable[..., None] = lambda error, message: delivered(writer, error, message)  # noqa: E731
            producer.produce("orders", f"rd.{number}", on_delivery=told)
            producer.poll(0)
            number += 1
        if producer.flush(WAIT_S):
            writer.errors.append("not all was acknowledged")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        wait_for("librdkafka writes", writer.goes_on())
        yield writer
    finally:
        stop.set()
        thread.join(WAIT_S)


@contextmanager
def java(bus: Bus, directory: Path) -> Iterator[Writer]:
    """Kafka's own VerifiableProducer at work, which is idempotent by default."""
    file = directory / "java.properties"
    printed = bus.done("client", "app", "--gate", "--format", "java")
    file.write_text(printed + f"retries={2**31 - 1}\nenable.idempotence=true\n")
    command = [*console().java, "org.apache.kafka.tools.VerifiableProducer", "--topic", "orders"]
    command += ["--bootstrap-server", bootstrap(file), "--command-config", str(file)]
    command += ["--throughput", "50", "--value-prefix", str(PREFIX)]
    writer = Writer()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:

        def listen() -> None:
            for line in program.stdout or ():
                told = json.loads(line) if line.startswith("{") else {}
                if told.get("name") == "producer_send_success":
                    writer.acknowledged[told["value"]] = told["offset"]
                elif told.get("name") == "producer_send_error":
                    writer.errors.append(line)

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            wait_for("Java writes", writer.goes_on())
            yield writer
        finally:
            program.send_signal(signal.SIGTERM)
            program.wait(WAIT_S)
            thread.join(WAIT_S)


def log_at(bus: Bus, site: str, place: tuple[str, int]) -> dict[int, str]:
    """The values of a partition at a site, by offset."""
    with Cluster(bus.home().admin_access(site)) as cluster:
        end = offsets.end_offsets(cluster, [place])[place]
        found = stretch.records(cluster, topic_ids(cluster, place[0]), *place, 0, end)
    return {offset: (contents(record.content).value or b"").decode() for offset, record in found.items()}


def test_java_and_librdkafka_go_there_and_back_without_an_error(moving: Bus, tmp_path: Path) -> None:
    with librdkafka(moving) as first, java(moving, tmp_path) as second:
        for site in ("b", "a"):
            moving.done("switchover")
            assert moving.home().state().active == site
            for writer in (first, second):
                wait_for(f"both go on at {site}", writer.goes_on())
    assert first.errors == []
    assert second.errors == []
    acknowledged = {**first.acknowledged, **second.acknowledged}
    wait_for("both logs are equal", lambda: log_at(moving, "a", ORDERS) == log_at(moving, "b", ORDERS))
    log = log_at(moving, "a", ORDERS)
    assert [value for value, times in Counter(log.values()).items() if times > 1] == []
    assert {value: offset for offset, value in log.items() if value in acknowledged} == acknowledged
    for prefix in ("rd.", f"{PREFIX}."):
        numbers = [int(value.removeprefix(prefix)) for value in log.values() if value.startswith(prefix)]
        assert numbers == sorted(numbers)


def test_a_retried_batch_that_was_mirrored_is_not_written_twice(moving: Bus) -> None:
    producer, writer = Producer({**settings(moving), "enable.idempotence": True}, logger=LOG), Writer()

    def send(*values: str) -> None:
        for value in values:
            producer.produce(
                "calm", value, on_delivery=lambda error, message: delivered(writer, error, message)
            )
        assert producer.flush(WAIT_S) == 0

    for number in range(3):
        send(f"before-{number}", f"before-{number}-more")
    moving.done("switchover")
    home = moving.home()
    with Cluster(home.admin_access("a")) as old, Cluster(home.admin_access("b")) as new:
        batches = list(stretch.batches(old, topic_ids(old, "calm"), *CALM, 0, 6))
        sent = bytearray(batches[-1].view)  # as its producer sent it, whose answer may have been lost
        first = batches[-1].header.base_offset
        clear_position(memoryview(sent))
        appender = Appender(new.broker(new.leader(*CALM)), ids=topic_ids(new, "calm"))
        assert append(appender, "calm", bytes(sent)) == ("NONE", first)
        assert offsets.log_ends(new, [CALM]) == {CALM: 6}
    send("after")
    moving.done("switchover")
    send("back")
    assert writer.errors == []
    wait_for("both logs are equal", lambda: log_at(moving, "a", CALM) == log_at(moving, "b", CALM))
    assert list(log_at(moving, "a", CALM).values())[6:] == ["after", "back"]
    assert len(log_at(moving, "a", CALM)) == len(writer.acknowledged) == 8
