"""A channel's topic: one partition that every orderer of the channel writes to and reads.

`chain` makes it, writes the records of `records` to it and reads them back with `wire.tail`. Records are
written with acks=all by an idempotent producer, in the order in which they are posted (`posting`). What is
sent again in the place of an older record must not get lost, nor overtake another: `insist` has a producer
of its own that never gives up, and `settle` waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from twinlog.errors import KafkaError
from twinlog.ordering import exchange
from twinlog.ordering.localconfig import Retry
from twinlog.ordering.posting import Posting, Tell
from twinlog.ordering.retrying import Wait
from twinlog.ordering.steady import Steady
from twinlog.ordering.support import Unavailable
from twinlog.wire import topics
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.driver import ClientSettings, Heard, Sender
from twinlog.wire.tail import Tail

PARTITION = 0
MOST_BYTES = 99 * 1024 * 1024  # of one record: gRPC takes 100 MiB, and a record is more than its envelope
_FETCH_BYTES = 4 * 1024 * 1024  # of one answer; a bigger record comes all the same
_QUEUE_KIB = 256 * 1024
_QUEUE_RECORDS = 1_000_000  # streams limit themselves; what finds no room here is refused
_FOR_EVER = 0
_MOST_MS = 300_000
_LONGEST_S = 86_400.0  # for one record
_EXISTS = "TOPIC_ALREADY_EXISTS"

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Reach:
    """How a channel's log is reached, with how much patience, and how its topic is made."""

    access: Access
    retry: Retry
    replication: int = 3
    min_insync_replicas: int = 2
    told: Heard | None = None  # hears the drivers' statistics


class Topic:
    """The partition of one channel."""

    def __init__(self, name: str, reach: Reach, wait: Wait | None = None) -> None:
        self.name = name
        self._reach = reach
        self._wait = wait or threading.Event().wait  # for somebody who may be asked to end meanwhile
        self._lock = threading.Lock()  # for who writes
        self._posting: Posting | None = None
        self._steady: Steady | None = None

    def create(self) -> None:
        """Make the topic, unless it is there already: then it takes no right to make one.

        How large a record may be is left to the brokers: an update of the channel may raise what it takes.
        """
        if self._ask(lambda cluster: topics.describe(cluster, [self.name])):
            return
        configs = {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "unclean.leader.election.enable": "false",
            "min.insync.replicas": str(self._reach.min_insync_replicas),
        }
        wanted = topics.NewTopic(self.name, 1, self._reach.replication, configs=configs)
        try:
            self._ask(lambda cluster: topics.create(cluster, wanted))
        except KafkaError as error:
            if error.code != _EXISTS:
                raise

    def open(self) -> None:
        """Be ready to write."""
        self._posting = Posting(self.name, PARTITION, self._new_sender)

    def post(self, value: bytes) -> Future[int]:
        """Write a record; the future gives its offset, or `Unavailable` if nobody knows that it is there."""
        return self._opened().post(value)

    def post_together(self, values: Sequence[bytes], tells: Sequence[Tell]) -> None:
        """Write records that came together; each one's function is told of its end, or `Unavailable`."""
        self._opened().post_together(values, tells)

    def insist(self, value: bytes) -> None:
        """Write a record behind all others of this call, however long it takes."""
        with self._lock:
            if self._steady is None:
                self._steady = Steady(self.name, PARTITION, self._new_steady_sender, self._wait)
            self._steady.post(value)

    def settle(self, timeout_s: float) -> bool:
        """Wait until all that was insisted on is in the log; True if it is."""
        with self._lock:
            return self._steady is None or self._steady.settle(timeout_s)

    def read(self, offset: int) -> Tail:
        """A reader of the partition that begins at an offset."""
        timeouts = self._reach.retry.network_timeouts
        settings = {
            **self._network(),
            "max.partition.fetch.bytes": _FETCH_BYTES,
            "fetch.max.bytes": _FETCH_BYTES,
            "receive.message.max.bytes": MOST_BYTES + _FETCH_BYTES,
            # Both sites show the same to such a reader: aborted records are not copied to the standby.
            "isolation.level": "read_committed",
        }
        tail = Tail(self._reach.access, self.name, PARTITION, tuning=Tuning(), settings=settings)
        try:
            found = tail.reach(timeouts.read_timeout_s)
            if offset >= 0 and offset not in found:
                raise KafkaError(
                    f"the log of '{self.name}' has offsets {found.start} to {found.stop - 1}, not {offset}",
                    code="OFFSET_OUT_OF_RANGE",
                    hint="was it cut short? retention.ms of the topic must be -1",
                )
            tail.start(offset)
        except BaseException:
            tail.close()
            raise
        return tail

    def close(self) -> None:
        """Stop writing; what was not answered is told as unavailable."""
        posting, self._posting = self._posting, None
        if posting is not None:
            posting.close()
        with self._lock:
            if self._steady is not None:
                self._steady.close()

    def _opened(self) -> Posting:
        if self._posting is None:
            raise Unavailable("the channel is not open", where=self.name)
        return self._posting

    def _new_sender(self) -> Sender:
        retry = self._reach.retry
        backoff_s = retry.producer.retry_backoff_s
        # As Fabric's client: before each new attempt it asks who leads, again and again if nobody does.
        attempt_s = backoff_s + retry.metadata.retry_max * retry.metadata.retry_backoff_s
        again_s = retry.producer.retry_max * attempt_s
        settings = {
            **self._network(),
            "retries": max(1, round(again_s / backoff_s)),  # idempotence needs one
            "retry.backoff.ms": _ms(backoff_s),
            "retry.backoff.max.ms": _ms(backoff_s),
            "linger.ms": 0,  # what goes together is queued together, and waits for nothing else
            "queue.buffering.max.kbytes": _QUEUE_KIB,
            "queue.buffering.max.messages": _QUEUE_RECORDS,
        }
        timeout_s = min(_LONGEST_S, retry.network_timeouts.write_timeout_s + again_s)
        return Sender(self._reach.access, timeout_s=timeout_s, tuning=Tuning(MOST_BYTES), settings=settings)

    def _new_steady_sender(self) -> Sender:
        settings = {**self._network(), "message.timeout.ms": _FOR_EVER}
        return Sender(self._reach.access, timeout_s=0.0, tuning=Tuning(MOST_BYTES), settings=settings)

    def _network(self) -> ClientSettings:
        timeouts = self._reach.retry.network_timeouts
        settings: ClientSettings = {
            "client.id": "twinlog-orderer",
            "socket.connection.setup.timeout.ms": _ms(timeouts.dial_timeout_s, least_ms=1000),
            "socket.timeout.ms": _ms(timeouts.read_timeout_s, least_ms=10),
        }
        if self._reach.told is None:
            return settings
        return {**settings, "statistics.interval.ms": _ms(exchange.EVERY_S), "stats_cb": self._reach.told}

    def _ask(self, question: Callable[[Cluster], Answer]) -> Answer:
        timeouts = self._reach.retry.network_timeouts
        patience = Patience(
            connect_s=timeouts.dial_timeout_s,
            request_s=timeouts.read_timeout_s,
            total_s=timeouts.read_timeout_s,
        )
        cluster = Cluster(self._reach.access, patience=patience, client_id="twinlog-orderer")
        try:
            return question(cluster)
        finally:
            cluster.close()


def _ms(seconds: float, least_ms: int = 1) -> int:
    """A time as librdkafka takes it: what is out of its range is the nearest that is not."""
    return max(least_ms, min(_MOST_MS, round(seconds * 1000)))
