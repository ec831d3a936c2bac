"""A hand of a holder: a thread on the connection to one broker, for the partitions that it is told of.

What `reader` and `writer` have in common. Others put messages into its inbox; all the rest is touched
by the thread alone. It ends when it is told to, or when its connection breaks, and never silently:
`_give_up` tells of every partition that it had, those that came too late for it too.
"""

from __future__ import annotations

import queue
import threading
from abc import abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

from twinlog.errors import TwinlogError
from twinlog.wire.access import Access
from twinlog.wire.cluster import BrokerAddress
from twinlog.wire.connection import Connection

CONNECT_TIMEOUT_S = 10.0

Message = TypeVar("Message")


class Hand(threading.Thread, Generic[Message]):
    """One broker, and who talks to it."""

    def __init__(self, kind: str, broker: BrokerAddress, access: Access) -> None:
        super().__init__(name=f"{kind}-{broker.id}", daemon=True)
        self.broker = broker
        self._access = access
        self._inbox: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._ended = False

    def end(self) -> None:
        """End the thread when what is under way was answered."""
        self._ended = True
        self._inbox.put(None)

    @property
    def has_ended(self) -> bool:
        """True when it takes no more partitions."""
        return self._ended

    def run(self) -> None:
        """Work until the end, or until the connection breaks."""
        try:
            with Connection(self.broker.address, self._access, timeout_s=CONNECT_TIMEOUT_S) as connection:
                self._work(connection)
            self._break("this connection has ended")
        except TwinlogError as error:
            self._break(str(error))
        except Exception as error:  # whatever it is, the steward must hear that nobody works any more
            self._break(f"{type(error).__name__}: {error}")
            raise

    def _break(self, why: str) -> None:
        self._ended = True
        self._give_up(why)

    def _messages(self, wait_s: float = 0.0) -> Iterator[Message]:
        """All that is in the inbox; while it is empty, wait for so long."""
        try:
            message = self._inbox.get(block=wait_s > 0, timeout=wait_s if wait_s > 0 else None)
            while True:
                if message is not None:
                    yield message
                message = self._inbox.get_nowait()
        except queue.Empty:
            return

    @abstractmethod
    def _work(self, connection: Connection) -> None:
        """Do the work of this hand until it has ended."""

    @abstractmethod
    def _give_up(self, why: str) -> None:
        """Tell of every partition that it had, or was about to have."""
