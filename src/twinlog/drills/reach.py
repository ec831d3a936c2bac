"""How a drill's clients reach the bus: by the gate's address and with what printed client files say."""

from __future__ import annotations

from dataclasses import replace

from twinlog.drills.cast import USER
from twinlog.sites.home import Home
from twinlog.sites.layout import Listener
from twinlog.spec.effective import largest_message_bytes
from twinlog.traffic.entrance import addresses
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.driver import Settings

# What printed client files change of how long a silent broker is believed in, as it is without them.
JAVA_DEFAULTS = {"request.timeout.ms": "30000", "metadata.recovery.rebootstrap.trigger.ms": "300000"}
LIBRDKAFKA_DEFAULTS: Settings = {
    "socket.timeout.ms": 60_000,
    "socket.connection.setup.timeout.ms": 30_000,
    "reconnect.backoff.max.ms": 10_000,
    "metadata.recovery.rebootstrap.trigger.ms": 300_000,
}


def gate_access(home: Home) -> Access:
    """How the drill's user reaches the bus: by the one address."""
    access = home.user_access(USER, home.state().active)
    return replace(access, bootstrap=(str(addresses(home)[Listener.CLIENT]),))


def tuning_of(home: Home) -> Tuning:
    """What printed client files say beside the access."""
    return Tuning(message_max_bytes=largest_message_bytes(home.bus, home.state().active))
