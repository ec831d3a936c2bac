"""The channels of one orderer: found on disk at the start, made when the log says so.

The process opens one Registrar; Broadcast and Deliver look channels up in it. A `Channel` stands between a
chain, which cuts blocks, and the configuration that tells how: it is the chain's Support, and what sessions
write to and read from. The system channel comes from the genesis block, all others from transactions in it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime

from google.protobuf.message import DecodeError

from twinlog.errors import SiteError, UsageError
from twinlog.ordering import messages, processing
from twinlog.ordering.blocks import Block, last_config_of, new_block
from twinlog.ordering.bundle import Bundle
from twinlog.ordering.chain import Chain
from twinlog.ordering.configtree import ConfigRefused
from twinlog.ordering.genesis import read_block
from twinlog.ordering.identity import Signer
from twinlog.ordering.ledger import Ledger
from twinlog.ordering.localconfig import LocalConfig
from twinlog.ordering.messages import Message
from twinlog.ordering.metrics import Figures
from twinlog.ordering.posting import Tell
from twinlog.ordering.processing import Office, Ready
from twinlog.ordering.proto import common_pb2
from twinlog.ordering.statuses import Refusal
from twinlog.ordering.support import BatchSize, Refused, Written

CHAINS = "chains"
GENESIS_FILE_METHOD = "file"

MakeChain = Callable[["Channel", Ledger], Chain]


@dataclass(frozen=True)
class House:
    """What all channels of an orderer share."""

    config: LocalConfig
    signer: Signer
    figures: Figures
    log: Callable[[str], None]
    make_chain: MakeChain
    crashed: Callable[[str, BaseException], None]  # the process must end
    configured: Callable[[Bundle], None]  # a configuration holds from now on


class Channel:
    """One channel: its configuration, its chain and its blocks."""

    def __init__(self, registrar: Registrar, bundle: Bundle, ledger: Ledger) -> None:
        self.bundle = bundle
        self.ledger = ledger
        self._registrar = registrar
        self._house = registrar.house
        self._chain: Chain | None = None
        self.creator = self._house.signer.creator
        self._checks_expiry = not self._house.config.general.authentication.no_expiration_checks

    def start(self) -> None:
        """Let its chain run."""
        self._house.configured(self.bundle)
        self._house.figures.height(self.channel_id, self.ledger.height)
        self._chain = self._house.make_chain(self, self.ledger)
        self._chain.start()

    def halt(self) -> None:
        """End the chain, then the ledger that it writes."""
        if self._chain is not None:
            self._chain.halt()
        self.ledger.close()

    @property
    def chain(self) -> Chain:
        """What orders its messages."""
        assert self._chain is not None, "a channel is started before anybody can find it"
        return self._chain

    # As the chain sees it.

    @property
    def channel_id(self) -> str:
        """Its name."""
        return self.bundle.channel_id

    @property
    def sequence(self) -> int:
        """The config sequence."""
        return self.bundle.sequence

    @property
    def batch_size(self) -> BatchSize:
        """How much a block may hold."""
        return self.bundle.batch_size

    @property
    def batch_timeout_s(self) -> float:
        """How long a message waits for others."""
        return self.bundle.batch_timeout_s

    @property
    def resubmits(self) -> bool:
        """True if messages of an old config sequence are checked and sent again."""
        return self.bundle.resubmits

    @property
    def consensus_type(self) -> str:
        """`kafka`, unless the channel has been moved."""
        return self.bundle.consensus_type

    def sign(self, message: bytes) -> bytes:
        """This orderer's signature."""
        return self._house.signer.sign(message)

    def revalidate(self, envelope: bytes) -> int:
        """Check a message that comes from the log as if it came from a client."""
        try:
            message = messages.read(envelope)
            if message.type == messages.CONFIG_UPDATE:
                raise Refused("an update of the configuration was ordered as it is")
            return self.normal(message).sequence
        except Refusal as refusal:
            raise Refused(refusal.info) from None

    def reprocess_config(self, envelope: bytes) -> tuple[bytes, int]:
        """Make a configuration anew, from the update inside it."""
        try:
            ready = processing.again(messages.read(envelope), self.bundle, self._office())
        except Refusal as refusal:
            raise Refused(refusal.info) from None
        return ready.envelope, ready.sequence

    def apply_config(self, envelope: bytes, number: int) -> None:
        """Make a configuration hold, or create the channel that it is for."""
        message = messages.read(envelope)
        if message.type == messages.ORDERER_TRANSACTION:
            self._registrar.create(message.data)
            return
        self.bundle = self.bundle.next(common_pb2.ConfigEnvelope.FromString(message.data))
        self._house.log(f"channel {self.channel_id}: block {number} brings config {self.sequence}")
        self._house.configured(self.bundle)

    def written(self, blocks: Sequence[Written]) -> None:
        """Blocks are on disk."""
        self._house.figures.written(self.channel_id, blocks)

    def crashed(self, error: BaseException) -> None:
        """The chain cannot go on."""
        self._house.crashed(self.channel_id, error)

    # As sessions see it.

    @property
    def is_ready(self) -> bool:
        """False while the gate is closed."""
        return self.chain.is_ready

    @property
    def is_errored(self) -> bool:
        """True while it cannot follow the log."""
        return self.chain.errored.is_set()

    def wait_ready(self, timeout_s: float) -> None:
        """Wait for the gate."""
        self.chain.wait_ready(timeout_s)

    def normal(self, message: Message) -> Ready:
        """Check a message of a client."""
        return processing.normal(message, self.bundle, datetime.now(UTC) if self._checks_expiry else None)

    def config_update(self, message: Message) -> Ready:
        """Make the configuration that a client asks for."""
        return processing.config_update(message, self.bundle, self._office())

    def order(self, batch: Sequence[tuple[Ready, Tell]]) -> None:
        """Send messages to the log that came together."""
        self.chain.order_together([(ready.envelope, ready.sequence, tell) for ready, tell in batch])

    def configure(self, ready: Ready) -> Future[int]:
        """Send a configuration to the log."""
        return self.chain.configure(ready.envelope, ready.sequence)

    def _office(self) -> Office:
        checks, created = self._checks_expiry, self._registrar.created
        return Office(self._house.signer, datetime.now(UTC), checks, created)


class Registrar:
    """All channels."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._chains = house.config.file_ledger.location / CHAINS
        self._channels: dict[str, Channel] = {}
        self._lock = threading.Lock()  # for who adds channels
        self._system: Channel | None = None

    @property
    def system(self) -> Channel:
        """The channel that creates channels."""
        assert self._system is not None, "opened before anybody asks"
        return self._system

    @property
    def created(self) -> int:
        """How many channels there are beside the system channel."""
        return max(0, len(self._channels) - 1)

    def open(self) -> None:
        """Find the channels on disk, or begin with the genesis block; let all of them run."""
        found = list(self._load())
        systems = [channel for channel in found if channel.bundle.is_system]
        if not systems:
            if found:
                raise SiteError(
                    "there are channels and no system channel",
                    where=str(self._chains),
                    hint="was a directory removed?",
                )
            systems = found = [self._add(_genesis(self.house.config), "the genesis block")]
        self._system = systems[0]
        for channel in found:
            self._channels[channel.channel_id] = channel
        for channel in found:
            channel.start()
            self.house.log(f"channel {channel.channel_id}: {channel.ledger.height} blocks")

    def find(self, channel_id: str) -> Channel | None:
        """A channel by its name."""
        return self._channels.get(channel_id)

    def find_or_system(self, channel_id: str) -> Channel:
        """A channel by its name, or the system channel, which deals with names that nobody knows."""
        return self._channels.get(channel_id) or self.system

    def channels(self) -> list[Channel]:
        """All of them, by name."""
        return [channel for _, channel in sorted(self._channels.items())]

    def create(self, config: bytes) -> None:
        """Create a channel from its first configuration; one that is there already stays."""
        with self._lock:
            block = new_block(0, b"", [config])
            channel_id = messages.read(config).channel_id
            if channel_id in self._channels:
                self.house.log(f"channel {channel_id} is there already")
                return
            channel = self._add(block, f"the creation of channel {channel_id}")
            channel.start()
            self._channels = {**self._channels, channel_id: channel}
            self.house.log(f"channel {channel_id} was created")

    def close(self) -> None:
        """Halt all channels, the one that makes others first."""
        if self._system is not None:
            self._system.halt()
        for channel in self.channels():
            if channel is not self._system:
                channel.halt()

    def _add(self, block: Block, what: str) -> Channel:
        """A channel that begins with a block."""
        try:
            bundle = Bundle.from_envelope(common_pb2.Envelope.FromString(block.data.data[0]))
        except (ConfigRefused, DecodeError, IndexError) as error:
            raise UsageError(f"{what} cannot be used: {error}", hint="twinlog order genesis") from None
        ledger = Ledger(self._chains / bundle.channel_id)
        if ledger.height == 0:
            ledger.append([block])
        return Channel(self, bundle, ledger)

    def _load(self) -> Iterator[Channel]:
        if not self._chains.is_dir():
            return
        for directory in sorted(self._chains.iterdir()):
            ledger = Ledger(directory)
            if ledger.height == 0:
                # Ended between making the directory and writing the first block; the log will say so again.
                ledger.close()
                continue
            number = last_config_of(ledger.block(ledger.height - 1))
            block = ledger.block(number)
            try:
                bundle = Bundle.from_envelope(common_pb2.Envelope.FromString(block.data.data[0]))
            except (ConfigRefused, DecodeError, IndexError) as error:
                raise SiteError(
                    f"the configuration in block {number} cannot be used: {error}", where=str(directory)
                ) from None
            yield Channel(self, bundle, ledger)


def _genesis(config: LocalConfig) -> Block:
    """The first block of the system channel, from its file."""
    general = config.general
    if general.genesis_method != GENESIS_FILE_METHOD:
        raise UsageError(
            f"General.GenesisMethod is {general.genesis_method}, and the first block comes from a file only",
            hint="GenesisMethod: file, with a block of `twinlog order genesis`",
        )
    return read_block(general.genesis_file)[0]
