"""A cluster that exists already is lost as the active and comes back: nobody can stop or cut it.

It is the site of another bus, reached by the listener that its own administration uses, so that the fence
leaves us in. Tests go on where the one before them ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.moving import free_ports, wait_for
from twinlog.durable import write_secret
from twinlog.progress import Silent
from twinlog.sites import fencing
from twinlog.sites.layout import Listener
from twinlog.spec.model import Role
from twinlog.traffic import beginning
from twinlog.traffic.ground import Ground
from twinlog.wire import offsets, roles, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.roles import Standing

pytestmark = pytest.mark.cluster

WAIT_S = 60.0
COMMON, ONLY_THERE, SINCE = 40, 7, 5  # records: at both sites, lost with the site, written after that
PLACES = [("orders", 0), ("orders", 1), ("calm", 0)]
OWNER = """\
bus: owner
kafka: {offsets.topic.num.partitions: 2, transaction.state.log.num.partitions: 2}
sites: {a: {brokers: 1}}
"""
GUEST = """\
bus: guest
kafka: {{offsets.topic.num.partitions: 2, transaction.state.log.num.partitions: 2}}
sites:
  a: {{bootstrap: {bootstrap}, client: a.properties}}
  b: {{brokers: 1}}
topics:
  orders: {{partitions: 2}}
  calm: {{partitions: 1}}
gate: {{address: "127.0.0.1:{gate}", tls_address: "127.0.0.1:{tls}"}}
"""


@pytest.fixture(scope="module")
def guest(make_bus: MakeBus) -> Iterator[Bus]:
    """A bus whose active site is the other bus's, with a mirror to one of its own."""
    owner = make_bus(OWNER)
    access = owner.home().admin_access("a")
    with Cluster(access) as cluster:
        roles.write(cluster, Standing("guest", "a", Role.ACTIVE, 1))
    gate, tls = free_ports(2)
    bootstrap = json.dumps(owner.home().layout("a").bootstrap(Listener.LINK))
    bus = make_bus(GUEST.format(bootstrap=bootstrap, gate=gate, tls=tls), up=False)
    (bus.directory / "trust.pem").write_text(access.ca_pem)
    write_secret(bus.directory / "admin.pem", access.key_pem + access.cert_pem)
    stores = ["ssl.truststore.type=PEM", "ssl.truststore.location=trust.pem"]
    own = ["ssl.keystore.type=PEM", "ssl.keystore.location=admin.pem"]
    write_secret(bus.directory / "a.properties", "\n".join(["security.protocol=SSL", *stores, *own, ""]))
    bus.done("up")
    bus.done("link", "up")
    yield bus
    bus.done("traffic", "down")
    bus.done("link", "down")


def write(bus: Bus, site: str, topic: str, values: list[str]) -> None:
    refused: list[object] = []
    producer = Producer(bus.home().admin_access(site).librdkafka())
    for number, value in enumerate(values):
        partition = number % 2 if topic == "orders" else 0
        producer.produce(
            topic, value, partition=partition, on_delivery=lambda error, _: refused.append(error)
        )
    assert producer.flush(WAIT_S) == 0
    assert refused == [None] * len(values)


def topic_id(bus: Bus, topic: str) -> object:
    with Cluster(bus.home().admin_access("a")) as cluster:
        (found,) = topics.describe(cluster, [topic])
    return found.id


def is_fenced(bus: Bus) -> bool:
    with Cluster(bus.home().admin_access("a")) as cluster:
        return fencing.is_fenced(cluster)


def wait_until_equal(bus: Bus) -> None:
    home = bus.home()
    with Cluster(home.admin_access("a")) as one, Cluster(home.admin_access("b")) as other:
        wait_for(
            "both logs end alike",
            lambda: offsets.log_ends(one, PLACES) == offsets.log_ends(other, PLACES),
        )


def test_a_lost_one_is_fenced_as_far_as_it_answers_and_what_it_keeps_was_said_before(guest: Bus) -> None:
    write(guest, "a", "orders", [f"common-{number}" for number in range(COMMON)])
    write(guest, "a", "calm", ["calm"])
    wait_until_equal(guest)
    guest.done("link", "pause")
    wait_for(
        "the link is paused",
        lambda: json.loads(guest.run("link", "status", "-o", "json").stdout)["link"]["state"] == "paused",
    )
    write(guest, "a", "orders", [f"only-there-{number}" for number in range(ONLY_THERE)])
    shown = guest.json("promote", "--dry-run")
    assert {row["topic"]: (row["records"], row["told_by"]) for row in shown["at_risk"]} == {
        "calm": (0, "both sites, now"),
        "orders": (ONLY_THERE, "both sites, now"),
    }
    guest.done("promote", "--yes")
    assert guest.home().state().lost == ["a"]
    assert is_fenced(guest)


def test_nobody_deletes_anything_there_unasked_and_the_bus_is_not_held(guest: Bus) -> None:
    refused = guest.run("return")
    assert refused.returncode == 2
    assert "the logs of site a cannot be cut" in refused.stderr
    assert "hint: twinlog return --yes" in refused.stderr
    guest.done("traffic", "up")

    def says() -> str:
        told = guest.run("traffic", "status", "-o", "json")
        return str(json.loads(told.stdout)["traffic"]["why"]) if told.stdout else ""

    wait_for(
        "the manager says what it waits for",
        lambda: (
            "it must be taken back; not now: the logs of site a cannot be cut" in (told := says())
            and "twinlog return --yes" in told
        ),
    )
    with Ground(guest.home(), Silent()) as ground:
        assert beginning.any_unfinished(ground) is None
    write(guest, "b", "orders", [f"since-{number}" for number in range(SINCE)])


def test_what_only_it_has_is_said_salvaged_and_replaced_by_the_actives(guest: Bus) -> None:
    shown = guest.json("return", "--dry-run")
    assert [(row["topic"], row["records"]) for row in shown["tails"]] == [("calm", 0), ("orders", ONLY_THERE)]
    calm, orders = shown["tails"]
    assert calm["then"] == ""
    assert orders["then"].startswith("deleted there and copied whole: that cluster exists already")
    before = {topic: topic_id(guest, topic) for topic in ("orders", "calm")}
    guest.done("link", "resume")
    guest.done("return", "--yes")
    assert guest.home().state().lost == []
    assert not is_fenced(guest)
    wait_until_equal(guest)
    assert topic_id(guest, "calm") == before["calm"]  # nothing of its own was in it
    assert topic_id(guest, "orders") != before["orders"]
    guest.done("link", "verify", "--again")
    salvaged = {row["value"] for row in guest.json("salvage", "show", "orders")}
    assert salvaged == {f"only-there-{number}" for number in range(ONLY_THERE)}


def test_it_is_made_active_again_by_a_switchover(guest: Bus) -> None:
    guest.done("switchover")
    assert guest.home().state().active == "a"
    write(guest, "a", "orders", ["home"])
    wait_until_equal(guest)
