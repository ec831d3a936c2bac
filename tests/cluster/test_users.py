"""Passwords of users at two running sites: exchanged at both, or finished later where one is down."""

from __future__ import annotations

import threading

import pytest

from tests.cluster.conftest import Bus, MakeBus
from twinlog.errors import KafkaError
from twinlog.wire.access import Access
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.deadlines import Deadline

pytestmark = pytest.mark.cluster

FILE = """\
bus: users
sites:
  a: {brokers: 1, memory: 256MB}
  b: {brokers: 1, memory: 256MB}
topics:
  orders: {}
users:
  shop: {produce: [orders]}
  old: {auth: scram-sha-256, consume: [orders]}
"""
QUICK = Patience(connect_s=5.0, request_s=10.0, total_s=10.0)
KNOWN_WITHIN_S = 30.0  # a broker learns of a new password from its controller, in milliseconds


@pytest.fixture(scope="module")
def bus(make_bus: MakeBus) -> Bus:
    return make_bus(FILE)


def refusal(access: Access) -> str:
    """Kafka's reason to refuse a login; empty if it lets in."""
    try:
        with Cluster(access, patience=QUICK) as cluster:
            cluster.brokers()
    except KafkaError as error:
        return error.code
    return ""


def wait_until_let_in(access: Access) -> None:
    deadline, pause = Deadline(KNOWN_WITHIN_S), threading.Event()
    while refused := refusal(access):
        assert not deadline.passed, refused
        pause.wait(0.1)


@pytest.mark.parametrize("user", ["shop", "old"])
def test_after_rotation_only_the_new_password_is_accepted_at_both_sites(bus: Bus, user: str) -> None:
    before = {site: bus.home().user_access(user, site) for site in ("a", "b")}
    assert bus.json("user", "rotate", user) == {"user": user, "sites": ["a", "b"], "left": {}}
    for site, old in before.items():
        new = bus.home().user_access(user, site)
        assert new.password != old.password
        wait_until_let_in(new)
        assert refusal(old) == "SASL_AUTHENTICATION_FAILED"
    shown = bus.done("user", "show-password", user).strip()
    assert shown == bus.home().user_access(user, "a").password == bus.home().user_access(user, "b").password


def test_list_says_at_which_sites_the_present_password_is(bus: Bus) -> None:
    assert {row["user"]: row["applied"] for row in bus.json("user", "list")} == {
        "shop": ["a", "b"],
        "old": ["a", "b"],
    }


def test_rotation_with_a_site_down_is_finished_by_apply(bus: Bus) -> None:
    bus.done("down", "--site", "b")
    ended = bus.run("user", "rotate", "shop")
    assert ended.returncode == 3
    assert "site b" in ended.stderr and "hint: twinlog apply" in ended.stderr
    assert {row["user"]: row["applied"] for row in bus.json("user", "list")}["shop"] == ["a"]
    wait_until_let_in(bus.home().user_access("shop", "a"))
    bus.done("apply")
    wait_until_let_in(bus.home().user_access("shop", "b"))
    assert {row["user"]: row["applied"] for row in bus.json("user", "list")}["shop"] == ["a", "b"]


def test_rotation_prints_no_password(bus: Bus) -> None:
    before = bus.home().user_access("shop", "a").password
    ended = bus.run("user", "rotate", "shop")
    after = bus.home().user_access("shop", "a").password
    assert not {before, after} & set((ended.stdout + ended.stderr).split())
