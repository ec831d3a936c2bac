"""Whether somebody listens at an address; nothing is said to whoever does.

For those that wait for a site, and for those that see none of its processes: a site may run in containers, or
on a machine that has the same files.
"""

from __future__ import annotations

import socket

from twinlog.wire.addresses import HostPort

CONNECT_S = 0.5


def listens(address: HostPort) -> bool:
    """True if a connection is taken."""
    try:
        socket.create_connection((address.host, address.port), CONNECT_S).close()
    except OSError:
        return False
    return True
