"""Rules for message sizes: what a broker takes, copies and can hold in memory. Pure."""

from __future__ import annotations

from itertools import pairwise

from twinlog.spec.document import Path
from twinlog.spec.effective import MESSAGE_BYTES, REPLICA_FETCH_BYTES, REQUEST_BYTES, setting_bytes
from twinlog.spec.finding import Finding, Findings, warning
from twinlog.spec.model import Bus
from twinlog.spec.site_rules import MIN_HEAP_BYTES
from twinlog.spec.units import format_bytes

# A broker holds a batch several times over while it checks, appends and copies it.
HEAP_PER_MESSAGE = 8
_SIZES = (MESSAGE_BYTES, REPLICA_FETCH_BYTES)


def of_bus(bus: Bus) -> Findings:
    """The sizes of every site that Twinlog runs, and that they are the same."""
    local = [name for name, site in bus.sites.items() if not site.exists_already]
    for name in local:
        yield from _of_site(bus, name)
    for first, second in pairwise(local):
        for setting in _SIZES:
            if setting_bytes(bus, first, setting) != setting_bytes(bus, second, setting):
                path = (
                    declared_at(bus, second, setting) or declared_at(bus, first, setting) or ("sites", second)
                )
                what = f"{setting} differs between the sites {first} and {second}"
                yield warning(path, what, "set it once, under kafka: of the bus")


def _of_site(bus: Bus, name: str) -> Findings:
    message, fetch, request = (setting_bytes(bus, name, setting) for setting in (*_SIZES, REQUEST_BYTES))
    declared = [path for setting in _SIZES if (path := declared_at(bus, name, setting))]
    for setting, size in zip(_SIZES, (message, fetch), strict=True):
        if size >= request:
            path = declared_at(bus, name, setting) or declared_at(bus, name, REQUEST_BYTES) or ("sites", name)
            hint = "a request holds at least one message: raise the one or lower the other"
            yield Finding(path, f"{setting} ({size}) is not below {REQUEST_BYTES} ({request})", hint)
    # Kafka's own defaults differ by twelve bytes, so only what was declared is judged.
    if declared and fetch < message:
        what = f"{REPLICA_FETCH_BYTES} ({fetch}) is below {MESSAGE_BYTES} ({message})"
        yield warning(declared[0], what, f"set {REPLICA_FETCH_BYTES} to {message} as well")
    if message < request:
        yield from _heaps(bus, name, message)


def _heaps(bus: Bus, name: str, message: int) -> Findings:
    site, needed = bus.sites[name], message * HEAP_PER_MESSAGE
    hint = f"a broker holds a batch several times over: at least {format_bytes(needed)}"
    for index, broker in enumerate(site.broker_specs):
        memory = site.memory if broker.memory is None else broker.memory
        if memory >= needed or memory < MIN_HEAP_BYTES:  # the second is reported for itself
            continue
        own: Path = ("sites", name, "brokers", index, "memory")
        at_site = ("sites", name, "memory") if "memory" in site.given else None
        path = own if broker.memory is not None else at_site or declared_at(bus, name, MESSAGE_BYTES)
        what = f"memory of {format_bytes(memory)} is too little for messages of {format_bytes(message)}"
        yield Finding(path or ("sites", name), what, hint)


def declared_at(bus: Bus, site: str, setting: str) -> Path | None:
    """Where the value that a site takes for a setting stands, if the file has one."""
    if setting in bus.sites[site].kafka:
        return ("sites", site, "kafka", setting)
    return ("kafka", setting) if setting in bus.kafka else None
