"""What a drill breaks, and how it is mended: signals to processes, full and slow disks, cuts of the network.

Scenarios begin faults and heal them; both are written down. Processes are found as the product itself
finds them. A fault that nobody healed is healed when the drill ends, so that nothing stays stopped. The
gate is part of the traffic manager here, so its fault is the manager's.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import psutil

from twinlog.drills import devices, disks
from twinlog.drills.history import Happening
from twinlog.drills.machines import Network
from twinlog.drills.recording import Recorder
from twinlog.errors import SiteError
from twinlog.mirror import link
from twinlog.progress import Progress
from twinlog.sites import local, processes
from twinlog.sites.background import Background
from twinlog.sites.home import Home
from twinlog.sites.layout import Node
from twinlog.traffic import agent, manager, staff
from twinlog.traffic.votes import WITNESS

END_TIMEOUT_S = 60.0
KILL_TIMEOUT_S = 10.0
WORKERS = ("pyspark.daemon", "pyspark.worker")


class How(StrEnum):
    """What is done to a process, in the words of a report."""

    KILL = "killed"  # kill -9
    HANG = "stopped"  # SIGSTOP; healed by SIGCONT
    END = "ended"  # SIGTERM

    @property
    def signal(self) -> signal.Signals:
        """The signal that does it."""
        return {How.KILL: signal.SIGKILL, How.HANG: signal.SIGSTOP, How.END: signal.SIGTERM}[self]


@dataclass
class Fault:
    """Something that is broken until it is healed."""

    name: str
    text: str
    site: str
    heal: Callable[[], None]
    stopped: Sequence[psutil.Process] = ()


class Faults:
    """All faults of one drill."""

    def __init__(self, home: Home, recorder: Recorder, progress: Progress) -> None:
        self._home = home
        self._recorder = recorder
        self._progress = progress
        self._open: list[Fault] = []
        self._count = 0

    def nodes(self, how: How, site: str, nodes: Sequence[Node]) -> Fault:
        """Hit some nodes of a site."""
        found = list(processes.find(nodes).values())
        names = ", ".join(node.name for node in nodes)
        return self._begin(how, site, f"{names} {how}", found, lambda: self._bring_up(site))

    def site(self, how: How, site: str, *, with_agent: bool = False) -> Fault:
        """Hit all nodes of a site, and its agent with them if that is meant and there is one."""
        brokers, controllers = self._nodes(site)
        # As whoever shuts a site down in order: a broker without controllers waits for them for minutes.
        found, then = (brokers, controllers) if how is How.END else ([*brokers, *controllers], [])
        process = agent.background(self._home, site).find() if with_agent else None
        if process is None:
            text = f"site {site} {how}"
            return self._begin(how, site, text, found, lambda: self._bring_up(site), then)

        def bring_up() -> None:
            self._bring_up(site)
            agent.background(self._home, site).launch()

        # The agent first: it would answer what happens to its brokers.
        text = f"site {site} and its agent {how}"
        return self._begin(how, site, text, [process, *found], bring_up, then)

    def site_sleeps(self, site: str, its_agent: Sequence[psutil.Process]) -> Fault:
        """Stop all nodes of a site and its agent, as when their machine sleeps; the agent wakes up last."""
        brokers, controllers = self._nodes(site)
        found = [*its_agent, *brokers, *controllers]
        return self._begin(How.HANG, site, f"site {site} and its agent {How.HANG}", found, lambda: None)

    def agent(self, how: How, site: str) -> Fault:
        """Hit the agent of a site on this machine; its brokers go on."""
        return self._background(how, agent.background(self._home, site), f"agent of site {site}", site)

    def witness(self, how: How) -> Fault:
        """Hit the witness on this machine."""
        return self._background(how, staff.witness(self._home), WITNESS)

    def agent_hangs(self, site: str, found: Sequence[psutil.Process]) -> Fault:
        """Stop the agent of a site: it does not notice when its site's lease ends."""
        return self._begin(How.HANG, site, f"the agent of site {site} {How.HANG}", found, lambda: None)

    def mirror(self, how: How) -> Fault:
        """Hit the mirror's driver."""
        return self._background(how, link.background(self._home), "mirror")

    def workers(self, how: How) -> Fault:
        """Hit the Python processes in which the mirror's tasks run; Spark starts others by itself."""
        (driver,) = _one(link.background(self._home).find(), "mirror")
        found = [one for one in driver.children(recursive=True) if processes.mentions(one, *WORKERS)]
        return self._begin(how, "", f"the mirror's workers {how}", found, lambda: None)

    def manager(self, how: How) -> Fault:
        """Hit the traffic manager, and its gate with it."""
        return self._background(how, manager.background(self._home), "traffic manager")

    def cut(self, network: Network, site: str, *others: str) -> Fault:
        """Cut a site's machine off from others."""
        fault = self._note(f"site {site} cut off from {' and '.join(others)}", site, network.heal)
        network.cut(site, *others)
        return fault

    def cut_clients(self, network: Network, machine: str, site: str) -> Fault:
        """Cut a machine with clients off from a site that everybody else still reaches."""
        fault = self._note(f"clients cut off from site {site}", site, network.heal)
        network.cut(machine, site)
        return fault

    def full_disk(self, node: Node) -> Fault:
        """Let the disk of a node be full; a node that has no other ends itself, and is waited for."""
        found = _one(processes.find([node]).get(node.id), f"broker {node.id}")
        disk = disks.disk_of(node.data[0])

        def heal() -> None:
            if disk is not None:
                disks.make_room(disk)
            self._bring_up(node.site)

        if disk is not None:
            fault = self._note(f"the disk of {node.name} is full", node.site, heal)
            disks.fill(disk)
        else:
            fault = self._note(f"{node.name} may let no file grow, as on a full disk", node.site, heal)
            disks.forbid_growth(found[0])
        if processes.wait(found, END_TIMEOUT_S):
            raise SiteError(f"it does not end: {fault.text}", hint=f"twinlog logs --site {node.site}")
        return fault

    def slow_disk(self, node: Node, writes_per_s: int) -> Fault:
        """Hold the writes of a node to its disk back."""
        (process,) = _one(processes.find([node]).get(node.id), f"broker {node.id}")
        disk = disks.disk_of(node.data[0])
        assert disk is not None, "the scenario is declared with disks that can be slow"
        throttle = devices.Throttle(disk)
        text = f"the disk of {node.name} takes {writes_per_s} writes a second"
        fault = self._note(text, node.site, throttle.release)
        throttle.hold(process.pid, writes_per_s)
        return fault

    def heal(self, fault: Fault) -> None:
        """Mend it."""
        self._open.remove(fault)
        fault.heal()
        self._recorder.event(Happening.HEALED, f"{fault.text}: healed", fault=fault.name)

    def heal_by_move(self, fault: Fault) -> None:
        """Note that a move has mended it: a lost site has returned."""
        self._open.remove(fault)
        self._recorder.event(Happening.HEALED, f"{fault.text}: returned", fault=fault.name)

    def heal_all(self) -> None:
        """Mend what is left."""
        for fault in list(self._open):
            self.heal(fault)

    def let_go(self) -> None:
        """Continue whatever is stopped, and mend nothing: the bus is about to be taken down."""
        for fault in self._open:
            processes.end(fault.stopped, signal.SIGCONT)

    def _background(self, how: How, background: Background, name: str, site: str = "") -> Fault:
        found = _one(background.find(), name)
        return self._begin(how, site, f"the {name} {how}", found, background.launch)

    def _begin(
        self,
        how: How,
        site: str,
        text: str,
        found: Sequence[psutil.Process],
        mend: Callable[[], object],
        then: Sequence[psutil.Process] = (),  # what is hit when the others have ended
    ) -> Fault:
        if not found:
            raise SiteError(f"nothing is there to be {how}: {text}", hint="twinlog status")

        def heal() -> None:
            if how is How.HANG:
                # What was stopped last goes on first; one that was killed meanwhile is no error.
                processes.end(found[::-1], signal.SIGCONT)
            else:
                mend()

        fault = self._note(text, site, heal, found if how is How.HANG else ())
        timeout_s = KILL_TIMEOUT_S if how is How.KILL else END_TIMEOUT_S
        for wave in (found, then):
            processes.end(wave, how.signal)
            if how is not How.HANG and processes.wait(wave, timeout_s):
                raise SiteError(f"it does not end: {text}", hint="ps -ef | grep twinlog")
        return fault

    def _note(
        self, text: str, site: str, heal: Callable[[], None], stopped: Sequence[psutil.Process] = ()
    ) -> Fault:
        """Write down that a fault begins, before it does."""
        self._count += 1
        fault = Fault(f"{self._count}: {text}", text, site, heal, stopped)
        self._open.append(fault)
        self._recorder.event(Happening.FAULT, text, fault=fault.name, site=site)
        return fault

    def _nodes(self, site: str) -> tuple[list[psutil.Process], list[psutil.Process]]:
        """What runs of a site: its brokers, and its controllers."""
        found = processes.find(self._home.layout(site).local_nodes)
        brokers = {node.id for node in self._home.layout(site).brokers}
        return (
            [process for id_, process in found.items() if id_ in brokers],
            [process for id_, process in found.items() if id_ not in brokers],
        )

    def _bring_up(self, site: str) -> None:
        local.up(self._home, [site], self._progress)


def _one(process: psutil.Process | None, name: str) -> list[psutil.Process]:
    if process is None:
        raise SiteError(f"the {name} does not run", hint="twinlog status")
    return [process]
