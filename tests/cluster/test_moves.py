"""Roles change on real sites: clients that know one address go on, and whoever is killed is replaced.

One bus of two small sites, its mirror and its traffic manager serve all tests here, in the order in which
they stand: the site that is active at the end of one is active at the beginning of the next.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException, Producer

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.mortals import killed_at_every_step, one_step
from tests.cluster.moving import (
    FILE,
    LOG,
    PARTITIONS,
    WAIT_S,
    active_site,
    at_work,
    check,
    client_settings,
    kill_site,
    load_on,
    other_site,
    records_at,
    wait_for,
    wait_until_equal,
)
from twinlog.errors import SiteError
from twinlog.mirror.watch import Watch
from twinlog.progress import Silent
from twinlog.sites import fencing, processes
from twinlog.sites.java import find_java
from twinlog.sites.readiness import wait_until_ready
from twinlog.spec.model import Role
from twinlog.traffic import beginning, newcomers, switchover
from twinlog.traffic.crossing import carry_out
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import STEPS, Kind, Move, Step
from twinlog.traffic.risks import Source
from twinlog.wire import roles
from twinlog.wire.addresses import HostPort
from twinlog.wire.cluster import Cluster
from twinlog.wire.connection import Connection
from twinlog.wire.tls import context_for

pytestmark = pytest.mark.cluster

IDLE = 500  # connections
SHARED = 1  # the partition of a transaction; the load writes there too
COMMIT_S = 10.0  # for an answer, which may never come from a coordinator that is gone
# A member of a group that knows the gate and nothing else, in a process that can be stopped.
MEMBER = """
import json, sys
from confluent_kafka import Consumer

consumer = Consumer(json.loads(sys.argv[1]))
consumer.subscribe(["orders"])
while True:
    message = consumer.poll(0.2)
    if message is not None and message.error() is None:
        print(message.partition(), message.offset(), flush=True)
"""


@pytest.fixture(scope="module")
def moving(make_bus: MakeBus) -> Iterator[Bus]:
    """Two sites of one broker each."""
    with at_work(make_bus, FILE) as bus:
        yield bus


def link_state(bus: Bus) -> str:
    return str(json.loads(bus.run("link", "status", "-o", "json").stdout)["link"]["state"])


def page(bus: Bus, path: str) -> tuple[int, str]:
    address = bus.home().bus.gate.page
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_clients_go_on_at_the_other_site_and_nothing_is_lost_or_repeated(moving: Bus) -> None:
    with load_on(moving, "planned") as load:
        before = dict(Counter(partition for partition, _, _ in load.read))
        moving.done("switchover")
        assert active_site(moving) == "b"
        wait_for("clients go on", load.goes_on())
        moving.done("switchover")
        assert active_site(moving) == "a"
        wait_for("clients go on", load.goes_on())
    assert before
    check(moving, load)
    # Whatever came twice to the group had not been committed; nothing was passed over.
    seen = {(partition, offset) for partition, offset, _ in load.read}
    for partition in range(PARTITIONS):
        mine = sorted(offset for one, offset in seen if one == partition)
        assert mine == (list(range(mine[0], mine[-1] + 1)) if mine else [])


def test_both_sites_say_what_they_are_and_the_page_follows(moving: Bus) -> None:
    home = moving.home()
    for site, role in (("a", Role.ACTIVE), ("b", Role.STANDBY)):
        with Cluster(home.admin_access(site)) as cluster:
            standing = roles.read(cluster)
            assert standing is not None
            assert (standing.role, standing.term) == (role, home.state().term)
            assert not fencing.is_fenced(cluster)
    wait_for("the page knows", lambda: page(moving, "/site/a")[0] == 200)
    assert page(moving, "/site/b")[0] == 503
    assert "a is active" in page(moving, "/site/b")[1]
    assert moving.json("traffic", "status")["traffic"]["active"] == "a"


def test_dry_runs_on_a_healthy_bus_show_what_would_be_done_and_do_nothing(moving: Bus) -> None:
    shown = moving.json("switchover", "--dry-run")
    assert [row["step"] for row in shown] == [str(step) for step in STEPS[Kind.SWITCHOVER][:-1]]
    looked = moving.run("promote", "--dry-run", "-o", "json")
    assert looked.returncode == 0, looked.stderr
    assert [row["step"] for row in json.loads(looked.stdout)["steps"]] == [
        str(step) for step in STEPS[Kind.FAILOVER][:-1]
    ]
    assert at_risk(looked.stdout) == {"calm": (0, str(Source.SITES)), "orders": (0, str(Source.SITES))}
    assert (
        "without --yes it is refused: site a is active and takes writes"
        in moving.run("promote", "--dry-run").stderr
    )
    assert moving.run("return", "--dry-run").returncode == 2  # no site is lost
    assert active_site(moving) == "a"
    with Ground(moving.home(), Silent()) as ground:
        assert beginning.any_unfinished(ground) is None


def at_risk(told: str) -> dict[str, tuple[int | None, str]]:
    return {row["topic"]: (row["records"], row["told_by"]) for row in json.loads(told)["at_risk"]}


def test_a_switchover_does_not_begin_while_the_standby_falls_behind(moving: Bus) -> None:
    with load_on(moving, "behind") as load, Ground(moving.home(), Silent()) as ground:
        moving.done("link", "pause")
        with pytest.raises(SiteError, match="the link is paused"):
            beginning.switchover(ground)
        with Watch(moving.home()) as watch:
            wait_for("records are missing", lambda: any(one.lag_records for one in watch.look().partitions))
            assert "and the active was at" in beginning.still_lacks(watch.look(), watch.look, 1.0)
            moving.done("link", "resume")
            assert beginning.still_lacks(watch.look(), watch.look, WAIT_S) == ""
        assert beginning.any_unfinished(ground) is None
    check(moving, load)


def test_a_switchover_that_cannot_drain_is_called_off(moving: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switchover, "DRAIN_TIMEOUT_S", 2.0)
    moving.done("traffic", "pause")  # else the manager would go on with it
    with load_on(moving, "called-off") as load, Ground(moving.home(), Silent()) as ground:
        move = beginning.switchover(ground)
        moving.done("link", "pause")
        wait_for("the link is paused", lambda: link_state(moving) == "paused")
        with pytest.raises(SiteError, match="called off, and clients go on at a"):
            carry_out(ground, move)
        assert active_site(moving) == "a"
        assert beginning.any_unfinished(ground) is None
        wait_for("clients go on where they were", load.goes_on())
        moving.done("link", "resume")
    check(moving, load)


def has_members(bus: Bus, site: str, group: str) -> bool:
    with Cluster(bus.home().admin_access(site)) as cluster:
        return group in newcomers.members(cluster)


def is_fenced(bus: Bus, site: str) -> bool:
    with Cluster(bus.home().admin_access(site)) as cluster:
        return fencing.is_fenced(cluster)


def test_clients_are_let_into_the_old_site_when_the_members_of_groups_have_left_it(
    moving: Bus, tmp_path: Path
) -> None:
    """One that still waits there when it answers again would take it for the bus, and be refused for good."""
    old, heard = active_site(moving), tmp_path / "heard"
    settings = {**client_settings(moving), "group.id": "late", "auto.offset.reset": "earliest"}
    with load_on(moving, "late-load") as load, heard.open("w") as hears:
        command = [sys.executable, "-c", MEMBER, json.dumps(settings)]
        member = subprocess.Popen(command, stdout=hears, stderr=subprocess.DEVNULL)
        try:
            wait_for("it reads", lambda: heard.stat().st_size > 0 and has_members(moving, old, "late"))
            member.send_signal(signal.SIGSTOP)
            moving_on = subprocess.Popen(
                moving.command("switchover"), cwd=moving.directory, env=moving.environment()
            )
            with Ground(moving.home(), Silent()) as ground:
                wait_for(
                    "all is done but that",
                    lambda: moving_on.poll() is not None or _is_at(ground, Step.RELEASE),
                )
            assert moving_on.poll() is None
            assert is_fenced(moving, old)
            wait_for("the others have moved", load.goes_on())
            assert moving_on.poll() is None
            read = heard.stat().st_size
            member.send_signal(signal.SIGCONT)
            assert moving_on.wait(WAIT_S) == 0
            assert has_members(moving, other_site(old), "late")
            assert not is_fenced(moving, old)
            wait_for("it reads on", lambda: heard.stat().st_size > read)
        finally:
            member.kill()
            member.wait()
    check(moving, load)
    moving.done("switchover")
    assert active_site(moving) == old


def _is_at(ground: Ground, step: Step) -> bool:
    move = beginning.any_unfinished(ground)
    return move is not None and move.step is step


def test_a_group_that_does_not_come_is_not_waited_for_for_ever(
    moving: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newcomers, "WAIT_S", 0.5)
    told = Told()
    move = replace(Move.begin(Kind.SWITCHOVER, "moving", ("b", "a"), 9), members={"ghost": 2})
    with Ground(moving.home(), told) as ground:
        newcomers.wait_for(ground, move)
    assert [note for note in told.notes if "ghost (0 of 2) after 0.5 s" in note]


class Told(Silent):
    """Keeps what is worth a line."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_switchover_is_ended_by_others_when_each_is_killed(moving: Bus) -> None:
    moving.done("traffic", "pause")  # else the manager would be quicker
    with load_on(moving, "killed") as load:
        killed_at_every_step(moving, Kind.SWITCHOVER)
        assert active_site(moving) == "b"
        wait_for("clients go on", load.goes_on())
    check(moving, load)


def test_a_lost_site_comes_back_with_its_tail_salvaged_and_is_active_again(moving: Bus) -> None:
    lost = active_site(moving)
    with load_on(moving, "lost") as load:
        moving.done("link", "pause")
        wait_for("the link is paused", lambda: link_state(moving) == "paused")
        wait_for("what is written now only the lost site has", load.goes_on())
        kill_site(moving, lost)
        # The mirror's last numbers are older than what was written: nobody has measured that.
        told = moving.done("promote", "--dry-run", "-o", "json")
        assert at_risk(told)["orders"] == (None, str(Source.NOBODY))
        moving.done("link", "resume")
        killed_at_every_step(moving, Kind.FAILOVER)
        assert active_site(moving) == other_site(lost)
        wait_for("clients go on", load.goes_on())
        assert "twinlog return" in moving.run("up").stderr
        listed = moving.run("salvage", "list")
        assert (listed.returncode, f"what site {lost} keeps is not known" in listed.stderr) == (3, True)
        (tail,) = (row for row in moving.json("return", "--dry-run")["tails"] if row["topic"] == "orders")
        assert (tail["then"], tail["records"] > 0) == ("cut", True)
        by_themselves = start_site(moving, lost)
        assert tail in moving.json("return", "--dry-run")["tails"]
        killed_at_every_step(moving, Kind.RETURN)
        assert processes.wait(by_themselves, 0.0) == []
        moving.done("traffic", "resume")
        with Watch(moving.home()) as watch:
            wait_for("the twin is well", lambda: not watch.look().findings)
            wait_for("the standby has caught up", lambda: is_close(watch))  # else a switchover is refused
        # The producer's sequences have a hole where the other site took over: home must not refuse it.
        moving.done("switchover")
        assert active_site(moving) == lost
        wait_for("clients go on at home", load.goes_on())
    assert load.errors == []
    wait_until_equal(moving)
    here, there = records_at(moving, "a"), records_at(moving, "b")
    assert here == there
    left = {value for value in load.acknowledged if value not in set(here.values())}
    assert left
    assert left == salvaged_values(moving)
    assert len(left) <= tail["records"]


def is_close(watch: Watch) -> bool:
    """True if the standby lacks only what was written just now."""
    return all((one.lag_records or 0) < 100 for one in watch.look().partitions)


def start_site(bus: Bus, site: str) -> list[psutil.Process]:
    """Start a site's nodes as they were, as a booting machine may; returns its brokers when they answer."""
    layout = bus.home().layout(site)
    started = {node.id: processes.start(node, find_java())[0] for node in layout.local_nodes}
    access = bus.home().admin_access(site)
    wait_until_ready(layout, access, started, WAIT_S)
    return [started[node.id] for node in layout.brokers]


def salvaged_values(bus: Bus) -> set[str]:
    return {row["value"] for row in bus.json("salvage", "show", "orders", "--limit", "100000")}


def test_the_manager_ends_what_another_has_begun(moving: Bus) -> None:
    before = active_site(moving)
    moving.done("traffic", "pause")
    one_step(moving, Kind.SWITCHOVER)  # clients are fenced
    moving.done("traffic", "resume")
    wait_for("the manager went on", lambda: active_site(moving) == other_site(before))
    with Ground(moving.home(), Silent()) as ground:
        wait_for("it is done", lambda: beginning.any_unfinished(ground) is None)


def test_a_healthy_active_is_not_given_up_without_being_asked_twice(moving: Bus) -> None:
    ended = moving.run("promote")
    assert ended.returncode == 2
    assert "twinlog switchover" in ended.stderr


def test_a_manager_that_is_killed_changes_nothing_for_clients(moving: Bus) -> None:
    from twinlog.traffic import manager  # noqa: PLC0415

    with load_on(moving, "orphans") as load:
        process = manager.background(moving.home()).find()
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        wait_for("clients go on without it", load.goes_on())
        moving.done("traffic", "up")
        wait_for("clients go on", load.goes_on())
    check(moving, load)


def test_a_switchover_succeeds_with_many_idle_clients_that_have_logged_in(moving: Bus) -> None:
    before, home = active_site(moving), moving.home()
    access, layout = home.user_access("app", before), home.layout(before)
    tls = context_for(access)
    place = HostPort.parse(access.bootstrap[0])
    with load_on(moving, "crowded") as load, ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(closing(Connection(place, access, tls=tls)))
        assert len(fencing.clients(layout, fencing.brokers(layout))) > IDLE
        moving.done("switchover")
        assert active_site(moving) == other_site(before)
        wait_for("clients go on", load.goes_on())
    check(moving, load)


@contextmanager
def open_transaction(settings: dict[str, str]) -> Iterator[Producer]:
    """One that goes on writing in its transaction until it is refused."""
    stopping, producer = threading.Event(), Producer({**settings, "transactional.id": "open"}, logger=LOG)
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()

    def go_on() -> None:
        with suppress(KafkaException):
            while not stopping.wait(0.1):
                producer.produce("orders", "open", partition=SHARED)
                producer.poll(0)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield producer
    finally:
        stopping.set()
        thread.join(WAIT_S)


def refusal(ground: Ground) -> str:
    try:
        beginning.switchover(ground)
    except SiteError as error:
        return str(error)
    return ""


def test_a_transaction_that_is_open_at_a_switchover_is_aborted_and_its_name_works_at_the_new_active(
    moving: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, settings = active_site(moving), client_settings(moving)
    with load_on(moving, "around") as load, open_transaction(settings) as old:
        with monkeypatch.context() as patch, Ground(moving.home(), Silent()) as ground:
            patch.setattr(beginning, "MOST_LAG_S", 2.0)
            wait_for("it is open for too long", lambda: "transaction 'open' is open" in refusal(ground))
        moving.done("switchover")
        assert active_site(moving) == other_site(before)
        wait_for("clients go on", load.goes_on())
        with pytest.raises(KafkaException):
            old.commit_transaction(COMMIT_S)
        new = Producer({**settings, "transactional.id": "open"}, logger=LOG)
        new.init_transactions(WAIT_S)
        new.begin_transaction()
        new.produce("orders", "opened again", partition=SHARED)
        new.commit_transaction(WAIT_S)
        wait_for("records stand behind its end", load.goes_on())
    check(moving, load)  # both sites show readers of committed records the same
    seen = set(records_at(moving, before).values())
    assert "opened again" in seen
    assert "open" not in seen


def test_state_directory_has_no_half_written_move(moving: Bus) -> None:
    left = [path.name for path in Path(moving.home().directory / "traffic").iterdir()]
    assert not [name for name in left if name.startswith(".")]
