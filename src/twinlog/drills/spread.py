"""The bus of a drill on machines of its own: each site with its agent, the witness, and who watches them.

The runner brings it up and hands it to the stage. The manager and the mirror run on one site's machine, as
the story says; the other one has a gate alone, for the clients on its side, and so has the machine of
clients that are beside no site. All but the clients see processes of their own machine only: a manager that
saw others would end brokers that it could not reach. What needs a hand on the other machine, the return of a
lost site, is run there as a person would.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil

from twinlog.drills.cast import Client
from twinlog.drills.machines import Network
from twinlog.errors import SiteError
from twinlog.progress import Progress
from twinlog.sites import processes
from twinlog.sites.home import Home
from twinlog.traffic import agent, electorate, manager, staff
from twinlog.traffic.votes import WITNESS

COMMAND_TIMEOUT_S = 300.0
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
LOOK_AGAIN_S = 0.05
PYTHON = (sys.executable, "-m")
AWAY = "away"  # the machine of clients that are beside no site


def side_of(client: Client, sites: tuple[str, ...]) -> str:
    """The machine on which a client runs: the one that its name ends with, else that of the first site."""
    return next((one for one in (*sites, AWAY) if client.name.endswith(f"-{one}")), sites[0])


class Spread:
    """Who runs where, from the start to `close`."""

    def __init__(self, home: Home, network: Network) -> None:
        self._home = home
        self._sites = tuple(home.bus.sites)
        self.network = network
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._mirror_at = ""
        self._logs = home.file.parent / "staff"

    def bring_up(self, progress: Progress) -> None:
        """Have both sites, the voters, the mirror and the manager running, the last two at the last site."""
        self._logs.mkdir(exist_ok=True)
        for site in self._sites:
            self._told(progress, f"site {site} on its machine", partial(self.run, site, "up", "--site", site))
        electorate.enrol_first(self._home)
        self._start("witness", WITNESS, "twinlog.traffic.bystander", str(self._home.file))
        self._wait_for(staff.witness(self._home).report)
        for site in self._sites:
            self.start_agent(site)
        self._told(progress, "the mirror and the manager", partial(self.watch_from, self._sites[-1]))

    def place(self, client: Client) -> list[str]:
        """What stands before a client's command; on its machine there is a gate then."""
        side = side_of(client, self._sites)
        if side == AWAY:
            self._have_gates(AWAY)
        return self.network.machines[side].command([])

    def start_agent(self, site: str) -> None:
        """Have a site's agent on its machine."""
        report = agent.background(self._home, site).report
        report.unlink(missing_ok=True)
        self._start(f"agent-{site}", site, "twinlog.traffic.agent", str(self._home.file), site)
        self._wait_for(report)

    def agent(self, site: str) -> list[psutil.Process]:
        """The agent of a site, and the command that went to its machine, which stops when the agent does."""
        command = psutil.Process(self._running[f"agent-{site}"].pid)
        return [*command.children(), command]

    def watch_from(self, site: str) -> None:
        """Have the manager, with its gate, and the mirror on one site's machine."""
        self._stop("manager")
        self._have_gates(*(other for other in self._sites if other != site))
        self._stop(f"gate-{site}")
        if self._mirror_at != site:
            self._stop_mirror()
            self.run(site, "link", "up")
            self._mirror_at = site
        report = manager.background(self._home).report
        report.unlink(missing_ok=True)
        self._start("manager", site, "twinlog.traffic.manager", str(self._home.file))
        self._wait_for(report)

    def stop_watching(self) -> None:
        """Have a gate on every machine and no manager anywhere."""
        self._stop("manager")
        self._have_gates(*self._sites)

    def _have_gates(self, *sites: str) -> None:
        for site in sites:
            if f"gate-{site}" not in self._running:
                self._start(f"gate-{site}", site, "twinlog", "gate", "-f", str(self._home.file))

    def bring_back(self, site: str) -> None:
        """Take a lost site back, on its own machine; the mirror begins there, and nobody watches."""
        self.stop_watching()
        self._stop_mirror()
        self.run(site, "return")
        self._mirror_at = site

    def switch_over(self, active: str) -> None:
        """Move the active role, from the machine whose brokers have to start again; the mirror stays there.

        Who watches is there too, which is beside the standby then.
        """
        self.watch_from(active)
        self.run(active, "switchover")

    def _stop_mirror(self) -> None:
        if self._mirror_at:
            self.run(self._mirror_at, "link", "down")

    def run(self, machine: str, *words: str) -> None:
        """Run a command of Twinlog on a machine to its end."""
        command = [*PYTHON, "twinlog", *words, "-f", str(self._home.file)]
        done = subprocess.run(
            self.network.machines[machine].command(command, alone=True),
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip())[-500:]
            raise SiteError(f"twinlog {' '.join(words)} at {machine}: {said}", where=str(self._logs))

    def close(self) -> None:
        """End all that was left running here; sites and mirror are the runner's."""
        for name in list(self._running):
            self._stop(name)

    def _start(self, name: str, machine: str, *words: str) -> None:
        command = self.network.machines[machine].command([*PYTHON, *words], alone=True)
        with (self._logs / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _stop(self, name: str) -> None:
        process = self._running.pop(name, None)
        if process is None:
            return
        # It is a child of the command that went there, and may not be there yet.
        pause, end = threading.Event(), time.monotonic() + STOP_TIMEOUT_S
        while process.poll() is None and not (found := psutil.Process(process.pid).children()):
            process.send_signal(signal.SIGCONT)
            if time.monotonic() > end:
                break
            pause.wait(LOOK_AGAIN_S)
        if process.poll() is None:
            processes.end(found, signal.SIGTERM)
            processes.end(processes.wait(found, STOP_TIMEOUT_S), signal.SIGKILL)
            # It stops itself when its child was stopped, and may see that only when both go on.
            process.send_signal(signal.SIGCONT)
        process.wait()

    def _wait_for(self, report: Path) -> None:
        pause, end = threading.Event(), time.monotonic() + START_TIMEOUT_S
        while not report.exists():
            if time.monotonic() > end:
                raise SiteError(f"{report.stem} did not start", hint=f"tail {self._logs}/*.log")
            pause.wait(LOOK_AGAIN_S)

    @staticmethod
    def _told(progress: Progress, name: str, act: Callable[[], None]) -> None:
        progress.begin(name)
        act()
        progress.end(name)
