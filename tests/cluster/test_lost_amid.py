"""A site is lost in the middle of a planned switchover: clients go on at the one that is left.

One bus of two small sites serves all tests here, in the order in which they stand. Its traffic manager looks
on while a test carries the move out itself, so that it is known who meets the loss, and then goes on. Each
test loses a whole site, controllers too, before a step is taken and after it was written down.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.moving import (
    FILE,
    WAIT_S,
    Load,
    active_site,
    at_work,
    load_on,
    other_site,
    records_at,
    wait_for,
    wait_until_equal,
)
from twinlog import Done, Producer
from twinlog.errors import SiteError, TwinlogError
from twinlog.mirror.watch import Watch
from twinlog.progress import Silent
from twinlog.sites import fencing, processes
from twinlog.traffic import beginning, manager
from twinlog.traffic.crossing import carry_out
from twinlog.traffic.ground import Ground
from twinlog.traffic.journal import NOTE, Journal, Overtaken
from twinlog.traffic.moves import Move, Step, decode
from twinlog.wire import notes
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def moving(make_bus: MakeBus) -> Iterator[Bus]:
    """Two sites of one broker each, and a manager that does nothing unless it is asked to."""
    with at_work(make_bus, FILE) as bus:
        bus.done("traffic", "pause")
        yield bus


@dataclass
class TwinLoad:
    """Writes with acks=twin: what it calls done is at both sites."""

    done: set[str] = field(default_factory=set)
    stopping: threading.Event = field(default_factory=threading.Event)

    def write(self, file: Path, name: str) -> None:
        """With a new producer after each failure: sites may have changed their roles."""
        number = 0
        while not self.stopping.is_set():
            try:
                with Producer.of_bus(file, "app", acks="twin", timeout_s=5.0) as producer:
                    works = True
                    while works and not self.stopping.wait(0.02):
                        value = f"{name}:{number}"
                        number += 1
                        outcome = producer.send("orders", value.encode()).result()
                        works = isinstance(outcome, Done) and outcome.twin
                        if works:
                            self.done.add(value)
            except TwinlogError:
                self.stopping.wait(0.2)


@contextmanager
def twin_load_on(bus: Bus, name: str) -> Iterator[TwinLoad]:
    load = TwinLoad()
    thread = threading.Thread(target=load.write, args=(bus.file, name))
    thread.start()
    try:
        wait_for("writes are at both sites", lambda: len(load.done) > 10)
        yield load
    finally:
        load.stopping.set()
        thread.join(WAIT_S)


def kill_site(bus: Bus, site: str) -> None:
    """kill -9 of every node of a site."""
    found = list(processes.find(bus.home().layout(site).local_nodes).values())
    assert found
    processes.end(found, signal.SIGKILL)
    assert processes.wait(found, 10.0) == []


def switch_over_losing(bus: Bus, lost: str, before: Step, *, with_disks: bool = False) -> Move:
    """Carry a switchover out, and lose a site when a step was written down and before it is taken."""
    killed: list[str] = []

    def watch(move: Move) -> None:
        if move.step is before and not killed:
            killed.append(lost)
            kill_site(bus, lost)
            if with_disks:
                unmount(bus, lost)

    with Ground(bus.home(), Silent()) as ground:
        return carry_out(ground, beginning.switchover(ground), watch=watch)


def unmount(bus: Bus, site: str) -> None:
    """Take the disks of a site's brokers away."""
    for disk in disks(bus, site):
        disk.rename(elsewhere(disk))


def mount(bus: Bus, site: str) -> None:
    """Bring them back."""
    for disk in disks(bus, site):
        elsewhere(disk).rename(disk)


def disks(bus: Bus, site: str) -> list[Path]:
    return [Path(disk) for node in bus.home().layout(site).brokers for disk in node.data]


def elsewhere(disk: Path) -> Path:
    return disk.with_name(f"{disk.name}-elsewhere")


def unfinished(bus: Bus) -> Move | None:
    with Ground(bus.home(), Silent()) as ground:
        return beginning.any_unfinished(ground)


def is_told(bus: Bus, site: str) -> bool:
    """True if a site knows of no move that is under way."""
    with Cluster(bus.home().admin_access(site)) as cluster:
        move = decode(notes.read(cluster, NOTE))
    return move is None or move.is_done


def is_fenced(bus: Bus, site: str) -> bool:
    with Cluster(bus.home().admin_access(site)) as cluster:
        return fencing.is_fenced(cluster)


def wait_for_decision(bus: Bus, step: str) -> None:
    """Let the manager decide, until it comes to this."""
    report = manager.background(bus.home()).report
    bus.done("traffic", "resume")
    wait_for(step, lambda: json.loads(report.read_text())["step"] == step)
    bus.done("traffic", "pause")


def wait_until_whole(bus: Bus) -> None:
    """Wait until the twin is well, so that the next switchover can begin."""
    assert unfinished(bus) is None
    assert bus.home().state().lost == []
    assert not is_fenced(bus, "a")
    assert not is_fenced(bus, "b")
    with Watch(bus.home()) as watch:
        wait_for("the twin is well", lambda: not watch.look().findings)
    wait_until_equal(bus)


def check_nothing_is_lost(bus: Bus, load: Load, twin: TwinLoad) -> set[str]:
    """Both sites hold the same, and all that was done with acks=twin; returns what had to be salvaged."""
    wait_until_whole(bus)
    here, there = records_at(bus, "a"), records_at(bus, "b")
    assert here == there
    values = set(here.values())
    assert twin.done <= values
    assert load.errors == []
    assert len(load.acknowledged) == load.sent
    left = {value for value in load.acknowledged if value not in values}
    if left:
        assert left <= {row["value"] for row in bus.json("salvage", "show", "orders", "--limit", "100000")}
    return left


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(Step.REVOKE, id="after-fence"),
        pytest.param(Step.HOLD, id="after-drain", marks=pytest.mark.slow),
    ],
)
def test_target_lost_before_it_opened_clients_go_on_where_they_were(moving: Bus, before: Step) -> None:
    active = active_site(moving)
    lost = other_site(active)
    with (
        load_on(moving, f"one-{before.name}") as load,
        twin_load_on(moving, f"twin-one-{before.name}") as twin,
    ):
        began_s = time.monotonic()
        with pytest.raises(SiteError, match=f"called off, and clients go on at {active}"):
            switch_over_losing(moving, lost, before)
        wait_for("clients go on where they were", load.goes_on())
        print(f"they went on {time.monotonic() - began_s:.1f} s after the switchover began")
        assert active_site(moving) == active
        assert unfinished(moving) is None
        moving.done("up")
        assert not is_told(moving, lost)  # whoever asks it alone would go on
        moving.done("traffic", "resume")
        wait_for("the manager tells it", lambda: is_told(moving, lost))
        moving.done("traffic", "pause")
        assert active_site(moving) == active
        wait_for("clients go on", load.goes_on())
    assert check_nothing_is_lost(moving, load, twin) == set()


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(Step.REVOKE, id="after-fence", marks=pytest.mark.slow),
        pytest.param(Step.OFFSETS, id="after-hold"),
    ],
)
def test_source_lost_before_the_target_opened_a_failover_takes_its_place(moving: Bus, before: Step) -> None:
    lost = active_site(moving)
    with (
        load_on(moving, f"two-{before.name}") as load,
        twin_load_on(moving, f"twin-two-{before.name}") as twin,
    ):
        with pytest.raises(SiteError, match=f"could not be let in at site {lost} again"):
            switch_over_losing(moving, lost, before)
        begun = unfinished(moving)
        assert begun is not None
        assert begun.called_off
        wait_for_decision(moving, "ReadyToPromote")
        moving.done("promote")
        assert active_site(moving) == other_site(lost)
        assert moving.home().state().term > begun.term
        wait_for("clients go on at the other site", load.goes_on())
        moving.done("return")
        wait_for("clients go on", load.goes_on())
    check_nothing_is_lost(moving, load, twin)


@pytest.mark.slow
def test_source_lost_and_back_before_the_target_opened_the_switchover_is_called_off(moving: Bus) -> None:
    active = active_site(moving)
    with load_on(moving, "back") as load, twin_load_on(moving, "twin-back") as twin:
        with pytest.raises(SiteError, match=f"could not be let in at site {active} again"):
            switch_over_losing(moving, active, Step.HOLD)
        moving.done("up")
        ended = moving.run("switchover")
        assert (ended.returncode, f"clients go on at {active}" in ended.stderr) == (1, True), ended.stderr
        wait_for("clients go on where they were", load.goes_on())
    assert check_nothing_is_lost(moving, load, twin) == set()
    assert active_site(moving) == active


def test_source_lost_after_the_target_opened_is_started_again_as_the_standby(moving: Bus) -> None:
    lost = active_site(moving)
    with load_on(moving, "opened") as load, twin_load_on(moving, "twin-opened") as twin:
        ended = switch_over_losing(moving, lost, Step.STOP)
        assert (ended.is_done, ended.lost) == (True, "")
        assert active_site(moving) == other_site(lost)
        wait_for("clients go on at the other site", load.goes_on())
    assert check_nothing_is_lost(moving, load, twin) == set()


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(Step.STOP, id="after-open"),
        pytest.param(Step.RELEASE, id="after-link", marks=pytest.mark.slow),
    ],
)
def test_source_that_does_not_come_back_is_left_behind_and_returns_later(moving: Bus, before: Step) -> None:
    lost = active_site(moving)
    with load_on(moving, f"left-{before.name}") as load, twin_load_on(moving, f"twin-{before.name}") as twin:
        ended = switch_over_losing(moving, lost, before, with_disks=True)
        assert ended.is_done
        assert ended.lost
        assert moving.home().state().lost == [lost]
        wait_for("clients go on at the other site", load.goes_on())
        mount(moving, lost)
        moving.done("return")
        wait_for("clients go on", load.goes_on())
    assert check_nothing_is_lost(moving, load, twin) == set()
    assert active_site(moving) == other_site(lost)


@pytest.mark.slow
def test_target_lost_after_it_opened_the_old_site_is_promoted_again(moving: Bus) -> None:
    active = active_site(moving)
    lost = other_site(active)
    with load_on(moving, "back-again") as load, twin_load_on(moving, "twin-back-again") as twin:
        with pytest.raises(SiteError, match="did not work"):
            switch_over_losing(moving, lost, Step.STOP)
        refused = moving.run("promote")
        assert (refused.returncode, f"twinlog up --site {active}" in refused.stderr) == (1, True), (
            refused.stderr
        )
        moving.done("up", "--site", active)
        moving.done("promote")
        assert active_site(moving) == active
        wait_for("clients go on where they were", load.goes_on())
        moving.done("return")
    check_nothing_is_lost(moving, load, twin)


class CutOff(Ground):
    """Reaches the old site of a switchover and not the other one."""

    def answers(self, site: str) -> bool:
        return site == self.home.state().active and super().answers(site)


def test_switchover_that_another_calls_off_at_the_old_site_is_not_gone_on_with(moving: Bus) -> None:
    active = active_site(moving)
    with load_on(moving, "called-off") as load, CutOff(moving.home(), Silent()) as far:
        begun: list[Move] = []

        def watch(move: Move) -> None:
            if move.step is Step.DRAIN and not begun:
                begun.append(Journal(far).write(replace(move, called_off="cut off")))

        with Ground(moving.home(), Silent()) as ground, pytest.raises(Overtaken, match="has ended it"):
            carry_out(ground, beginning.switchover(ground), watch=watch)
        with pytest.raises(SiteError, match=f"clients go on at {active}: cut off"):
            carry_out(far, begun[0])
        assert unfinished(moving) is None
        wait_for("clients go on where they were", load.goes_on())
    assert active_site(moving) == active
    wait_until_whole(moving)


def test_switchover_that_may_have_opened_the_other_site_is_called_off_by_nobody(moving: Bus) -> None:
    active = active_site(moving)
    refused: list[str] = []
    with load_on(moving, "open") as load, CutOff(moving.home(), Silent()) as far:

        def watch(move: Move) -> None:
            if move.step is Step.LEASE:
                # As whoever began it and has not heard since that another went on.
                with pytest.raises(Overtaken, match="it can be called off no more") as caught:
                    Journal(far).write(replace(move, step=Step.DRAIN, called_off="cut off"))
                refused.append(caught.value.hint)

        with Ground(moving.home(), Silent()) as ground:
            carry_out(ground, beginning.switchover(ground), watch=watch)
        wait_for("clients go on at the other site", load.goes_on())
    assert len(refused) == 1
    assert active_site(moving) == other_site(active)
    wait_until_whole(moving)
