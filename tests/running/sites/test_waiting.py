"""Two that want the bus at once."""

from __future__ import annotations

import threading
from pathlib import Path

from twinlog.sites.state import StateFile

WAIT_S = 10.0


def test_who_can_wait_has_the_bus_when_it_is_free(tmp_path: Path) -> None:
    file, is_held, wanted = StateFile(tmp_path), threading.Event(), threading.Event()
    order: list[str] = []

    def hold() -> None:
        with file.locked("traffic"):
            is_held.set()
            wanted.wait(WAIT_S)
            order.append("traffic")

    def want() -> None:
        with file.locked("switchover", wait_s=WAIT_S):
            order.append("switchover")

    holder, other = threading.Thread(target=hold), threading.Thread(target=want)
    holder.start()
    assert is_held.wait(WAIT_S)
    other.start()
    wanted.set()
    for thread in (holder, other):
        thread.join(WAIT_S)
    assert order == ["traffic", "switchover"]
