"""A cluster as a client sees it: its brokers, its leaders, and a connection to each.

All of administration goes through one of these. Connections are opened when first needed and
dropped on any error, together with what was believed about the cluster; the next attempt reads
both again. No threads: a Cluster belongs to one caller at a time.
What may succeed later is tried again, with growing pauses, until one deadline; a write whose
answer got lost is repeated only where the caller says that doing it twice does no harm.
In KRaft any broker takes an administrative request and forwards it. Metadata's "controller" is
then just some broker, so it is not offered here: the real one is `quorum.describe(...).leader_id`.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, repeat
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata.metadata import MetadataRequest, MetadataResponse

from twinlog.errors import KafkaError, SiteError, TwinlogError, UnknownOutcome
from twinlog.wire import codes
from twinlog.wire.access import Access
from twinlog.wire.addresses import HostPort
from twinlog.wire.connection import Connection
from twinlog.wire.deadlines import Clock, Deadline
from twinlog.wire.failures import ConnectionFailed
from twinlog.wire.tls import context_for, uses_tls

if TYPE_CHECKING:
    from twinlog.wire.login import Answer

Result = TypeVar("Result")
Wait = Callable[[float], object]
_SHORTEST_TOTAL_S = 0.1
_SHORTEST_S = 0.01  # a timeout of zero would mean: do not wait at all


class Patience(NamedTuple):
    """How long to wait for what, in seconds; the last pause is repeated."""

    connect_s: float = 5.0
    request_s: float = 15.0
    total_s: float = 30.0
    pauses_s: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)

    @classmethod
    def within(cls, total_s: float) -> Self:
        """For what must be answered in so long; an address that says nothing leaves time for the next one."""
        bound_s = max(_SHORTEST_TOTAL_S, total_s)
        return cls(
            connect_s=min(cls().connect_s, bound_s / 2),
            request_s=min(cls().request_s, bound_s),
            total_s=bound_s,
        )

    def pauses(self) -> Iterator[float]:
        """The pauses between attempts, without an end."""
        return chain(self.pauses_s, repeat(self.pauses_s[-1]))


class BrokerAddress(NamedTuple):
    """A broker that is registered and alive, and where this client reaches it."""

    id: int
    address: HostPort
    rack: str | None = None


def is_worth_retrying(error: TwinlogError, *, repeatable: bool) -> bool:
    """True if the same attempt may succeed a little later and does no harm if repeated."""
    if isinstance(error, UnknownOutcome):
        return repeatable
    return isinstance(error, KafkaError | ConnectionFailed) and error.retriable


class Cluster:
    """The brokers behind the bootstrap addresses of an access."""

    def __init__(
        self,
        access: Access,
        *,
        patience: Patience | None = None,
        client_id: str = "twinlog",
        clock: Clock = time.monotonic,
        wait: Wait | None = None,
    ) -> None:
        self.access = access
        self.patience = patience if patience is not None else Patience()
        self._client_id = client_id
        self._clock = clock
        # Waiting on an event instead of sleeping: a caller who gives its own can wake us.
        self._wait: Wait = wait if wait is not None else threading.Event().wait
        self._bootstrap = tuple(HostPort.parse(address) for address in access.bootstrap)
        self._tls: ssl.SSLContext | None = context_for(access) if uses_tls(access) else None
        self._first: Connection | None = None
        self._connections: dict[int, Connection] = {}
        self._brokers: dict[int, BrokerAddress] = {}
        self._cluster_id = ""
        self._leaders: dict[tuple[str, int], int] = {}
        self._deadline: Deadline | None = None

    @property
    def where(self) -> str:
        """How errors name this cluster."""
        return ",".join(self.access.bootstrap)

    # What is known

    def brokers(self) -> tuple[BrokerAddress, ...]:
        """Every broker that is alive, asked anew, in the order of ids."""
        self.retry(self._refresh)
        return tuple(sorted(self._brokers.values()))

    @property
    def cluster_id(self) -> str:
        """The id that the cluster was formatted with."""
        if not self._cluster_id:
            self.retry(self._refresh)
        return self._cluster_id

    def leader(self, topic: str, partition: int) -> int:
        """The id of the broker that leads a partition; asked anew after any error."""
        if (topic, partition) not in self._leaders:
            self._find_leaders(topic)
        if (topic, partition) not in self._leaders:
            what = f"finding the leader of {topic}-{partition}"
            raise codes.error_for(
                codes.LEADER_NOT_AVAILABLE, "no leader, or no such partition", what, self.where
            )
        return self._leaders[(topic, partition)]

    def believe(self, leaders: Mapping[tuple[str, int], int]) -> None:
        """Take it from somebody who has just asked who leads these partitions."""
        self._leaders.update(leaders)

    # Connections (one attempt each: for use inside `retry`)

    def any_broker(self) -> Connection:
        """A connection to some broker: the one used last, else the first address that answers."""
        for connection in (self._first, *self._connections.values()):
            if connection is not None and connection.is_open:
                return connection
        failures: list[TwinlogError] = []
        known = (broker.address for broker in self._brokers.values())
        for address in dict.fromkeys((*self._bootstrap, *known)):
            try:
                self._first = self._open(address)
                return self._first
            except (KafkaError, SiteError) as failure:
                failures.append(failure)
        if not failures:
            raise SiteError("there is no bootstrap address", hint="is bootstrap.servers missing?")
        if len(failures) == 1:
            raise failures[0]
        raise self._unreachable(failures)

    def broker(self, broker_id: int) -> Connection:
        """A connection to one broker."""
        connection = self._connections.get(broker_id)
        if connection is not None and connection.is_open:
            return connection
        if broker_id not in self._brokers:
            self._refresh()
        if broker_id not in self._brokers:
            raise ConnectionFailed(
                f"broker {broker_id} is not among the live brokers",
                retriable=True,
                where=self.where,
                hint="twinlog status",
            )
        address = self._brokers[broker_id].address
        if self._first is not None and self._first.is_open and self._first.address == address:
            return self._first
        self._connections[broker_id] = self._open(address)
        return self._connections[broker_id]

    def forget(self) -> None:
        """Drop all connections and all that was believed about the cluster."""
        for connection in (self._first, *self._connections.values()):
            if connection is not None:
                connection.close()
        self._first = None
        self._connections.clear()
        self._leaders.clear()
        # A broker that answers, but wrongly, must not be the first one asked for ever.
        self._bootstrap = self._bootstrap[1:] + self._bootstrap[:1]

    def close(self) -> None:
        """End all connections."""
        self.forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Work

    def once(
        self,
        request: ApiMessage,
        answer: type[Answer],
        *,
        broker_id: int | None = None,
        min_version: int = 0,
        max_version: int | None = None,
    ) -> Answer:
        """Send a request to any broker, or to the named one, a single time."""
        connection = self.any_broker() if broker_id is None else self.broker(broker_id)
        return connection.call(
            request,
            answer,
            timeout_s=self._within(self.patience.request_s),
            min_version=min_version,
            max_version=max_version,
        )

    def ask(
        self,
        request: ApiMessage,
        answer: type[Answer],
        judge: Callable[[Answer], object],
        *,
        broker_id: int | None = None,
        repeatable: bool = False,
    ) -> Answer:
        """Send a request to any broker, or to the named one, until `judge` does not raise."""

        def attempt() -> Answer:
            got = self.once(request, answer, broker_id=broker_id)
            judge(got)
            return got

        return self.retry(attempt, repeatable=repeatable)

    def retry(self, attempt: Callable[[], Result], *, repeatable: bool = False) -> Result:
        """Run an attempt until it succeeds, fails for good, or the time is over."""
        said: TwinlogError | None = None
        with self._bounded() as deadline:
            for pause_s in self.patience.pauses():
                try:
                    return attempt()
                except TwinlogError as error:
                    again = is_worth_retrying(error, repeatable=repeatable)
                    if again or not isinstance(error, KafkaError):
                        self.forget()
                    # An attempt that was cut short only says so; the one before said more.
                    if said is not None and deadline.passed and isinstance(error, ConnectionFailed):
                        raise said from error
                    if not again or deadline.remaining_s() <= pause_s:
                        raise
                    said = error
                self._wait(pause_s)
        raise AssertionError("the pauses have no end")

    def wait_until(self, missing: Callable[[], str], what: str) -> None:
        """Repeat a question until its answer, what is still missing, is empty."""
        with self._bounded() as deadline:
            for pause_s in self.patience.pauses():
                still = self.retry(missing)
                if not still:
                    return
                if deadline.remaining_s() <= pause_s:
                    raise SiteError(
                        f"{what} took more than {deadline.timeout_s:g} s: {still}",
                        where=self.where,
                        hint="are all brokers up? twinlog status",
                    )
                self._wait(pause_s)

    @contextmanager
    def _bounded(self) -> Iterator[Deadline]:
        """The deadline of the outermost work under way: its parts share the time."""
        if self._deadline is not None:
            yield self._deadline
            return
        self._deadline = Deadline(self.patience.total_s, self._clock)
        try:
            yield self._deadline
        finally:
            self._deadline = None

    def _within(self, timeout_s: float) -> float:
        if self._deadline is None:
            return timeout_s
        return max(_SHORTEST_S, min(timeout_s, self._deadline.remaining_s()))

    def _open(self, address: HostPort) -> Connection:
        return Connection(
            address,
            self.access,
            timeout_s=self._within(self.patience.connect_s),
            client_id=self._client_id,
            tls=self._tls,
            clock=self._clock,
        )

    def _refresh(self) -> None:
        answer = self._metadata(())
        self._cluster_id = answer.cluster_id or ""
        self._brokers = {
            broker.node_id: BrokerAddress(broker.node_id, HostPort(broker.host, broker.port), broker.rack)
            for broker in answer.brokers
        }

    def _find_leaders(self, topic: str) -> None:
        (found,) = self._metadata((topic,)).topics
        codes.check(found.error_code, None, f"finding the leaders of topic '{topic}'", self.where)
        for partition in found.partitions:
            if partition.error_code == codes.NONE:
                self._leaders[(topic, partition.partition_index)] = partition.leader_id

    def _metadata(self, topics: tuple[str, ...]) -> MetadataResponse:
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
        )
        answer = self.once(request, MetadataResponse)
        codes.check(answer.error_code, None, "reading the cluster's metadata", self.where)
        return answer

    def _unreachable(self, failures: list[TwinlogError]) -> TwinlogError:
        """One error for all addresses: permanent if one of them is, as that one says most."""
        for failure in failures:
            if not is_worth_retrying(failure, repeatable=False):
                return failure
        said = "; ".join(str(failure) for failure in failures)
        hint = failures[0].hint
        return ConnectionFailed(f"no address answers: {said}", retriable=True, where="", hint=hint)
