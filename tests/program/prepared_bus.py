"""A bus that has its state, keys and ports but runs nothing: enough for what needs no broker."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from twinlog.sites.authorities import Kind
from twinlog.sites.certificates import utc_now
from twinlog.sites.home import Home
from twinlog.sites.pki import Pki
from twinlog.spec.load import load

FILE = """\
bus: orders
sites:
  a: {brokers: 1}
  b: {brokers: 1}
topics:
  orders: {max_message: 4MB}
users:
  shop: {produce: [orders], quota: {produce: 5MB/s}}
  stock: {auth: scram-sha-256, consume: [orders], groups: [stock-*]}
  given: {consume: [orders], password: {env: GIVEN_PASSWORD}}
  till: {auth: mtls, produce: [orders]}
"""


def prepare(directory: Path, text: str = FILE, now: Callable[[], datetime] = utc_now) -> Home:
    """Write the file and decide what `up` would decide, with certificates made at that time."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "twinlog.yaml"
    file.write_text(text)
    home = Home(load(file, {}).bus, file, {})
    home.pki = Pki(home.directory / "pki", home.bus.bus, home.bus.certificates, now)
    home.allocate()
    home.pki.ensure()
    for site in home.local_sites:
        for node in home.layout(site).nodes:
            home.issue_node_certificates(node)
    home.pki.issue(Kind.LINK, "admin")
    return home
