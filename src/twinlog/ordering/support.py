"""What a chain needs from the rest of the orderer, and what it raises.

The registrar implements `Support` for each channel; `consuming` uses the half that is called `Rules`,
`chain` the whole. Everything is called from the channel's own thread, one call at a time, except
the properties, which any thread may read. A config block takes effect inside `apply_config`: from its
return on `sequence`, `batch_size` and the rest are those of the new configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from twinlog.errors import TwinlogError


class Refused(TwinlogError):
    """A message does not pass the channel's checks as they are now; it is dropped and changes nothing."""


class Unavailable(TwinlogError):
    """The channel cannot take messages now: SERVICE_UNAVAILABLE to whoever sent one."""


@dataclass(frozen=True, slots=True)
class BatchSize:
    """How much a block may hold. `absolute_max_bytes` is a matter of Broadcast, not of the cutter."""

    max_message_count: int
    absolute_max_bytes: int
    preferred_max_bytes: int


@dataclass(frozen=True, slots=True)
class Written:
    """A block that is on disk, for the figures."""

    number: int
    transactions: int
    size_bytes: int
    last_offset: int  # of the log, as its metadata say
    filled_s: float  # since its first message came from the log


class Rules(Protocol):
    """The channel's configuration as the state machine asks for it."""

    @property
    def sequence(self) -> int:
        """The current config sequence."""

    @property
    def batch_size(self) -> BatchSize:
        """How much a block may hold now."""

    @property
    def resubmits(self) -> bool:
        """True with a capability that has messages of an old config sequence checked and sent again."""

    def revalidate(self, envelope: bytes) -> int:
        """Check a normal message as Broadcast would; the sequence it was checked at, or `Refused`."""

    def reprocess_config(self, envelope: bytes) -> tuple[bytes, int]:
        """Derive the config again from the update in a CONFIG or ORDERER_TRANSACTION envelope.

        Gives the new envelope, signed by this orderer, and the sequence it was made at, or raises `Refused`.
        """


class Support(Rules, Protocol):
    """One channel, seen from its chain."""

    @property
    def channel_id(self) -> str:
        """The channel's name, which is its topic's."""

    @property
    def batch_timeout_s(self) -> float:
        """How long a message waits for others."""

    @property
    def consensus_type(self) -> str:
        """ConsensusType.type: `kafka`, unless a config block has just moved the channel elsewhere."""

    @property
    def creator(self) -> bytes:
        """This orderer as a marshalled SerializedIdentity."""

    def sign(self, message: bytes) -> bytes:
        """This orderer's signature (low S) over a message."""

    def apply_config(self, envelope: bytes, number: int) -> None:
        """Make the config in an envelope hold; called before the block `number` with it is written.

        CONFIG switches this channel's configuration. ORDERER_TRANSACTION makes and starts the new channel,
        which may be there already: a crash before the block was written has it applied again. What it
        raises ends the process: this orderer's idea of the channel would no longer be that of the others.
        """

    def written(self, blocks: Sequence[Written]) -> None:
        """Blocks are on disk; called from the channel's thread, so it must be quick."""

    def crashed(self, error: BaseException) -> None:
        """The chain cannot go on and must not be taken for one that works: the process should end."""
