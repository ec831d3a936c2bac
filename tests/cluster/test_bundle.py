"""A site on three machines: network namespaces that share nothing but a bridge, a bundle in each.

The first one has the bridge, the controller and a broker. All addresses exist inside these
namespaces only, so the program itself runs in one of them, as it would on a machine that reaches
the others. Needs root and iproute2; without them these tests fail.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cluster.conftest import Bus, MakeBus
from twinlog.durable import write_secret

pytestmark = pytest.mark.cluster

COMMAND_TIMEOUT_S = 30
UP_TIMEOUT_S = 300  # four JVMs without a class-data archive: half a minute, more on a busy machine
STOP_TIMEOUT_S = 60
HOSTS = ("10.77.0.1", "10.77.0.2", "10.77.0.3")
CONTROLLER, BROKERS = 901, (1, 2, 3)
RECORDS = 300

FILE = f"""\
bus: spread
kafka:
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 3
  broker.session.timeout.ms: 5s
  broker.heartbeat.interval.ms: 500ms
sites:
  a:
    remote: true
    listen: {HOSTS[0]}
    port: 9092
    memory: 256MiB
    brokers: [{{listen: {HOSTS[0]}}}, {{listen: {HOSTS[1]}}}, {{listen: {HOSTS[2]}}}]
topics:
  orders: {{partitions: 6}}
users:
  app: {{produce: [orders], consume: [orders], groups: [app-*]}}
"""

PRODUCE = """
import json, sys
from confluent_kafka import Producer
failed = []
producer = Producer({**json.load(open(sys.argv[1])), "acks": "all"})
for number in range(int(sys.argv[2])):
    producer.produce("orders", str(number).encode(), partition=number % 6,
                     on_delivery=lambda error, message: failed.append(str(error)) if error else None)
assert producer.flush(60) == 0 and not failed, failed
"""

CONSUME = """
import json, sys, time
from confluent_kafka import Consumer
wanted, end = int(sys.argv[2]), time.monotonic() + 60
own = {"group.id": sys.argv[3], "auto.offset.reset": "earliest"}
consumer = Consumer({**json.load(open(sys.argv[1])), **own})
consumer.subscribe(["orders"])
read = []
while len(read) < wanted and time.monotonic() < end:
    message = consumer.poll(1)
    if message is not None:
        assert message.error() is None, message.error()
        read.append(int(message.value()))
consumer.close()
print(json.dumps(sorted(read)))
"""


def ip(*words: str) -> None:
    """Run `ip`; a machine that does not have it, or does not let us, fails the test."""
    done = subprocess.run(
        ["ip", *words], capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


@dataclass
class Machine:
    """One network namespace and what was started in it."""

    namespace: str
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def run(self, *command: str, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a command on this machine to its end."""
        return subprocess.run(
            ["ip", "netns", "exec", self.namespace, *command],
            env=env,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=UP_TIMEOUT_S + COMMAND_TIMEOUT_S,
            check=False,
        )

    def start(self, node: int, bundle: Path, libs: Path) -> None:
        """Start a bundle; each step from `ip` to Java replaces the one before, so the pid is Java's."""
        with (bundle / "console.log").open("ab") as output:
            self.running[node] = subprocess.Popen(
                ["ip", "netns", "exec", self.namespace, str(bundle / "start.sh")],
                env={**os.environ, "TWINLOG_KAFKA_LIBS": str(libs)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def stop(self, node: int, how: signal.Signals = signal.SIGTERM) -> None:
        """End one node and wait for it."""
        process = self.running.pop(node)
        process.send_signal(how)
        process.wait(STOP_TIMEOUT_S)


@dataclass
class Spread:
    """A bus on three machines."""

    bus: Bus
    machines: tuple[Machine, ...]

    def bundle(self, node: int) -> Path:
        """Where the bundle of a node lies."""
        return self.bus.directory / f"bundle-a-{node}"

    def twinlog(self, *args: str) -> subprocess.CompletedProcess[str]:
        """The program on the first machine."""
        return self.machines[0].run(
            *self.bus.command(*args), env=self.bus.environment(), cwd=self.bus.directory
        )

    def python(self, machine: int, script: str, *args: str) -> str:
        """A client on one of the machines; returns what it printed."""
        secret = self.bus.directory / "client.json"
        write_secret(secret, json.dumps(self.bus.home().user_access("app", "a").librdkafka()))
        done = self.machines[machine].run(
            sys.executable, "-c", script, str(secret), *args, env=dict(os.environ), cwd=self.bus.directory
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def machines() -> Iterator[tuple[Machine, ...]]:
    """Three namespaces, joined by a bridge in the first; nothing is added to the machine's own network."""
    made = tuple(Machine(f"twinlog-{os.getpid()}-{number}") for number in (1, 2, 3))
    first = made[0].namespace
    existing: list[Machine] = []
    try:
        for machine in made:
            ip("netns", "add", machine.namespace)
            existing.append(machine)
            ip("-n", machine.namespace, "link", "set", "lo", "up")
        ip("-n", first, "link", "add", "bridge", "type", "bridge")
        ip("-n", first, "addr", "add", f"{HOSTS[0]}/24", "dev", "bridge")
        ip("-n", first, "link", "set", "bridge", "up")
        for number, machine in enumerate(made[1:], start=2):
            far = ("peer", "name", "eth0", "netns", machine.namespace)
            ip("-n", first, "link", "add", f"to{number}", "type", "veth", *far)
            ip("-n", first, "link", "set", f"to{number}", "master", "bridge", "up")
            ip("-n", machine.namespace, "addr", "add", f"{HOSTS[number - 1]}/24", "dev", "eth0")
            ip("-n", machine.namespace, "link", "set", "eth0", "up")
        yield made
    finally:
        for machine in existing:
            for node in list(machine.running):
                machine.stop(node, signal.SIGKILL)
            ip("netns", "delete", machine.namespace)


@pytest.fixture(scope="module")
def spread(make_bus: MakeBus, machines: tuple[Machine, ...]) -> Spread:
    """The site, started from its bundles only; jars are in one of them and shared."""
    bus = make_bus(FILE, up=False)
    made = Spread(bus, machines)
    for node in (CONTROLLER, *BROKERS):
        bus.done("bundle", "a", str(node), *(["--with-jars"] if node == CONTROLLER else []))
    libs = made.bundle(CONTROLLER) / "libs"
    machines[0].start(CONTROLLER, made.bundle(CONTROLLER), libs)
    for node, machine in zip(BROKERS, machines, strict=True):
        machine.start(node, made.bundle(node), libs)
    up = made.twinlog("up", "--timeout", str(UP_TIMEOUT_S))
    assert up.returncode == 0, up.stderr
    return made


@pytest.fixture(scope="module")
def written(spread: Spread) -> list[int]:
    """Records that the second machine wrote with acks=all, to leaders on all three."""
    spread.python(1, PRODUCE, str(RECORDS))
    return list(range(RECORDS))


def test_records_written_on_one_machine_with_acks_all_are_read_on_another(
    spread: Spread, written: list[int]
) -> None:
    assert json.loads(spread.python(2, CONSUME, str(RECORDS), "app-first")) == written


def test_every_machine_leads_a_part_and_status_says_where_the_nodes_are(spread: Spread) -> None:
    status = spread.twinlog("status", "-o", "json")
    assert status.returncode == 0, status.stderr
    found = {node["node"]: node for node in json.loads(status.stdout)["nodes"]}
    assert set(found) == {CONTROLLER, *BROKERS}
    assert all(node["state"] == "up" and node["note"] == "runs elsewhere" for node in found.values())
    assert all(found[broker]["leads"] > 0 for broker in BROKERS)
    assert [found[broker]["address"] for broker in BROKERS] == [
        f"{host}:{port}" for host, port in zip(HOSTS, (9092, 9096, 9100), strict=True)
    ]


def test_world_is_what_the_file_says_once_it_was_applied(spread: Spread) -> None:
    plan = spread.twinlog("plan")
    assert plan.returncode == 0, plan.stdout


def test_down_here_leaves_nodes_that_run_elsewhere_alone(spread: Spread) -> None:
    assert spread.bus.json("down")["stopped"] == 0
    assert all(process.poll() is None for machine in spread.machines for process in machine.running.values())


def test_secrets_of_a_bundle_stand_on_no_command_line(spread: Spread) -> None:
    command = Path(f"/proc/{spread.machines[1].running[2].pid}/cmdline").read_text().split("\0")
    assert command[1:] == ["@jvm.args", "kafka.Kafka", "server.properties", ""]


def test_restarted_broker_comes_back_on_its_own_disk(spread: Spread, written: list[int]) -> None:
    machine, bundle = spread.machines[1], spread.bundle(2)
    machine.stop(2)
    logs = sorted((bundle / "data").glob("orders-*/*.log"))
    sizes = [log.stat().st_size for log in logs]
    spread.bus.done("bundle", "a", "2")
    machine.start(2, bundle, spread.bundle(CONTROLLER) / "libs")
    up = spread.twinlog("up", "--timeout", str(UP_TIMEOUT_S))
    assert up.returncode == 0, up.stderr
    assert sum(sizes) > 0
    assert [log.stat().st_size for log in logs] == sizes
    assert json.loads(spread.python(1, CONSUME, str(RECORDS), "app-second")) == written
