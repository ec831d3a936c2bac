"""Asks the voters what they know, in a thread of its own, for those who may not wait for an answer.

The agent and the manager have one each. Both look at it every turn: the agent must end brokers within
half a second of their lease, and a voter that hangs takes longer than that to be given up. What must stay
true: looking never waits; voters are asked only while somebody looks; answers to what was asked before a
given moment can be told from later ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from twinlog.errors import TwinlogError
from twinlog.traffic.clock import clock_s
from twinlog.traffic.votes import Answer

JOIN_TIMEOUT_S = 5.0


class Inquiry:
    """What the voters said last, from `with` until its end."""

    def __init__(
        self,
        ask: Callable[[], Mapping[str, Answer]],
        every_s: float,
        clock: Callable[[], float] = clock_s,
    ) -> None:
        self._ask = ask
        self._every_s = every_s
        self._clock = clock
        self._wanted = threading.Event()
        self._ended = threading.Event()
        self._heard: tuple[float, Mapping[str, Answer]] = (float("-inf"), {})
        self._thread = threading.Thread(target=self._go_on, name="inquiry", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._wanted.set()
        self._thread.join(JOIN_TIMEOUT_S)

    def told(self, since_s: float) -> Mapping[str, Answer]:
        """The answers of those who were asked at this moment or later; all are asked again meanwhile."""
        self._wanted.set()
        asked_s, answers = self._heard
        return answers if asked_s >= since_s else {}

    def _go_on(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._ended.is_set():
                return
            asked_s = self._clock()
            try:
                self._heard = asked_s, self._ask()
            except (TwinlogError, OSError):
                self._heard = asked_s, {}  # its papers, say, are being replaced
            self._ended.wait(max(0.0, asked_s + self._every_s - self._clock()))
