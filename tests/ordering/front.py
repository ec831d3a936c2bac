"""An orderer without Kafka: everything real but for the log, which is a list in memory.

Its chain gives each record to the real state machine at once, and has a block cut as soon as the batch timer
would start, so that a message is in a block when its answer comes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from tests.ordering.network import SYSTEM, Network
from twinlog.ordering import callers, messages, records
from twinlog.ordering.blocks import Position
from twinlog.ordering.callers import SeekInfo, Target
from twinlog.ordering.chain import Chain
from twinlog.ordering.consuming import Actions, Consuming, PostTimeToCut, SetGate, StartTimer, WriteBlock
from twinlog.ordering.identity import Signer
from twinlog.ordering.ledger import Ledger
from twinlog.ordering.localconfig import FileLedger, General, LocalConfig, ServerTls
from twinlog.ordering.posting import Tell
from twinlog.ordering.process import Orderer
from twinlog.ordering.proto import common_pb2
from twinlog.ordering.registrar import Channel
from twinlog.ordering.support import Unavailable
from twinlog.ordering.writing import Writing, position_at_end

DEADLINE_S = 30.0
CHANNEL = "trades"


class MemoryChain:
    """A chain whose log is a list, and whose brokers can be taken away."""

    def __init__(self, channel: Channel, ledger: Ledger) -> None:
        self.ledger = ledger
        self.errored = threading.Event()
        self.trouble = ""
        self.is_gate_open = True
        self.failure = ""  # of every write from now on
        self.refusal = ""  # why nothing is taken at all
        self.log: list[bytes] = [records.connect()]
        self._gate = threading.Condition()
        self._machine = Consuming(channel, ledger.height, position_at_end(ledger) or Position(-1))
        self._writing = Writing(channel, ledger, lambda: None)

    def start(self) -> None:
        """There is nothing to wait for."""

    def halt(self) -> None:
        """Nor to end."""

    @property
    def is_ready(self) -> bool:
        if self.refusal:
            raise Unavailable(self.refusal)
        return self.is_gate_open

    def wait_ready(self, timeout_s: float) -> None:
        with self._gate:
            if not self._gate.wait_for(lambda: self.is_gate_open, timeout_s):
                raise Unavailable("the gate stays closed")

    def open_gate(self) -> None:
        with self._gate:
            self.is_gate_open = True
            self._gate.notify_all()

    def order_together(self, batch: Sequence[tuple[bytes, int, Tell]]) -> None:
        for envelope, sequence, tell in batch:
            error = self._post(records.normal(envelope, sequence)).exception()
            assert error is None or isinstance(error, Unavailable)
            tell(error)

    def configure(self, envelope: bytes, sequence: int) -> Future[int]:
        return self._post(records.config(envelope, sequence))

    def _post(self, record: bytes) -> Future[int]:
        posted: Future[int] = Future()
        if self.failure:
            posted.set_exception(Unavailable(self.failure))
            return posted
        self.take(record)
        posted.set_result(len(self.log) - 1)
        return posted

    def take(self, record: bytes) -> None:
        """A record of the log, whoever wrote it."""
        self.log.append(record)
        self._carry_out(self._machine.record(len(self.log) - 1, record))
        self._writing.flush()

    def _carry_out(self, actions: Actions) -> None:
        for action in actions:
            match action:
                case WriteBlock():
                    self._writing.add(action)
                case StartTimer():
                    self._carry_out(self._machine.timer_fired())
                case PostTimeToCut(number):
                    self.take(records.time_to_cut(number))
                case SetGate(is_open):
                    self.is_gate_open = is_open


@dataclass
class Front:
    """A running orderer and its clients."""

    network: Network
    orderer: Orderer
    target: Target
    chains: dict[str, MemoryChain]
    member: Signer = field(init=False)

    def __post_init__(self) -> None:
        self.member = self.network.signer("Org1", "client")

    def send(self, *envelopes: bytes) -> list[tuple[int, str]]:
        """The answers to envelopes on one stream."""
        return callers.broadcast(self.target, envelopes, DEADLINE_S)

    def status(self, *envelopes: bytes) -> list[int]:
        """As `send`, statuses only."""
        return [status for status, _ in self.send(*envelopes)]

    def transaction(self, data: bytes = b"data", signer: Signer | None = None, **header: Any) -> bytes:
        """A signed message for the channel."""
        kind = header.pop("kind", common_pb2.ENDORSER_TRANSACTION)
        channel_id = header.pop("channel_id", CHANNEL)
        return messages.signed(kind, channel_id, data, signer or self.member, **header)

    def seek(self, wanted: SeekInfo, channel_id: str = CHANNEL, signer: Signer | None = None) -> list[Any]:
        """Numbers of the blocks that a request gives, then its status."""
        return self.ask(callers.seek(channel_id, wanted, signer or self.member))

    def ask(self, request: bytes) -> list[Any]:
        """As `seek`, for a request as it is."""
        found = callers.deliver(self.target, request, DEADLINE_S)
        return [one if isinstance(one, int) else one.header.number for one in found]

    def create(self, channel_id: str = CHANNEL) -> int:
        """Create a channel; the status."""
        update = self.network.creation(channel_id, "Both", [self.network.signer("Org1")])
        return self.send(update.SerializeToString())[0][0]

    @property
    def channel(self) -> Channel:
        """The channel."""
        found = self.orderer._registrar.find(CHANNEL)
        assert found is not None
        return found

    @property
    def chain(self) -> MemoryChain:
        """The chain of the channel."""
        return self.chains[CHANNEL]

    @property
    def system(self) -> MemoryChain:
        """The chain of the system channel."""
        return self.chains[SYSTEM]


def local_config(network: Network, directory: Path) -> LocalConfig:
    """What an orderer of the network is told."""
    genesis = directory / "genesis.block"
    genesis.write_bytes(network.genesis.SerializeToString())
    return LocalConfig(
        general=General(
            listen_port=0,
            genesis_method="file",
            genesis_file=genesis,
            local_msp_dir=network.directory / "OrdererOrg/orderer1/msp",
            local_mspid="OrdererOrg",
        ),
        file_ledger=FileLedger(directory / "ledger"),
    )


@contextmanager
def running(
    network: Network,
    directory: Path,
    change: Callable[[LocalConfig], LocalConfig] = lambda config: config,
) -> Iterator[Front]:
    """An orderer in a thread of its own."""
    chains: dict[str, MemoryChain] = {}

    def make(channel: Channel, ledger: Ledger) -> Chain:
        chains[channel.channel_id] = MemoryChain(channel, ledger)
        return cast(Chain, chains[channel.channel_id])

    orderer = Orderer(change(local_config(network, directory)), make)
    started: Future[str] = Future()

    def serve() -> None:
        try:
            asyncio.run(orderer.run(lambda one: started.set_result(one.told()["address"])))
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        address = started.result(DEADLINE_S)
        yield Front(network, orderer, Target(address), chains)
    finally:
        orderer.stop()
        thread.join(DEADLINE_S)


def with_tls(tls: ServerTls) -> Callable[[LocalConfig], LocalConfig]:
    """The configuration with TLS at the port."""
    return lambda config: replace(config, general=replace(config.general, tls=tls))
