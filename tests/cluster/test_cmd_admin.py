"""`twinlog config`, `user`, `transactions` and `producers` on real brokers."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record.default_records import DefaultRecordBatchBuilder

from tests.cluster.conftest import UP_TIMEOUT_S, Bus, Site
from twinlog.wire import codes
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

FLUSH_S = 60


def test_settings_are_shown_with_their_source_changed_and_taken_back(bus: Bus, site: Site) -> None:
    broker = str(site.bus.home().layout("a").brokers[0].id)
    (row,) = bus.json("config", "describe", "broker", broker, "num.io.threads")
    assert row["value"].isdigit() and not row["needs_restart"] and "threads" in row["documentation"]
    (static,) = bus.json("config", "describe", "broker", broker, "log.dirs")
    assert static["needs_restart"] and static["source"] == "file of the broker"
    assert f"broker-{broker}" in static["value"]
    late = bus.run("config", "set", "broker", broker, "log.dirs=elsewhere")
    assert late.returncode == 2 and "read by a broker when it starts" in late.stderr
    changed = bus.run("config", "set", "topic", "big", "max.compaction.lag.ms=7200000")
    assert changed.returncode == 0 and "the file does not say this of topic 'big'" in changed.stderr
    given = {row["setting"]: row for row in bus.json("config", "describe", "topic", "big", "--given")}
    assert (given["max.compaction.lag.ms"]["value"], given["max.compaction.lag.ms"]["source"]) == (
        "7200000",
        "topic",
    )
    bus.done("config", "unset", "topic", "big", "max.compaction.lag.ms")
    assert "max.compaction.lag.ms" not in bus.done("config", "describe", "topic", "big", "--given")
    wrong = bus.run("config", "set", "topic", "big", "no.such.setting=1")
    assert wrong.returncode == 1 and "INVALID_CONFIG" in wrong.stderr
    missing = bus.run("config", "describe", "broker", "999999")
    assert missing.returncode == 2 and "no live broker" in missing.stderr


@pytest.mark.parametrize(
    ("whose", "source"), [("one", "broker, at run time"), ("all", "all brokers, at run time")]
)
def test_a_setting_that_a_running_broker_takes_names_its_source_until_it_is_taken_back(
    whose: str, source: str, bus: Bus, site: Site
) -> None:
    broker = str(site.bus.home().layout("a").brokers[0].id)
    owner = broker if whose == "one" else "all"

    def described() -> dict[str, Any]:
        (row,) = bus.json("config", "describe", "broker", broker, "num.io.threads")
        return dict(row)

    before = described()
    wanted = str(int(before["value"]) + 1)
    bus.done("config", "set", "broker", owner, f"num.io.threads={wanted}")
    try:
        wait_for(lambda: described()["value"] == wanted)
        changed = described()
        assert (changed["source"], changed["needs_restart"]) == (source, False)
        given = bus.json("config", "describe", "broker", owner, "--given")
        assert wanted in [row["value"] for row in given if row["setting"] == "num.io.threads"]
    finally:
        bus.done("config", "unset", "broker", owner, "num.io.threads")
    wait_for(lambda: described() == before)


def wait_for(condition: Callable[[], bool]) -> None:
    """A broker hears of a change a moment after it was made."""
    deadline = time.monotonic() + FLUSH_S
    while not condition():
        assert time.monotonic() < deadline


def test_a_logger_changes_its_level_while_the_broker_runs(bus: Bus, site: Site) -> None:
    broker = str(site.bus.home().layout("a").brokers[0].id)
    logger = "kafka.authorizer.logger"
    (before,) = bus.json("config", "describe", "logger", broker, logger)
    bus.done("config", "set", "logger", broker, f"{logger}=WARN")
    assert bus.json("config", "describe", "logger", broker, logger)[0]["value"] == "WARN"
    bus.done("config", "set", "logger", broker, f"{logger}={before['value']}")


def test_a_user_is_made_given_rights_and_forgotten_by_the_next_apply(bus: Bus) -> None:
    name = f"u{uuid.uuid4().hex[:8]}"
    made = bus.run("user", "add", name, "--consume", "orders", "--group", f"{name}-*")
    assert made.returncode == 0 and f'{name}: {{consume: [orders], groups: ["{name}-*"]}}' in made.stderr
    rules = {(row["site"], row["operation"], row["name"]) for row in bus.json("user", "rights", name)}
    assert {("a", "read", "orders"), ("b", "read", "orders"), ("a", "read", f"{name}-*")} <= rules
    assert f"User:{name}" in bus.done("user", "rights", "--topic", "orders")
    bus.done("user", "grant", name, "--produce", "big")
    bus.done("user", "revoke", name, "--produce", "big", "--consume", "orders")
    assert {row["resource"] for row in bus.json("user", "rights", name)} == {"group"}
    assert f"remove the password of {name}" in bus.done("plan", exit_code=3)
    bus.done("apply", "--yes")
    assert bus.json("user", "rights", name) == [] or {
        row["principal"] for row in bus.json("user", "rights", name)
    } == {"User:*"}


def test_a_quota_slows_a_user_down_and_is_shown(bus: Bus) -> None:
    set_now = bus.json("user", "quota", "old", "--produce", "20kB/s", "--site", "a")
    assert set_now == [
        {"site": "a", "user": "old", "client_id": "any", "limits": {"producer_byte_rate": 20000.0}}
    ]
    # A burst of ten seconds' worth passes; what is above it has to wait. Several requests: a broker
    # answers the first one that is too much, and holds the connection up after it.
    lines = "\n".join("x" * 1000 for _ in range(300))
    command = bus.command(
        "produce", "orders", "--user", "old", "--partition", "0", "--rate", "150", "-o", "json"
    )
    ended = subprocess.run(
        command,
        input=lines,
        cwd=bus.directory,
        env=bus.environment(),
        capture_output=True,
        text=True,
        timeout=UP_TIMEOUT_S,
        check=False,
    )
    bus.done("user", "quota", "old", "--unset", "produce", "--site", "a")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["seconds"] > 3.5  # two seconds at its own rate
    assert bus.json("user", "quota", "old", "--site", "a") == []


def test_quotas_of_client_ids_and_defaults_are_set_and_taken(bus: Bus) -> None:
    for owner, shown in (
        (["--client-id", "importer"], ("any", "importer")),
        (["shop", "--client-id", "importer"], ("shop", "importer")),
        (["--default-user"], ("(default)", "any")),
        (["--default-client-id"], ("any", "(default)")),
    ):
        (row,) = bus.json("user", "quota", *owner, "--request", "150", "--site", "a")
        assert ((row["user"], row["client_id"]), row["limits"]) == (shown, {"request_percentage": 150.0})
        bus.done("user", "quota", *owner, "--unset", "request", "--site", "a")


class Caller(NamedTuple):
    """A client, as quotas tell clients apart."""

    user: str
    client_id: str


BURST = 300  # records of 1 kB: half as much again as a quota of 20 kB/s lets pass at once
# Whose quota, who is held up by it, and who is not.
QUOTAS: dict[str, tuple[list[str], Caller, Caller | None]] = {
    "user": (["app"], Caller("app", "any"), Caller("ledger", "any")),
    "client id": (["--client-id", "importer"], Caller("app", "importer"), Caller("app", "other")),
    "both": (["app", "--client-id", "importer"], Caller("app", "importer"), Caller("app", "other")),
    "default user": (["--default-user"], Caller("app", "any"), None),
    "default client id": (["--default-client-id"], Caller("app", "any"), None),
}


def writing(site: Site, caller: Caller) -> float:
    """Write a burst; returns for how many seconds the broker said that it holds the client up."""
    told: list[float] = []
    settings = {
        **site.access(caller.user).librdkafka(),
        "client.id": caller.client_id,
        "linger.ms": 200,  # few requests: the broker stops to listen after the one that is too much
        "throttle_cb": lambda event: told.append(event.throttle_time),
    }
    producer = Producer(settings)
    for _ in range(BURST):
        producer.produce("orders", b"x" * 1000, partition=0)
    assert producer.flush(FLUSH_S) == 0
    return max(told, default=0.0)


def reading(site: Site, caller: Caller) -> float:
    """Read the last burst; returns for how many seconds the broker said that it holds the client up."""
    told: list[float] = []
    settings = {
        **site.access(caller.user).librdkafka(),
        "client.id": caller.client_id,
        "group.id": f"{caller.user}-quotas",
        "enable.auto.commit": False,
        "throttle_cb": lambda event: told.append(event.throttle_time),
    }
    consumer = Consumer(settings)
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition("orders", 0), FLUSH_S)
        consumer.assign([TopicPartition("orders", 0, end - BURST)])
        count, deadline = 0, time.monotonic() + FLUSH_S
        while count < BURST and not told:
            assert time.monotonic() < deadline, f"{count} of {BURST} records"
            message = consumer.poll(1.0)
            count += message is not None and message.error() is None
    finally:
        consumer.close()
    return max(told, default=0.0)


@pytest.mark.parametrize("limit", ["produce", "consume"])
@pytest.mark.parametrize("whose", QUOTAS)
def test_a_quota_holds_up_those_whose_it_is_and_no_others(
    whose: str, limit: str, bus: Bus, site: Site
) -> None:
    owner, slow, spared = QUOTAS[whose]
    burst: Callable[[Site, Caller], float] = writing if limit == "produce" else reading
    assert writing(site, Caller("shop", "before")) == 0.0  # there is enough to read, and nobody is held up
    bus.done("user", "quota", *owner, f"--{limit}", "20kB/s", "--site", "a")
    try:
        deadline = time.monotonic() + FLUSH_S
        while not burst(site, slow):  # each broker hears of it a little later
            assert time.monotonic() < deadline, f"{slow} is not held up"
        if spared is not None:
            assert burst(site, spared) == 0.0
    finally:
        bus.done("user", "quota", *owner, "--unset", limit, "--site", "a")


def test_an_open_transaction_is_listed_described_and_aborted(bus: Bus, site: Site) -> None:
    name = f"shop-{uuid.uuid4().hex[:8]}"
    settings = {
        **site.access("shop").librdkafka(),
        "transactional.id": name,
        "transaction.timeout.ms": 600_000,
    }
    producer = Producer(settings)
    producer.init_transactions(FLUSH_S)
    producer.begin_transaction()
    producer.produce("orders", b"never seen", partition=1)
    assert producer.flush(FLUSH_S) == 0
    told = bus.json("transactions", "describe", name)
    assert (told["state"], told["partitions"]) == ("Ongoing", ["orders-1"])
    held = [
        row
        for row in bus.json("transactions", "list", "--open", "--topic", "orders")
        if row["transactional_id"] == name
    ]
    assert [(row["partition"], row["hangs"]) for row in held] == [(1, False)]
    remembered = bus.json("producers", "orders", "--partition", "1")
    assert told["producer_id"] in [
        row["producer_id"] for row in remembered if row["open_transaction_from"] is not None
    ]
    asked = bus.run("transactions", "abort", name)
    assert asked.returncode == 2 and "would be dropped" in asked.stderr
    bus.done("transactions", "abort", name, "--yes")
    assert bus.json("transactions", "list", "--open", "--topic", "orders") == []
    with pytest.raises(KafkaException):
        producer.commit_transaction(FLUSH_S)
    ended = bus.run("transactions", "abort", name, "--yes")
    assert ended.returncode == 1 and "is not open" in ended.stderr


STRANGER = 2**61  # no coordinator gives out such an id
VERIFICATION = "transaction.partition.verification.enable"


def leave_hanging(cluster: Cluster, topic: str) -> None:
    """Append a record in a transaction that no coordinator knows, as old clients could.

    Brokers have to be told not to ask the coordinator (KIP-890), and each hears of it a little later.
    """
    batch = DefaultRecordBatchBuilder(2, 0, True, STRANGER, 0, 0, 10_000)
    batch.append(0, time.time_ns() // 1_000_000, None, b"never ended", [])
    kind = ProduceRequest.TopicProduceData
    data = kind(name=topic, partition_data=[kind.PartitionProduceData(index=0, records=bytes(batch.build()))])
    request = ProduceRequest(transactional_id="stranger", acks=-1, timeout_ms=10_000, topic_data=[data])
    end, pause = time.monotonic() + FLUSH_S, threading.Event()
    while True:
        told = cluster.once(request, ProduceResponse, broker_id=cluster.leader(topic, 0), max_version=11)
        code = told.responses[0].partition_responses[0].error_code
        if code == codes.NONE:
            return
        assert time.monotonic() < end, codes.name_of(code)
        pause.wait(0.1)


def test_a_transaction_that_no_coordinator_knows_holds_readers_up_until_it_is_aborted(
    bus: Bus, site: Site
) -> None:
    topic = f"cmd-{uuid.uuid4().hex[:8]}"
    bus.done("topic", "create", topic)
    bus.done("config", "set", "broker", "all", f"{VERIFICATION}=false")
    with Cluster(site.access()) as cluster:
        leave_hanging(cluster, topic)
    bus.done("config", "unset", "broker", "all", VERIFICATION)
    bus.done("produce", topic, "--whole-file", str(bus.file))
    assert bus.done("consume", topic) == ""
    found = bus.run("transactions", "list", "--open", "--topic", topic)
    abort = f"twinlog transactions abort --topic {topic} --partition 0 --yes"
    assert found.returncode == 3 and f"hint: {abort}" in found.stderr
    refused = bus.run("transactions", "abort", "--topic", topic, "--partition", "0")
    assert refused.returncode == 2 and f"producer {STRANGER} wrote from offset 0 on" in refused.stderr
    bus.done(*abort.split()[1:])
    assert bus.json("transactions", "list", "--open", "--topic", topic) == []
    assert bus.done("consume", topic) == bus.file.read_text() + "\n"
    assert "never ended" in bus.done("consume", topic, "--uncommitted")
    again = bus.run(*abort.split()[1:])
    assert again.returncode == 1 and "0 transactions hang there" in again.stderr
    bus.done("topic", "delete", topic, "--yes")
