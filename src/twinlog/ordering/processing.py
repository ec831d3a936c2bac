"""What becomes of a message, by its kind: checked and ordered, or made into a configuration. Pure.

Broadcast calls this for what clients send, the registrar for what comes from the log with an old config
sequence. Everything is decided against one bundle, so the sequence that is returned is the one that the
checks were made at. A configuration is made here, signed by this orderer, and passes the same checks as
any message: it must fit into the log, and this orderer must be allowed to write.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from google.protobuf.message import DecodeError

from twinlog.ordering import creation, filters, messages
from twinlog.ordering.bundle import Bundle
from twinlog.ordering.configtree import ConfigRefused
from twinlog.ordering.identity import Signer
from twinlog.ordering.messages import Message
from twinlog.ordering.proto import common_pb2
from twinlog.ordering.statuses import NOT_FOUND, SERVICE_UNAVAILABLE, Refusal, bad

MIGRATIONS = frozenset({("kafka", "etcdraft")})


class Ready(NamedTuple):
    """A message that may be ordered, and the config sequence at which it was found so."""

    envelope: bytes
    sequence: int


@dataclass(frozen=True)
class Office:
    """What is needed beside the bundle to make configurations."""

    signer: Signer
    now: datetime
    checks_expiry: bool = True
    channels: int = 0  # how many there are beside the system channel

    @property
    def expiry_at(self) -> datetime | None:
        """The moment at which certificates must not have ended, if that is looked at."""
        return self.now if self.checks_expiry else None


def normal(message: Message, bundle: Bundle, expiry_at: datetime | None) -> Ready:
    """Check a message that is to be ordered as it is."""
    if message.channel_id != bundle.channel_id:
        raise Refusal(NOT_FOUND, "channel does not exist")
    if bundle.is_closed:
        raise Refusal(SERVICE_UNAVAILABLE, "normal transactions are rejected: maintenance mode")
    filters.check(message, bundle, expiry_at)
    return Ready(message.raw, bundle.sequence)


def config_update(message: Message, bundle: Bundle, office: Office) -> Ready:
    """Make the configuration that an update asks for: of this channel, or of one that is to be created."""
    try:
        if message.channel_id == bundle.channel_id:
            return _update(message, bundle, office)
        if not bundle.is_system:
            raise bad(f"an update of channel {message.channel_id} was sent to {bundle.channel_id}")
        return _create(message, bundle, office)
    except ConfigRefused as refused:
        raise bad(f"config update refused: {refused}") from None


def again(message: Message, bundle: Bundle, office: Office) -> Ready:
    """Make a configuration anew that was made at an old config sequence, from the update inside it."""
    return config_update(messages.read(update_inside(message)), bundle, office)


def update_inside(message: Message) -> bytes:
    """The update that a configuration, or the creation of a channel, was made from."""
    data = message.data
    try:
        if message.type == messages.ORDERER_TRANSACTION:
            data = messages.read(data).data
        config = common_pb2.ConfigEnvelope.FromString(data)
    except DecodeError:
        raise bad("the configuration cannot be decoded") from None
    if not config.HasField("last_update"):
        raise bad("the configuration does not hold the update that it was made from")
    return config.last_update.SerializeToString()


def _update(message: Message, bundle: Bundle, office: Office) -> Ready:
    filters.check(message, bundle, office.expiry_at)
    proposed = bundle.propose(common_pb2.Envelope.FromString(message.raw))
    raw = _signed(messages.CONFIG, bundle.channel_id, proposed.SerializeToString(), office)
    filters.check(messages.read(raw), bundle, office.expiry_at)
    if bundle.allows_migration:
        _check_migration(bundle, Bundle.from_config(bundle.channel_id, proposed.config))
    return Ready(raw, bundle.sequence)


def _create(message: Message, system: Bundle, office: Office) -> Ready:
    update = common_pb2.Envelope.FromString(message.raw)
    proposed = creation.template(system, update).propose(update)
    inner = _signed(messages.CONFIG, message.channel_id, proposed.SerializeToString(), office)
    raw = _signed(messages.ORDERER_TRANSACTION, system.channel_id, inner, office)
    filters.check(messages.read(raw), system, office.expiry_at)
    if system.max_channels and office.channels >= system.max_channels:
        raise bad(f"channel creation would exceed maximum number of channels: {system.max_channels}")
    return Ready(raw, system.sequence)


def _signed(kind: int, channel_id: str, data: bytes, office: Office) -> bytes:
    return messages.signed(kind, channel_id, data, office.signer, int(office.now.timestamp()))


def _check_migration(bundle: Bundle, following: Bundle) -> None:
    """A channel moves to another kind of ordering inside maintenance only, and changes nothing beside."""
    moves = bundle.consensus_type != following.consensus_type
    if moves and not bundle.in_maintenance:
        raise ConfigRefused(
            f"the consensus type changes from {bundle.consensus_type} to {following.consensus_type} "
            "and the channel is not in maintenance"
        )
    if moves and not following.in_maintenance:
        raise ConfigRefused("the consensus type changes and the channel leaves maintenance at once")
    if moves and (bundle.consensus_type, following.consensus_type) not in MIGRATIONS:
        raise ConfigRefused(
            f"a channel cannot move from {bundle.consensus_type} to {following.consensus_type}"
        )
    if bundle.in_maintenance != following.in_maintenance and not _is_only_type(bundle, following):
        raise ConfigRefused("an update that enters or leaves maintenance may change nothing else")


def _is_only_type(bundle: Bundle, following: Bundle) -> bool:
    """True if two configurations differ in the consensus type's value and in nothing else."""
    ours, theirs = common_pb2.ConfigGroup(), common_pb2.ConfigGroup()
    ours.CopyFrom(bundle.config.channel_group)
    theirs.CopyFrom(following.config.channel_group)
    for group in (ours, theirs):
        group.groups["Orderer"].values["ConsensusType"].Clear()
    return ours == theirs
