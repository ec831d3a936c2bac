"""Whether a channel can follow its log: what its readers are told, and what is done about it.

`chain` tells it what it hears and has it look after the reader in every turn, from one thread; `errored` and
`trouble` may be read by any. What to do and when is decided by `health`. While a channel is errored nobody
should wait for its blocks, so those who do are woken.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from twinlog.errors import TwinlogError
from twinlog.ordering.health import Health, Step
from twinlog.ordering.localconfig import Retry
from twinlog.ordering.support import Unavailable
from twinlog.wire.deadlines import Clock
from twinlog.wire.tail import OUT_OF_RANGE, Tail

LOG = logging.getLogger("twinlog.ordering")
PROBE_S = 5.0


class Watch:
    """Over the log of one channel."""

    def __init__(self, channel_id: str, retry: Retry, wake: Callable[[], None], clock: Clock) -> None:
        self.errored = threading.Event()  # set while nobody should wait for blocks
        self.errored.set()
        self.trouble = ""  # why, for people
        self._channel_id = channel_id
        self._wake = wake
        self._clock = clock
        self._health = Health(
            grace_s=retry.network_timeouts.read_timeout_s, again_s=retry.consumer.retry_backoff_s
        )
        self._connecting: Future[int] | None = None

    def not_begun(self, why: str) -> None:
        """The log cannot be reached yet."""
        self.trouble = why
        LOG.warning("channel %s: %s", self._channel_id, why)

    def begun(self) -> None:
        """The log is being read."""
        self.trouble = ""
        self.errored.clear()

    def heard(self) -> None:
        """A record came."""
        self._health.heard()
        if self.errored.is_set():
            LOG.info("channel %s: reading again", self._channel_id)
            self.errored.clear()
        self.trouble = ""

    def stuck(self, why: str) -> None:
        """Nothing can go on before the log does."""
        self.trouble = why
        self._health.troubled(self._clock(), is_final=True)
        self._show()

    def look(
        self,
        tail: Tail,
        next_offset: int,
        standby_trouble: TwinlogError | None,
        connect: Callable[[], Future[int]],
    ) -> None:
        """See how reading goes, and do what is due about it."""
        trouble = tail.trouble()
        if trouble is not None:
            self.trouble = str(trouble)
            self._health.troubled(self._clock(), is_final=trouble.code in OUT_OF_RANGE)
        elif standby_trouble is not None:
            self.trouble = f"waiting for the standby: {standby_trouble}"
        is_connecting = self._connecting is not None and not self._connecting.done()
        match self._health.step(self._clock(), is_connecting=is_connecting):
            case Step.PROBE:
                self._health.probed(self._clock(), has_answered=self._has_leader(tail))
            case Step.CONNECT:
                tail.start(next_offset)  # librdkafka gives up on an offset out of range
                self._connect(connect)
        self._show()

    def ended(self, why: str) -> None:
        """Nothing more will come."""
        self.trouble = self.trouble or why
        self.errored.set()
        self._wake()

    def _show(self) -> None:
        if self._health.is_errored and not self.errored.is_set():
            LOG.error("channel %s cannot read its log: %s", self._channel_id, self.trouble)
            self.errored.set()
            self._wake()

    def _has_leader(self, tail: Tail) -> bool:
        try:
            tail.reach(PROBE_S)
        except TwinlogError as error:
            self.trouble = str(error)
            return False
        return True

    def _connect(self, connect: Callable[[], Future[int]]) -> None:
        try:
            self._connecting = connect()
        except Unavailable as error:
            self.trouble = str(error)
