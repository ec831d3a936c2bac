"""Rules for sites: how many, which is active, what a local and an existing one may have. Pure."""

from __future__ import annotations

from twinlog.spec import setting_rules
from twinlog.spec.address import WILDCARDS, address_problem, host_problem, is_loopback
from twinlog.spec.document import Path
from twinlog.spec.effective import broker_ports, controller_ports, is_remote
from twinlog.spec.finding import Finding, Findings, warning
from twinlog.spec.model import Broker, Bus, Site
from twinlog.spec.parts import names_of
from twinlog.spec.wording import nearest

MIN_HEAP_BYTES = 64 * 1024 * 1024
_MAX_SITES = 2
_LAST_PORT = 65535


def of_bus(bus: Bus) -> Findings:
    """One or two sites, one of them active."""
    sites: Path = ("sites",)
    if not bus.sites:
        yield Finding(
            sites, "a bus has at least one site", "sites: {a: {brokers: 3}, b: {brokers: 3}}", at_key=True
        )
    elif len(bus.sites) > _MAX_SITES:
        extra = list(bus.sites)[_MAX_SITES]
        hint = "an active and a standby are a bus; a third site is a bus of its own"
        yield Finding(
            (*sites, extra), f"a bus has at most two sites, found {len(bus.sites)}", hint, at_key=True
        )
    elif len(bus.sites) == 1:
        yield warning(sites, "with one site there is no standby", "add a second site", at_key=True)
    if bus.active is not None and bus.active not in bus.sites and bus.sites:
        near = nearest(bus.active, bus.sites)
        hint = f"did you mean {near}?" if near else f"the sites are {', '.join(bus.sites)}"
        yield Finding(("active",), f"there is no site {bus.active!r}", hint)


def of_site(bus: Bus, name: str) -> Findings:
    """What one site has, by what it is."""
    site, path = bus.sites[name], ("sites", name)
    given = site.given
    if "bootstrap" in given or site.client is not None:
        yield from _existing(site, path)
    else:
        yield from _local(site, path)


def _existing(site: Site, path: Path) -> Findings:
    if not site.bootstrap:
        empty = "bootstrap" in site.given
        what = "bootstrap names no address" if empty else "bootstrap is missing"
        yield Finding((*path, "bootstrap"), what, "a site that exists already needs bootstrap: [host:port]")
    if site.client is None:
        hint = "name the file with the settings of an administrator: client: a.properties"
        yield Finding((*path, "client"), "client is missing for a site that exists already", hint)
    for index, address in enumerate(site.bootstrap):
        if problem := address_problem(address):
            yield Finding((*path, "bootstrap", index), *problem)
    for field in names_of(Site):
        if field in site.given and field not in ("bootstrap", "client"):
            what = f"{field} cannot be set for a site that exists already"
            yield Finding((*path, field), what, "Twinlog does not run its brokers; remove it", at_key=True)


def _local(site: Site, path: Path) -> Findings:
    brokers = site.broker_specs
    if not brokers:
        yield Finding((*path, "brokers"), "a site has at least one broker", "brokers: 3")
    if len(brokers) == 1:
        what = "one broker keeps one copy of every record"
        yield warning((*path, "brokers"), what, "with brokers: 3 the site survives the loss of a broker")
    yield from _controllers(site, path)
    if len(site.racks) > len(brokers) > 0:
        what = f"{len(site.racks)} racks for {_count(len(brokers), 'broker')}"
        yield Finding((*path, "racks"), what, "a rack without a broker does nothing; remove it")
    yield from _place(site, path, None)
    yield from _heaps(site, path)
    for index, option in enumerate(site.jvm):
        if option.startswith(("-Xmx", "-Xms")):
            yield Finding((*path, "jvm", index), f"{option} contradicts memory", "use memory: of the site")
    yield from setting_rules.broker_settings(site.kafka, (*path, "kafka"))
    if not isinstance(site.brokers, int):
        for index, broker in enumerate(site.brokers):
            here = (*path, "brokers", index)
            yield from _place(broker, here, site)
            yield from setting_rules.broker_settings(broker.kafka, (*here, "kafka"))
    yield from _remote(site, path)


def _remote(site: Site, path: Path) -> Findings:
    """Nodes on other machines reach each other by real addresses, and their ports are known beforehand."""
    remote = [index for index, broker in enumerate(site.broker_specs) if is_remote(site, broker)]
    if (remote or site.remote) and is_loopback(site.advertise or site.listen):
        what = f"brokers on other machines cannot reach the controllers at {site.advertise or site.listen}"
        yield Finding((*path, "listen"), what, "listen: takes the address of the controllers' machine")
    if site.remote and site.port is None:
        yield Finding((*path, "port"), "port is missing for a site on other machines", "port: 9092")
    ported = broker_ports(site)
    for index in remote:
        broker, here = site.broker_specs[index], (*path, "brokers", index)
        host = broker.advertise or site.advertise or broker.listen or site.listen
        if index not in ported and not site.remote:
            what = "port is missing for a broker on another machine"
            yield Finding((*here, "port"), what, "port: 9092")
        if is_loopback(host) and broker.given:
            what = f"nobody on another machine can reach a broker at {host}"
            yield Finding((*here, "listen"), what, "listen: takes the address of the broker's machine")


def _controllers(site: Site, path: Path) -> Findings:
    here, count = (*path, "controllers"), site.controllers
    if count % 2 == 0:
        what = f"{count} controllers survive no more losses than {count - 1}"
        yield Finding(here, what, f"a quorum needs more than half: use {count - 1} or {count + 1}")
    elif count == 1:
        yield warning(here, "one controller: losing it stops the site", "production wants controllers: 3")


def _place(part: Site | Broker, path: Path, site: Site | None) -> Findings:
    """Hosts and directories of a site or of one of its brokers."""
    for field, host in (("listen", part.listen), ("advertise", part.advertise)):
        if host is not None and (problem := host_problem(host)):
            yield Finding((*path, field), *problem)
    listen = part.listen or (site.listen if site else None)
    advertise = part.advertise or (site.advertise if site else None)
    given = {"listen", "advertise"} & part.given
    if given and (advertise or listen) in WILDCARDS:
        field = "advertise" if part.advertise in WILDCARDS else "listen"
        what = f"clients cannot connect to {advertise or listen}"
        yield Finding((*path, field), what, "add advertise: with the name that clients reach it by")
    data = part.data or ()
    for index, directory in enumerate(data):
        if directory in data[:index]:
            yield Finding((*path, "data", index), f"{directory} stands here twice", "remove one")


def _heaps(site: Site, path: Path) -> Findings:
    heaps: list[tuple[Path, int]] = [
        ((*path, "memory"), site.memory),
        ((*path, "controller_memory"), site.controller_memory),
    ]
    for index, broker in enumerate(site.broker_specs):
        if broker.memory is not None:
            heaps.append(((*path, "brokers", index, "memory"), broker.memory))
    for here, memory in heaps:
        if memory < MIN_HEAP_BYTES:
            yield Finding(here, "Kafka does not run in less than 64MiB", "write a unit, as in 512MiB")


def ports(bus: Bus) -> Findings:
    """No two listeners on one address and port, gate included."""
    taken: dict[tuple[str, int], str] = {}
    reported: set[Path] = set()  # one clash of a site's `port:` brings others with it
    gate_host, _, gate_port = bus.gate.address.rpartition(":")
    if gate_port.isascii() and gate_port.isdigit():
        taken[gate_host.strip("[]"), int(gate_port[:6])] = "the gate"
    for name, site in bus.sites.items():
        for owner, path, host, numbers in _declared_ports(name, site):
            if numbers.stop - 1 > _LAST_PORT:
                hint = "a broker takes three ports from `port:` on, a controller one 1000 above the site's"
                yield Finding(path, f"{owner} would need port {numbers.stop - 1}", hint)
                continue
            clash = next((number for number in numbers if (host, number) in taken), None)
            if clash is not None and path not in reported:
                reported.add(path)
                hint = "a broker takes three ports from `port:` on; a site's next broker starts four later"
                yield Finding(path, f"{owner} and {taken[host, clash]} would both take port {clash}", hint)
            for number in numbers:
                taken.setdefault((host, number), owner)


def _declared_ports(name: str, site: Site) -> list[tuple[str, Path, str, range]]:
    """Owner, place, host and numbers of every port that the file declares."""
    result: list[tuple[str, Path, str, range]] = []
    for index, numbers in broker_ports(site).items():
        broker = site.broker_specs[index]
        own: Path = ("sites", name, "brokers", index, "port")
        path = own if broker.port else ("sites", name, "port")
        host = broker.listen or site.listen
        if host in WILDCARDS:  # on which machine is said by the other name
            host = broker.advertise or site.advertise or host
        result.append((f"broker {index + 1} of site {name}", path, host, numbers))
    if numbers := controller_ports(site):
        result.append((f"a controller of site {name}", ("sites", name, "port"), site.listen, numbers))
    return result


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
