"""The processes of a bus that look after traffic: the manager, and with leases the agents and a near witness.

`twinlog traffic up` leaves them all behind and `traffic down` ends them. An agent runs beside its site's
brokers, so only those of sites of this machine are started here; the witness should run where neither site
does, and is started here only if the file places it on this machine.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from twinlog.sites.background import Background
from twinlog.sites.home import Home
from twinlog.spec.address import is_loopback
from twinlog.traffic import agent, electorate, manager
from twinlog.traffic.journal import DIRECTORY
from twinlog.traffic.votes import WITNESS


def witness(home: Home) -> Background:
    """The witness as a process of its own."""
    command = (sys.executable, "-m", "twinlog.traffic.bystander", str(home.file))
    return Background(WITNESS, home.directory / DIRECTORY, command, timeout_s=20.0)


def everybody(home: Home) -> Iterator[Background]:
    """All that belong on this machine, in the order in which they are started."""
    if electorate.is_used(home):
        if is_loopback(electorate.addresses(home)[WITNESS].host):
            yield witness(home)
        for site in home.local_sites:
            if not home.bus.sites[site].remote:
                yield agent.background(home, site)
    yield manager.background(home)


def launch(home: Home) -> dict[str, int]:
    """Have all of them running; their pids by name."""
    if electorate.is_used(home):
        electorate.enrol_first(home)
    # Together: an agent that waits for the other's vote must not keep it from being started.
    begun = [(one, one.spawn()) for one in everybody(home)]
    return {one.name: one.wait(process) for one, process in begun}


def dismiss(home: Home) -> list[str]:
    """End all that run, the manager first, whoever the file wants there now; their names."""
    prefix = agent.background(home, "").name
    locks = sorted((home.directory / DIRECTORY).glob(f"{prefix}*.lock"))
    agents = [agent.background(home, lock.stem.removeprefix(prefix)) for lock in locks]
    return [one.name for one in (manager.background(home), *agents, witness(home)) if one.dismiss()]
