"""The steps of a channel to its log: topic, producer, CONNECT, reader.

`chain` takes them in its own thread, each with the patience that the orderer's file gives. CONNECT comes
before anything else is written, so that the partition is not empty and offset 0 is never that of a
message. A topic that cannot be made is no reason to end: somebody else may have made it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from twinlog.errors import KafkaError, TwinlogError
from twinlog.ordering import records
from twinlog.ordering.localconfig import Retry
from twinlog.ordering.retrying import AskedToEnd, Result, Wait, retried
from twinlog.ordering.topic import Topic
from twinlog.wire.tail import Tail

LOG = logging.getLogger("twinlog.ordering")
_NO_SUCH_NAME = "INVALID_TOPIC_EXCEPTION"  # stays so, however often it is tried
_LOOK_S = 0.1
_NOT_AT_ALL_S = 0.0


@dataclass(frozen=True)
class Opened:
    """A log that is read."""

    tail: Tail
    connected_at: int  # the offset of our CONNECT: what was in the log before is older than this process


def open_log(topic: Topic, first: int, retry: Retry, wait: Wait, troubled: Callable[[str], None]) -> Opened:
    """Reach a channel's log and read it from an offset on; `AskedToEnd` if the wait says so."""

    def patiently(what: str, attempt: Callable[[], Result]) -> Result:
        def failed(error: TwinlogError) -> None:
            troubled(f"{what}: {error}")
            is_final = isinstance(error, KafkaError) and error.code == _NO_SUCH_NAME
            if is_final or isinstance(error, AskedToEnd):
                raise error

        return retried(attempt, retry, wait, failed=failed)

    try:
        patiently("making the topic", topic.create)
    except AskedToEnd:
        raise
    except TwinlogError as error:
        LOG.warning("topic %s was not made: %s", topic.name, error)
    topic.open()
    connect = records.connect()
    connected_at = patiently("writing CONNECT", lambda: _ended(topic.post(connect), wait))
    return Opened(patiently("reading", lambda: topic.read(first)), connected_at)


def _ended(future: Future[int], wait: Wait) -> int:
    """The result of a future, for somebody who may be asked to end meanwhile."""
    while True:
        try:
            return future.result(_LOOK_S)
        except TimeoutError:
            if wait(_NOT_AT_ALL_S):
                raise AskedToEnd("asked to end") from None
