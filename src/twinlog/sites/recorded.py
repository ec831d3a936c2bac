"""A bus as it was brought up, from its state and from what its nodes were started with.

For commands that must work while the file is wrong, or no longer has what runs: `down`, `destroy`, `logs`
and `status`. Enough is known here to find, ask, stop and delete what is there, and no more: whatever the
file alone says (topics, users, clusters that exist already) is missing, so nothing may be planned, applied
or started from it. `as_recorded` is pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from twinlog.sites import properties
from twinlog.sites.home import Home
from twinlog.sites.layout import FIRST_CONTROLLER, IDS_PER_SITE, Listener
from twinlog.sites.state import DIRECTORY, BusState, SiteState, StateFile
from twinlog.spec.file import FILE_NAME
from twinlog.spec.model import Broker, Bus, Site

Settings = Mapping[int, Mapping[str, str]]  # node id → what it was started with; only of nodes that are here


def as_recorded(state: BusState, settings: Settings) -> Bus:
    """The bus of a state, with the addresses that its nodes were told."""
    sites = {name: _site(site, settings) for name, site in state.sites.items()}
    return Bus(bus=state.bus, active=state.active, sites=sites)


def _site(site: SiteState, settings: Settings) -> Site:
    first = site.index * IDS_PER_SITE + 1
    controllers = [number for number in site.nodes if number - first + 1 >= FIRST_CONTROLLER]
    brokers = set(site.nodes) - set(controllers)
    return Site(
        brokers=tuple(_broker(settings.get(number)) for number in range(first, max(brokers, default=0) + 1)),
        controllers=len(controllers),
        remote=settings.keys().isdisjoint(controllers),
    )


def _broker(told: Mapping[str, str] | None) -> Broker:
    if told is None:
        return Broker(remote=True)
    addresses = (one.partition("://") for one in told.get("advertised.listeners", "").split(","))
    hosts = {name: address.rpartition(":")[0].strip("[]") for name, _, address in addresses}
    return Broker(advertise=hosts.get(Listener.LINK.name), remote=False)


def read_settings(directory: Path, state: BusState) -> Settings:
    """What the nodes of this machine were started with, by node id; those that never were, with nothing."""
    found: dict[int, Mapping[str, str]] = {}
    for site in state.sites.values():
        for number, node in site.nodes.items():
            if not node.formatted or any(Path(path).exists() for path in node.data):
                found[number] = {}
    for path in directory.glob("sites/*/*/server.properties"):
        settings = properties.written(path.read_text())
        found[int(settings["node.id"])] = settings
    return found


def home_at(file: Path) -> Home | None:
    """The bus that was brought up with a file at this place; None if none was."""
    directory = file.absolute().parent.resolve() / DIRECTORY
    state = StateFile(directory).read()
    return Home(as_recorded(state, read_settings(directory, state)), file) if state is not None else None


def with_forgotten(home: Home) -> Home:
    """The same bus with the sites that are still there and that its file no longer has."""
    known = home_at(home.file)
    if known is None:
        return home
    sites = {**known.bus.sites, **home.bus.sites}
    return Home(home.bus.but(sites=sites), home.file)


def find(start: Path) -> Path | None:
    """Where the file of the nearest bus was, here or above; None if there is no bus."""
    for directory in (start, *start.parents):
        if StateFile(directory / DIRECTORY).path.exists():
            return directory / FILE_NAME
    return None
