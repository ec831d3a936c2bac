"""Waiting for a site between attempts, as long as somebody listens there."""

from __future__ import annotations

import socket

import pytest

from twinlog.errors import SiteError
from twinlog.traffic import ground
from twinlog.traffic.ground import Pulse
from twinlog.wire.addresses import HostPort

TURNS = 20
PAUSE_S = 0.01


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience of a tenth of a second."""
    monkeypatch.setattr(ground, "SILENT_S", 0.1)


@pytest.fixture
def closed() -> HostPort:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return HostPort(*server.getsockname()[:2])


def test_site_at_which_nobody_listens_is_given_up_before_all_attempts(closed: HostPort) -> None:
    pulse = Pulse("b", [closed, closed])
    turns = 0
    with pytest.raises(SiteError, match="site b: nobody has listened") as caught:
        for turns in range(TURNS):  # noqa: B007
            pulse.wait(PAUSE_S)
    assert 1 < turns < TURNS
    assert caught.value.hint == "twinlog status --site b"
    with pytest.raises(SiteError):  # what comes next does not wait again
        pulse.wait(PAUSE_S)


def test_site_of_which_one_broker_listens_is_waited_for(closed: HostPort) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        pulse = Pulse("b", [closed, HostPort(*server.getsockname()[:2])])
        for _ in range(TURNS):
            pulse.wait(PAUSE_S)
