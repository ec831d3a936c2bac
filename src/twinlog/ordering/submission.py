"""Many transactions from many clients: sent, timed, and each one's end known or called unknown.

`twinlog order submit` and the drills of the ordering service use it. Each client is a thread with a stream
to one orderer, sends its transactions in order and keeps some of them on their way. A stream that ends
takes what was not answered with it: nobody knows whether the log has it, so it is UNKNOWN and never sent
again. The client goes on with its next transaction at the next orderer.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from twinlog.ordering import messages
from twinlog.ordering.callers import BROADCAST, Target
from twinlog.ordering.identity import Signer
from twinlog.ordering.proto import common_pb2, orderer_pb2
from twinlog.ordering.statuses import INTERNAL_SERVER_ERROR, NAMES, SUCCESS

DONE = "DONE"
NOT_DONE = "NOT_DONE"
UNKNOWN = "UNKNOWN"
RECONNECT_S = 0.2
CONNECT_S = 2.0
PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_END: None = None


@dataclass(frozen=True)
class Load:
    """What is to be sent."""

    channel_id: str
    transactions: int
    clients: int = 1
    rate_per_s: float = 0.0  # of all clients together; 0 is as fast as it goes
    size_bytes: int = 1024  # of each transaction's own data
    in_flight: int = 500  # of one client
    timeout_s: float = 60.0  # without any answer
    run_id: str = "run"


@dataclass
class Sent:
    """One transaction and what became of it."""

    client: int
    number: int
    outcome: str = UNKNOWN
    status: str = ""
    latency_s: float = 0.0


@dataclass
class Outcome:
    """What became of all of them."""

    sent: list[Sent] = field(default_factory=list)
    seconds: float = 0.0
    moves: int = 0  # to another orderer

    @property
    def counts(self) -> dict[str, int]:
        """How many ended how."""
        found = Counter(one.outcome for one in self.sent)
        return {name: found.get(name, 0) for name in (DONE, NOT_DONE, UNKNOWN)}

    @property
    def refusals(self) -> dict[str, int]:
        """The statuses of those that were not acknowledged, as far as there was an answer."""
        return dict(Counter(one.status for one in self.sent if one.outcome != DONE and one.status))

    @property
    def tx_per_s(self) -> float:
        """How many were acknowledged in a second."""
        return self.counts[DONE] / self.seconds if self.seconds > 0 else 0.0

    @property
    def latency_ms(self) -> dict[str, float]:
        """Percentiles of the time from sending to the answer."""
        ordered = sorted(one.latency_s for one in self.sent if one.outcome == DONE)
        if not ordered:
            return {}
        last = len(ordered) - 1
        return {
            f"p{percent:g}": round(ordered[min(last, int(len(ordered) * percent / 100))] * 1000, 2)
            for percent in PERCENTILES
        }

    def write(self, file: Path, run_id: str) -> None:
        """Keep it, one transaction a line behind the run's name, for `twinlog order verify --history`."""
        with file.open("w") as out:
            out.write(json.dumps({"run": run_id}) + "\n")
            for one in self.sent:
                line = {
                    "client": one.client,
                    "number": one.number,
                    "outcome": one.outcome,
                    "status": one.status,
                }
                out.write(json.dumps(line) + "\n")


def read_history(file: Path) -> tuple[str, list[Sent]]:
    """What `Outcome.write` has kept: the run's name and its transactions."""
    with file.open() as lines:
        run_id: str = json.loads(next(lines))["run"]
        return run_id, [Sent(**json.loads(line)) for line in lines]


def transaction(load: Load, signer: Signer, client: int, number: int) -> bytes:
    """One transaction; its data begin with who sent it and its number."""
    data = identify(load.run_id, client, number)
    data += b"." * max(0, load.size_bytes - len(data))
    kind = common_pb2.ENDORSER_TRANSACTION
    return messages.signed(kind, load.channel_id, data, signer, int(time.time()))


def identify(run_id: str, client: int, number: int) -> bytes:
    """The beginning of a transaction's data."""
    return f"{run_id}/{client}/{number}/".encode()


def run(
    load: Load,
    targets: Sequence[Target],
    signer_of: Callable[[int], Signer],
    advance: Callable[[int], None] = lambda count: None,
) -> Outcome:
    """Send everything; returns when every transaction has its end."""
    outcome = Outcome()
    clients = []
    for number in range(load.clients):
        share = load.transactions // load.clients + (number < load.transactions % load.clients)
        clients.append(_Client(load, number, share, targets, signer_of(number), advance))
    began_s = time.perf_counter()
    for client in clients:
        client.thread.start()
    for client in clients:
        client.thread.join()
    outcome.seconds = time.perf_counter() - began_s
    for client in clients:
        if client.error is not None:
            raise client.error
        outcome.sent += client.sent
        outcome.moves += client.moves
    return outcome


class _Client:
    """One client: a thread, and the stream that it has now."""

    def __init__(
        self,
        load: Load,
        number: int,
        share: int,
        targets: Sequence[Target],
        signer: Signer,
        advance: Callable[[int], None],
    ) -> None:
        self.sent: list[Sent] = []
        self.moves = 0
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._guarded, name=f"client-{number}", daemon=True)
        self._load = load
        self._number = number
        self._share = share
        self._targets = targets
        self._signer = signer
        self._advance = advance
        self._began_s = 0.0

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self.error = error

    def _run(self) -> None:
        place = self._number % len(self._targets)
        self._began_s = heard_s = time.monotonic()
        pause = threading.Event()
        while len(self.sent) < self._share:
            if self._stream(self._targets[place]):
                heard_s = time.monotonic()
            if len(self.sent) >= self._share:
                return
            if time.monotonic() - heard_s > self._load.timeout_s:
                self._give_up()
                return
            place = (place + 1) % len(self._targets)
            self.moves += 1
            pause.wait(RECONNECT_S)

    def _give_up(self) -> None:
        """What nobody took was not sent: that much is known."""
        for number in range(len(self.sent), self._share):
            self.sent.append(Sent(self._number, number, NOT_DONE, "nobody answers"))

    def _stream(self, target: Target) -> bool:
        """Send on one stream until it ends or all is sent; True if anything was answered."""
        outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        waiting: deque[tuple[Sent, float]] = deque()
        answered = False
        with target.channel() as channel:
            if not _is_reached(channel):
                return False
            call = channel.stream_stream(BROADCAST)(iter(outgoing.get, _END), timeout=None)
            try:
                self._fill(outgoing, waiting, 1)  # one that is still starting refuses the first
                for raw in _with_deadline(call, self._load.timeout_s):
                    response = orderer_pb2.BroadcastResponse.FromString(raw)
                    one, began_s = waiting.popleft()
                    one.latency_s = time.perf_counter() - began_s
                    is_good = response.status == SUCCESS
                    one.outcome = _outcome(response.status)
                    one.status = NAMES.get(response.status, str(response.status))
                    answered = answered or is_good
                    self._advance(1)
                    if not is_good:
                        break
                    self._fill(outgoing, waiting, self._load.in_flight)
                    if not waiting:
                        break
            except grpc.RpcError:
                pass  # what was not answered stays unknown
            finally:
                outgoing.put(_END)
                call.cancel()
        self._advance(len(waiting))
        return answered

    def _fill(
        self, outgoing: queue.SimpleQueue[bytes | None], waiting: deque[tuple[Sent, float]], most: int
    ) -> None:
        """Send as many as may be on their way, and as are due."""
        load = self._load
        while len(waiting) < most and len(self.sent) < self._share:
            if load.rate_per_s > 0:
                due_s = self._began_s + len(self.sent) * load.clients / load.rate_per_s
                early_s = due_s - time.monotonic()
                if early_s > 0:
                    if waiting:
                        return
                    threading.Event().wait(early_s)
            one = Sent(self._number, len(self.sent))
            self.sent.append(one)
            waiting.append((one, time.perf_counter()))
            outgoing.put(transaction(load, self._signer, one.client, one.number))


def _is_reached(channel: grpc.Channel) -> bool:
    """True if an orderer is there; what is sent to one that is not would be unknown for nothing."""
    try:
        grpc.channel_ready_future(channel).result(CONNECT_S)
    except grpc.FutureTimeoutError:
        return False
    return True


def _outcome(status: int) -> str:
    """What an answer says: with an unavailable service the record may have got to a broker all the same."""
    if status == SUCCESS:
        return DONE
    return UNKNOWN if status >= INTERNAL_SERVER_ERROR else NOT_DONE


def _with_deadline(call: grpc.Call, timeout_s: float) -> Iterator[bytes]:
    """The answers of a stream; one that stays silent for too long is cancelled."""
    timer: threading.Timer | None = None
    heard_s = time.monotonic()

    def look() -> None:
        nonlocal timer
        left_s = heard_s + timeout_s - time.monotonic()
        if left_s <= 0:
            call.cancel()
            return
        timer = threading.Timer(left_s, look)
        timer.daemon = True
        timer.start()

    look()
    try:
        for raw in call:
            heard_s = time.monotonic()
            yield raw
    finally:
        if timer is not None:
            timer.cancel()
