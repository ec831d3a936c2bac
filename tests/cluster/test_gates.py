"""Gates on real sites: a second one beside the manager's, the port for certificates, and who comes by them.

One bus of two small sites serves all tests here, in the order in which they stand.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from dnslib import DNSRecord
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import GroupAuthorizationFailedError, KafkaTimeoutError, TopicAuthorizationFailedError

from tests.cluster import programs
from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.moving import (
    FILE,
    LOG,
    WAIT_S,
    active_site,
    at_work,
    check,
    client_settings,
    free_ports,
    kill_site,
    load_on,
    other_site,
    wait_for,
)
from tests.cluster.test_clients import kafka_python_settings
from twinlog.traffic import manager
from twinlog.wire import offsets
from twinlog.wire.addresses import HostPort
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

NAME, TTL_S = "bus.example.com", 2  # answered with the active site's brokers
HOSTS = {"a": "127.0.0.1", "b": "127.0.0.2"}  # two, or answers would be alike
KCAT_RECORDS = 10
NEWCOMERS = 4  # clients; each begins with one gate or the other, as chance has it
GIVE_UP_MS = 15_000  # more than the request timeout of printed files, and than a failover takes


@pytest.fixture(scope="module")
def gated(make_bus: MakeBus) -> Iterator[Bus]:
    """Two sites of one broker each, on hosts of their own, and a name that follows the active one."""
    dns = f"  dns: {{{{listen: '127.0.0.1:{free_ports(1)[0]}', name: {NAME}, ttl: {TTL_S}s}}}}\n"
    site = "  b: {{brokers: 1}}\n"
    assert site in FILE
    elsewhere = FILE.replace(site, f"  b: {{{{brokers: 1, listen: {HOSTS['b']}}}}}\n")
    with at_work(make_bus, elsewhere + dns) as bus:
        yield bus


@contextmanager
def second_gate(bus: Bus) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`twinlog gate`, as on another machine: the same bus, other addresses; and the address for passwords."""
    gate = bus.home().bus.gate
    assert gate.dns is not None
    own = (gate.address, gate.tls_address, gate.page, gate.dns.listen)
    text, ports = bus.file.read_text(), free_ports(len(own))
    for old, port in zip(own, ports, strict=True):
        assert old is not None
        text = text.replace(old, f"127.0.0.1:{port}")
    file = bus.directory / "second.yaml"
    file.write_text(text)
    command = bus.command("gate", "-f", str(file))
    process = subprocess.Popen(
        command, cwd=bus.directory, env=bus.environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"CLIENT 127.0.0.1:{ports[0]}\n"
        yield process, f"127.0.0.1:{ports[0]}"
    finally:
        process.kill()
        process.wait()


def answered(bus: Bus, *, tcp: bool = False) -> tuple[set[str], set[int]]:
    """The addresses that the name has now, and for how many seconds."""
    dns = bus.home().bus.gate.dns
    assert dns is not None
    place = HostPort.parse(dns.listen)
    asked = DNSRecord.question(NAME, "A").send(place.host, place.port, tcp=tcp, timeout=WAIT_S)
    records = DNSRecord.parse(asked).rr
    return {str(one.rdata) for one in records}, {one.ttl for one in records}


def written(settings: dict[str, str], value: str) -> None:
    """Write a record by these settings, or fail."""
    refused: list[object] = []
    producer = Producer({**settings, "message.timeout.ms": int(WAIT_S * 1000)}, logger=LOG)
    producer.produce("calm", value, on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(WAIT_S) == 0
    assert refused == [None]


def test_either_gate_leads_clients_to_the_active_when_the_other_is_killed(gated: Bus) -> None:
    first = gated.home().bus.gate.address
    own = active_site(gated)
    with second_gate(gated) as (process, second):
        for gate in (first, second):
            written({**client_settings(gated), "bootstrap.servers": gate}, f"by {gate}")
        with load_on(gated, "two-gates", bootstrap_servers=f"{first},{second}") as load:
            traffic = manager.background(gated.home()).find()
            assert traffic is not None
            os.kill(traffic.pid, signal.SIGKILL)  # its gate goes with it
            gated.done("switchover")
            assert active_site(gated) == other_site(own)
            wait_for("clients have found the way by the second gate", load.goes_on())
            gated.done("traffic", "up")
            process.send_signal(signal.SIGKILL)
            process.wait()
            gated.done("switchover")
            wait_for("clients have found the way back by the first one", load.goes_on())
    assert active_site(gated) == own
    check(gated, load)


def test_a_gate_that_hangs_keeps_nobody_from_going_on_by_the_other(gated: Bus) -> None:
    own, first = active_site(gated), gated.home().bus.gate.address
    with second_gate(gated) as (process, second):
        both = {**client_settings(gated), "bootstrap.servers": f"{second},{first}"}
        with load_on(gated, "gate-hangs", bootstrap_servers=both["bootstrap.servers"]) as load:
            process.send_signal(signal.SIGSTOP)  # the kernel goes on accepting for it
            gated.done("switchover")
            assert active_site(gated) == other_site(own)
            wait_for("clients have found the way by the first gate", load.goes_on())
            for number in range(NEWCOMERS):
                written(both, f"new-{number}")
            gated.done("switchover")
            wait_for("clients have found the way back", load.goes_on())
    assert active_site(gated) == own
    check(gated, load)


def test_the_name_of_the_bus_has_the_address_of_the_active_site_after_every_move(gated: Bus) -> None:
    for _ in HOSTS:
        active = {HOSTS[active_site(gated)]}
        assert answered(gated) == answered(gated, tcp=True) == (active, {TTL_S})
        gated.done("switchover")
        wait_for("the name has moved", lambda: answered(gated)[0] == {HOSTS[active_site(gated)]})
        assert answered(gated)[0] != active


def test_a_user_with_a_certificate_passes_by_the_other_port_and_reads_its_own_writes(gated: Bus) -> None:
    settings = client_settings(gated, "ledger")
    assert settings["bootstrap.servers"] == gated.home().bus.gate.tls_address
    written(settings, "by certificate")
    consumer = Consumer({**settings, "group.id": "ledger", "auto.offset.reset": "earliest"}, logger=LOG)
    consumer.subscribe(["calm"])
    read: list[bytes | None] = []

    def has_come() -> bool:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            read.append(message.value())
        return b"by certificate" in read

    wait_for("it is read", has_come)
    consumer.close()


def test_kcat_reads_on_at_the_other_site_and_writes_there_when_it_is_called_again(
    gated: Bus, tmp_path: Path
) -> None:
    """On the library that its file asks for, and with -E: it ends when it has lost every broker otherwise."""
    kcat = programs.Kcat(programs.kcat(), programs.newer_librdkafka())
    file = tmp_path / "kcat"
    file.write_text(gated.done("client", "app", "--gate", "--format", "kcat"))
    batches = [[f"kcat-{turn}-{one}".encode() for one in range(KCAT_RECORDS)] for turn in range(2)]
    lines: list[bytes] = []

    def enough(read: Sequence[bytes]) -> bool:
        lines[:] = read
        return set(batches[0] + batches[1]) <= set(read)

    in_a_group = ["-E", "-q", "-u", "-X", "auto.offset.reset=earliest", "-G", "kcat", "calm"]
    reader = threading.Thread(target=lambda: kcat.read_until(enough, file, *in_a_group))
    reader.start()
    kcat.run(file, "-P", "-t", "calm", text=b"\n".join(batches[0]))
    wait_for("it reads", lambda: set(batches[0]) <= set(lines))
    gated.done("switchover")
    kcat.run(file, "-P", "-t", "calm", text=b"\n".join(batches[1]))
    reader.join(WAIT_S)
    assert not reader.is_alive()
    # What it had not committed comes again; nothing is passed over.
    assert list(dict.fromkeys(line for line in lines if line.startswith(b"kcat-"))) == batches[0] + batches[1]


def test_kafka_python_is_refused_behind_a_switchover_and_goes_on_when_it_is_opened_again(gated: Bus) -> None:
    """What `limits` says: the old site, which it never leaves, is the standby now."""
    writing = kafka_python_settings(client_settings(gated), KafkaProducer.DEFAULT_CONFIG)
    reading = in_group(gated, "python")
    with closing(KafkaProducer(**writing)) as producer, closing(KafkaConsumer("calm", **reading)) as consumer:
        assert producer.send("calm", b"python-0").get(timeout=WAIT_S)
        wait_for("it is read", lambda: b"python-0" in polled(consumer))
        consumer.commit()
        gated.done("switchover")
        with pytest.raises(TopicAuthorizationFailedError):
            producer.send("calm", b"refused").get(timeout=WAIT_S)
        with pytest.raises(GroupAuthorizationFailedError):
            wait_for("it is refused", lambda: bool(polled(consumer)))
    with closing(KafkaProducer(**writing)) as producer, closing(KafkaConsumer("calm", **reading)) as consumer:
        assert producer.send("calm", b"python-1").get(timeout=WAIT_S)
        read: list[bytes] = []

        def has_come() -> bool:
            read.extend(polled(consumer))
            return bool(read)

        wait_for("it is read", has_come)
    assert read == [b"python-1"]


def in_group(bus: Bus, name: str) -> dict[str, object]:
    """Settings of a member of a group, for kafka-python."""
    own = {"group_id": name, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return kafka_python_settings(client_settings(bus), KafkaConsumer.DEFAULT_CONFIG) | own


def polled(consumer: KafkaConsumer) -> list[bytes]:
    return [record.value for records in consumer.poll(500).values() for record in records]


def test_behind_a_failover_assigned_consumers_can_seek_and_kafka_python_has_to_be_started_again(
    gated: Bus,
) -> None:
    """What `limits` says of those that cannot move by themselves, and the way on."""
    lost, settings = active_site(gated), client_settings(gated)
    by_kafka_python = kafka_python_settings(settings, KafkaProducer.DEFAULT_CONFIG)
    old = KafkaProducer(**by_kafka_python, delivery_timeout_ms=GIVE_UP_MS)
    assert old.send("calm", b"before").get(timeout=WAIT_S)
    own = {"group.id": "assigned", "auto.offset.reset": "error", "enable.auto.commit": False}
    consumer = Consumer({**settings, **own}, logger=LOG)
    read = Assigned(consumer)
    member = KafkaConsumer("calm", **in_group(gated, "left"))
    wait_for("a member reads", lambda: b"before" in polled(member))
    home = gated.home()
    with Cluster(home.admin_access("a")) as one, Cluster(home.admin_access("b")) as other:
        wait_for("the standby has all", lambda: end_of_calm(one) == end_of_calm(other))
        wait_for("all is read", lambda: read.goes_on() and read.next == end_of_calm(one))
    kill_site(gated, lost)
    gated.done("promote")
    stuck = old.send("calm", b"stuck")
    new = KafkaProducer(**by_kafka_python)
    after = [f"after-{number}".encode() for number in range(KCAT_RECORDS)]
    for value in after:
        assert new.send("calm", value).get(timeout=WAIT_S)
    wait_for("the next records are read", lambda: read.goes_on() and after[-1] in read.values)
    assert polled(member) == []  # nobody tells it that there is more
    with pytest.raises(KafkaTimeoutError):  # it has asked the lost site's brokers, and nobody else
        stuck.get(timeout=WAIT_S)
    assert [value for value in read.values if value.startswith(b"after-")] == after
    assert read.values.count(b"before") == 1
    consumer.close()
    member.close(autocommit=False)
    new.close()
    old.close(timeout=WAIT_S)


def end_of_calm(cluster: Cluster) -> int:
    return offsets.log_ends(cluster, [("calm", 0)])["calm", 0]


class Assigned:
    """A consumer without a group that keeps its own place, and goes back there when it is sent elsewhere."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.next = 0
        self.values: list[bytes] = []
        self._seek()

    def goes_on(self) -> bool:
        """Take what is there; true, to be asked in conditions."""
        message = self._consumer.poll(0.5)
        if message is not None and message.error() is None:
            offset, value = message.offset(), message.value()
            assert offset == self.next
            assert value is not None
            self.next += 1
            self.values.append(value)
        elif message is not None and message.error().code() == KafkaError._AUTO_OFFSET_RESET:
            self._seek()
        return True

    def _seek(self) -> None:
        self._consumer.assign([TopicPartition("calm", 0, self.next)])
