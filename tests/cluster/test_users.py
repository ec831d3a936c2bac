"""Passwords of users at two running sites: exchanged at both, or finished later where one is down."""

from __future__ import annotations

import shlex
import threading

import pytest

from tests.cluster.conftest import Bus, MakeBus
from twinlog.errors import KafkaError
from twinlog.ops import granting
from twinlog.wire import acls
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


def test_the_active_site_is_not_taken_down_without_a_word_about_clients(bus: Bus) -> None:
    ended = bus.run("down", "--site", "a")
    assert ended.returncode == 0
    assert "site a is the active one" in ended.stderr and "twinlog switchover" in ended.stderr
    bus.done("up")


def test_rotation_with_a_site_down_is_finished_by_apply(bus: Bus) -> None:
    quiet = bus.run("down", "--site", "b")
    assert quiet.returncode == 0 and "active" not in quiet.stderr
    ended = bus.run("user", "rotate", "shop")
    assert ended.returncode == 3
    assert "site b" in ended.stderr and "hint: twinlog apply" in ended.stderr
    assert {row["user"]: row["applied"] for row in bus.json("user", "list")}["shop"] == ["a"]
    wait_until_let_in(bus.home().user_access("shop", "a"))
    bus.done("apply")
    wait_until_let_in(bus.home().user_access("shop", "b"))
    assert {row["user"]: row["applied"] for row in bus.json("user", "list")}["shop"] == ["a", "b"]


def test_users_that_only_sites_know_are_listed_beside_those_of_the_file(bus: Bus) -> None:
    bus.done("user", "add", "guest", "--consume", "orders", "--group", "guest-*")
    bus.done("user", "add", "card", "--auth", "mtls", "--produce", "orders", "--site", "a")
    rows = {row["user"]: row for row in bus.json("user", "list")}
    assert set(rows) == {"shop", "old", "guest", "card"}  # and none of Twinlog's own
    assert [rows[name]["in_file"] for name in ("shop", "old", "guest", "card")] == [True, True, False, False]
    guest, card = rows["guest"], rows["card"]
    assert (guest["auth"], guest["consume"], guest["groups"]) == ("scram", ["orders"], ["guest-*"])
    assert guest["applied"] == ["a", "b"] and guest["produce"] == []
    assert (card["auth"], card["produce"], card["applied"]) == (None, ["orders"], ["a"])
    bus.done("apply", "--yes")
    assert {row["user"] for row in bus.json("user", "list")} == {"shop", "old"}


def test_change_with_a_site_down_is_made_at_the_other_and_finished_by_the_hint(bus: Bus) -> None:
    bus.done("down", "--site", "b")
    calls = {
        "add": ("add", "late", "--consume", "orders"),
        "grant": ("grant", "shop", "--consume", "orders"),
        "quota": ("quota", "shop", "--produce", "7MB/s"),
        "revoke": ("revoke", "shop", "--produce", "orders"),
    }
    hints = {}
    for verb, words in calls.items():
        ended = bus.run("user", *words, "--timeout", "3")
        assert ended.returncode == 1, f"{verb}: {ended.stdout}{ended.stderr}"
        assert "done at site a, and not confirmed everywhere: site b: " in ended.stderr
        assert ("put this under users:" in ended.stderr) == (verb in ("add", "grant"))
        hints[verb] = ended.stderr.rpartition("hint: ")[2].strip()
        assert hints[verb] == f"twinlog user {' '.join(words)} --timeout 3 --site b"
    with Cluster(bus.home().admin_access("a"), patience=QUICK) as cluster:
        assert rules(cluster, "late") == {("READ", "orders")}
        assert rules(cluster, "shop") == {("READ", "orders")}
    listed = bus.run("user", "list")
    assert "late" in listed.stdout and "site b does not say which users it knows" in listed.stderr
    before = bus.json("user", "quota", "shop", "--site", "a")
    assert [row["limits"] for row in before] == [{"producer_byte_rate": 7_000_000}]
    bus.done("up", "--site", "b")
    for hint in hints.values():
        bus.done(*shlex.split(hint)[1:])
    with Cluster(bus.home().admin_access("b"), patience=QUICK) as cluster:
        assert rules(cluster, "late") == rules(cluster, "shop") == {("READ", "orders")}
    assert [row["site"] for row in bus.json("user", "quota", "shop")] == ["a", "b"]
    assert next(row["applied"] for row in bus.json("user", "list") if row["user"] == "late") == ["a", "b"]
    bus.done("apply", "--yes")


def rules(cluster: Cluster, user: str) -> set[tuple[str, str]]:
    """What a user may do with the file's topics."""
    return {
        (rule.operation.name, rule.name)
        for rule in acls.describe(cluster)
        if rule.principal == f"User:{user}"
        and rule.resource is acls.Resource.TOPIC
        and rule.name not in granting.IMPLIED
    }


def test_rotation_prints_no_password(bus: Bus) -> None:
    before = bus.home().user_access("shop", "a").password
    ended = bus.run("user", "rotate", "shop")
    after = bus.home().user_access("shop", "a").password
    assert not {before, after} & set((ended.stdout + ended.stderr).split())
