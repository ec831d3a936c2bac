"""Day after day: change the file, plan, apply; look at status and logs. On one small site of its own.

Tests leave the site as they found it, but for those that restart its nodes: a restart back would
show nothing more. The last one leaves it with two brokers, and down.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cluster.conftest import Bus, MakeBus, Site
from twinlog.wire import configs, quotas, topics, users
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

FILE = """\
bus: operated
kafka:
  message.max.bytes: 2MB
  broker.session.timeout.ms: 5s
  broker.heartbeat.interval.ms: 500ms
sites:
  a: {brokers: 1, cpus: 1.5}
topics:
  orders: {partitions: 2, replication: 1, retention: 7d}
  prices: {replication: 1, config: {segment.bytes: 16MiB}}
users:
  shop: {produce: [orders], quota: {produce: 1MB/s}}
  stock: {consume: [orders], groups: [stock-*]}
"""


@pytest.fixture(scope="module")
def operated(make_bus: MakeBus) -> Bus:
    return make_bus(FILE)


@pytest.fixture
def changed(operated: Bus) -> Iterator[Any]:
    """Writes another file for one test; the declared one is back, and applied, afterwards."""
    before = operated.file.read_text()
    yield lambda old, new: change(operated, old, new)
    operated.file.write_text(before)
    operated.done("apply", "--yes", "--prune")


def change(bus: Bus, old: str, new: str) -> None:
    """Write another file."""
    text = bus.file.read_text()
    assert old in text
    bus.file.write_text(text.replace(old, new))


def steps(bus: Bus, *args: str) -> list[str]:
    """The steps of a plan that finds something."""
    return [step["what"] for step in bus.json("plan", *args, exit_code=3)]


def kept(bus: Bus) -> dict[Path, int]:
    """What Twinlog itself keeps of a bus, and when each file was written."""
    home = bus.directory / ".twinlog"
    files = [home / "state.json", *(home / "pki").rglob("*"), *(home / "secrets").rglob("*")]
    return {path: path.stat().st_mtime_ns for path in files}


def test_what_was_applied_is_there_and_a_second_plan_is_empty_and_writes_nothing(operated: Bus) -> None:
    before = kept(operated)
    assert operated.json("plan") == []
    assert kept(operated) == before
    assert operated.json("apply") == []
    with Cluster(Site(operated, "a").access()) as cluster:
        (orders,) = topics.describe(cluster, ["orders"])
        assert len(orders.partitions) == 2
        settings = configs.describe(cluster, configs.Kind.TOPIC, "orders")
        assert settings["retention.ms"].value == str(7 * 86400 * 1000)
        assert quotas.describe(cluster)[quotas.Owner("shop")] == {quotas.Limit.PRODUCE: 1_000_000}
        assert {found.user for found in users.describe(cluster)} == {"shop", "stock"}


def test_more_is_applied_at_once_less_only_with_yes_and_fewer_partitions_never(
    operated: Bus, changed: Any
) -> None:
    changed("topics:\n", "topics:\n  extra: {partitions: 1, retention: 7d}\n")
    operated.done("apply")
    changed("{partitions: 1, retention: 7d}", "{partitions: 2, retention: 8d}")
    planned = steps(operated)
    assert any(what.startswith("widen extra from 1 to 2 partitions") for what in planned)
    assert any("retention.ms 604800000 → 691200000" in what for what in planned)
    operated.done("apply")
    assert operated.json("plan") == []
    changed("retention: 8d", "retention: 6d")
    refused = operated.run("apply")
    assert refused.returncode == 2
    assert "retention.ms" in refused.stderr
    assert "twinlog apply --yes" in refused.stderr
    operated.done("apply", "--yes")
    changed("{partitions: 2, retention: 6d}", "{partitions: 1, retention: 6d}")
    refused = operated.run("apply", "--yes")
    assert refused.returncode == 2
    assert "hint: partitions: 2" in refused.stderr


def test_a_user_who_leaves_the_file_keeps_its_password_until_yes(operated: Bus, changed: Any) -> None:
    changed("  stock: {consume: [orders], groups: [stock-*]}\n", "")
    ended = operated.run("apply")
    assert ended.returncode == 2
    assert "remove the password of stock" in ended.stderr
    operated.done("apply", "--yes")
    with Cluster(Site(operated, "a").access()) as cluster:
        assert {found.user for found in users.describe(cluster)} == {"shop"}


def test_a_topic_outside_the_file_is_deleted_only_by_prune(operated: Bus) -> None:
    with Cluster(Site(operated, "a").access()) as cluster:
        topics.create(cluster, topics.NewTopic("stray", 1, 1))
        assert operated.json("plan") == []
        assert steps(operated, "--prune") == ["delete stray with all its records"]
        assert operated.run("apply", "--prune").returncode == 2
        operated.done("apply", "--prune", "--yes")
        assert topics.describe(cluster, ["stray"]) == ()


def test_a_broker_setting_that_changed_restarts_the_nodes_one_by_one(operated: Bus) -> None:
    before = {node["node"]: node["pid"] for node in operated.json("status")["nodes"]}
    change(operated, "message.max.bytes: 2MB", "message.max.bytes: 3MB")
    assert any("message.max.bytes 2000000 → 3000000" in what for what in steps(operated))
    operated.done("apply")
    after = {node["node"]: node["pid"] for node in operated.json("status")["nodes"]}
    assert all(after[node] != pid for node, pid in before.items())
    with Cluster(Site(operated, "a").access()) as cluster:
        entry = configs.describe(cluster, configs.Kind.BROKER, "1")["message.max.bytes"]
    assert entry.value == "3000000"
    assert operated.json("plan") == []


def test_status_shows_nodes_sizes_and_certificates(operated: Bus) -> None:
    found = operated.json("status")
    (site,) = found["sites"]
    assert (site["state"], site["brokers"], site["controller"]) == ("up", 1, 901)
    assert site["under_replicated"] == site["without_leader"] == 0
    assert 360 < site["certificate_days"] <= 366
    assert {node["kind"] for node in found["nodes"]} == {"broker", "controller"}
    assert all(node["state"] == "up" and node["memory_bytes"] > 0 for node in found["nodes"])


def test_logs_of_all_nodes_come_in_the_order_of_time(operated: Bus) -> None:
    lines = [json.loads(line) for line in operated.done("logs", "-o", "json").splitlines()]
    assert {line["node"] for line in lines} == {"a/broker-1", "a/controller-901"}
    times = [line["time"] for line in lines]
    assert times == sorted(times)
    started = operated.done("logs", "--grep", "Kafka Server started", "--since", "1h").splitlines()
    assert started
    assert all("Kafka Server started" in line for line in started)
    assert operated.done("logs", "--since", "2030-01-01T00:00") == ""


def test_logs_follow_shows_what_happens_now(operated: Bus) -> None:
    following = subprocess.Popen(
        operated.command("logs", "--follow", "--grep", "followed", "--since", "2030-01-01T00:00"),
        cwd=operated.directory,
        env=operated.environment(),
        stdout=subprocess.PIPE,
    )
    assert following.stdout is not None
    try:
        with Cluster(Site(operated, "a").access()) as cluster:
            # The first ones may be made before the program looks.
            for number in range(30):
                topics.create(cluster, topics.NewTopic(f"followed-{number}", 1, 1))
                topics.delete(cluster, f"followed-{number}")
                if select.select([following.stdout], [], [], 1)[0]:
                    break
            else:
                pytest.fail("nothing was shown")
        assert b"followed" in os.read(following.stdout.fileno(), 65536)
    finally:
        following.kill()
        following.wait()
        following.stdout.close()


def test_no_password_is_in_a_log_a_process_or_an_answer(operated: Bus) -> None:
    passwords = [operated.done("user", "show-password", user).strip() for user in ("shop", "stock")]
    assert all(len(password) > 20 for password in passwords)
    texts = [
        operated.done("plan"),
        operated.done("status"),
        operated.done("user", "list"),
        operated.done("logs"),
    ]
    texts += [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    texts += [path.read_text(errors="replace") for path in operated.directory.rglob("*.log")]
    for password in passwords:
        assert not any(password in text for text in texts)


def test_keys_and_passwords_are_readable_by_their_owner_only(operated: Bus) -> None:
    secret = [*operated.directory.rglob("*.key"), *operated.directory.rglob("*.pem")]
    secret += [path for path in (operated.directory / ".twinlog" / "secrets").iterdir() if path.is_file()]
    assert len(secret) > 8
    assert all(_mode(path) == 0o600 for path in secret)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_second_changing_command_is_told_who_is_at_work(operated: Bus) -> None:
    with operated.home().state_file.locked("something long"):
        ended = operated.run("apply")
    assert ended.returncode == 2
    assert "twinlog something long (pid" in ended.stderr


def test_debug_tls_adds_handshakes_to_the_log(operated: Bus) -> None:
    operated.done("down")
    operated.done("up", "--debug", "tls")
    assert "ClientHello" in operated.done("logs", "--grep", "ClientHello", "--since", "10m")


def test_a_grown_site_gets_its_new_broker(operated: Bus) -> None:
    change(operated, "brokers: 1", "brokers: 2")
    assert any("1 new node" in what for what in steps(operated))
    operated.done("apply")
    assert operated.json("plan") == []
    (site,) = operated.json("status")["sites"]
    assert site["brokers"] == 2
    change(operated, "brokers: 2", "brokers: 1")
    refused = operated.run("apply")
    assert refused.returncode == 2
    assert "a/broker-2" in refused.stderr
    change(operated, "brokers: 1", "brokers: 2")
    operated.done("down")
    assert operated.json("status", exit_code=3)["sites"][0]["state"] == "down"
