"""A channel's config, made ready: what it says, its policies, and what it would become.

Everything that decides about a message reads one Bundle, which never changes: a config block makes the next
one. Broadcast asks its policies and has updates proposed (`propose`); the chain makes the next Bundle from
a config block (`next`); channel creation begins with `creation.template`. All refusals are ConfigRefused.
Pure: no clock, no disk, and the same answer on every orderer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from google.protobuf.message import DecodeError

from twinlog.ordering import channelconfig, update
from twinlog.ordering.channelconfig import ChannelConfig, Organisations
from twinlog.ordering.configtree import ConfigRefused, check_channel_id, flatten
from twinlog.ordering.members import Members, Provider
from twinlog.ordering.policy import Policies, Policy
from twinlog.ordering.proto import common_pb2, orderer_pb2
from twinlog.ordering.support import BatchSize

WRITERS: Final = "/Channel/Writers"
READERS: Final = "/Channel/Readers"
ORDERER_WRITERS: Final = "/Channel/Orderer/Writers"
ORDERER_READERS: Final = "/Channel/Orderer/Readers"
_RESUBMISSION_SINCE: Final = frozenset({"V1_1", "V1_4_2"})


class Bundle:
    """One channel's config, immutable. Make it with `from_config` or `from_envelope`."""

    def __init__(self, channel_id: str, config: common_pb2.Config, values: ChannelConfig) -> None:
        self.channel_id = channel_id
        self.config = config
        self.values = values
        self._elements = flatten(config.channel_group)
        try:
            self._policies = Policies(config.channel_group, values.members)
        except ValueError as error:
            raise ConfigRefused(str(error)) from None

    @classmethod
    def from_config(cls, channel_id: str, config: common_pb2.Config) -> Bundle:
        """Read and check a config."""
        check_channel_id(channel_id)
        if not config.HasField("channel_group"):
            raise ConfigRefused("the config has no channel group")
        return cls(channel_id, config, channelconfig.read(config.channel_group))

    @classmethod
    def from_envelope(cls, envelope: common_pb2.Envelope) -> Bundle:
        """Read and check the config of a CONFIG envelope: a genesis block's, or any config block's."""
        channel_id, config = read_config(envelope)
        return cls.from_config(channel_id, config.config)

    @property
    def sequence(self) -> int:
        """How many updates the config has seen."""
        return self.config.sequence

    @cached_property
    def batch_size(self) -> BatchSize:
        """How much a block may hold."""
        return self.values.orderer.batch_size

    @property
    def batch_timeout_s(self) -> float:
        """How long a message waits for others."""
        return self.values.orderer.batch_timeout_s

    @property
    def brokers(self) -> tuple[str, ...]:
        """Where the log is, as the config says."""
        return self.values.orderer.brokers

    @property
    def max_channels(self) -> int:
        """How many channels may exist beside the system channel; 0 is any number."""
        return self.values.orderer.max_channels

    @property
    def capabilities(self) -> frozenset[str]:
        """The orderer capabilities."""
        return self.values.orderer.capabilities

    @property
    def consensus_type(self) -> str:
        """`kafka`, unless the channel has been moved."""
        return self.values.orderer.consensus.type

    @property
    def in_maintenance(self) -> bool:
        """True while the channel is being moved to another consensus type."""
        return self.values.orderer.consensus.state != orderer_pb2.ConsensusType.STATE_NORMAL

    @cached_property
    def resubmits(self) -> bool:
        """True if messages of an old config sequence are checked and sent again."""
        return bool(self.capabilities & _RESUBMISSION_SINCE)

    @cached_property
    def checks_expiry(self) -> bool:
        """True if messages of expired identities are refused."""
        return self.resubmits

    @property
    def allows_migration(self) -> bool:
        """True if the orderer capabilities know of maintenance."""
        return "V1_4_2" in self.capabilities

    @property
    def is_system(self) -> bool:
        """True for the channel that creates channels."""
        return self.values.consortiums is not None

    @property
    def members(self) -> Members:
        """All membership providers, as one."""
        return self.values.members

    @property
    def msps(self) -> Mapping[str, Provider]:
        """The membership providers, by their ids."""
        return self.values.members.msps

    @cached_property
    def writers(self) -> Policy:
        """Who may send messages; in maintenance, only orderers' organisations."""
        return self.policy(ORDERER_WRITERS if self.is_closed else WRITERS)

    @cached_property
    def readers(self) -> Policy:
        """Who may receive blocks; in maintenance, only orderers' organisations."""
        return self.policy(ORDERER_READERS if self.is_closed else READERS)

    @cached_property
    def is_closed(self) -> bool:
        """True if maintenance, where capabilities know of it, shuts out all but orderers' organisations."""
        return self.allows_migration and self.in_maintenance

    def policy(self, path: str) -> Policy:
        """The policy at a path; one that nothing satisfies if there is none."""
        return self._policies.get(path)

    def propose(self, envelope: common_pb2.Envelope) -> common_pb2.ConfigEnvelope:
        """The config that a CONFIG_UPDATE envelope leads to, if it may hold and the signatures suffice."""
        proposed = self._derive(envelope)
        update.check_reached(update.read_update(envelope), proposed.channel_group)
        self.check_next(Bundle.from_config(self.channel_id, proposed))
        return common_pb2.ConfigEnvelope(config=proposed, last_update=envelope)

    def next(self, config: common_pb2.ConfigEnvelope) -> Bundle:
        """The Bundle after a config block; the config must follow from the update that it carries."""
        if config.config.sequence != self.sequence + 1:
            raise ConfigRefused(
                f"the config has sequence {config.config.sequence}, and {self.sequence + 1} comes next"
            )
        derived = self._derive(config.last_update)
        if derived.channel_group != config.config.channel_group:
            raise ConfigRefused("the config is not what its update leads to")
        return Bundle.from_config(self.channel_id, config.config)

    def check_next(self, following: Bundle) -> None:
        """Raise ConfigRefused if another config may not follow this one."""
        ours, theirs = self.values, following.values
        if not ours.allows_migration and self.consensus_type != following.consensus_type:
            raise ConfigRefused(
                f"the consensus type cannot change from {self.consensus_type} to {following.consensus_type}"
            )
        _check_organisations("orderer", ours.orderer.organisations, theirs.orderer.organisations)
        if ours.application is not None:
            if theirs.application is None:
                raise ConfigRefused("the group /Channel/Application cannot be taken away")
            _check_organisations("application", ours.application, theirs.application)
        if (ours.consortiums is None) != (theirs.consortiums is None):
            raise ConfigRefused("the group /Channel/Consortiums can neither be added nor taken away")
        for name, consortium in (ours.consortiums or {}).items():
            present = (theirs.consortiums or {}).get(name)
            if present is not None:
                where = f"consortium {name}"
                _check_organisations(where, consortium.organisations, present.organisations)

    def _derive(self, envelope: common_pb2.Envelope) -> common_pb2.Config:
        change = update.read_update(envelope)
        group = update.derive(self.channel_id, self._elements, self._policies, change)
        return common_pb2.Config(sequence=self.sequence + 1, channel_group=group)


def read_config(envelope: common_pb2.Envelope) -> tuple[str, common_pb2.ConfigEnvelope]:
    """The channel and the config of a CONFIG envelope."""
    try:
        payload = common_pb2.Payload.FromString(envelope.payload)
        header = common_pb2.ChannelHeader.FromString(payload.header.channel_header)
        config = common_pb2.ConfigEnvelope.FromString(payload.data)
    except DecodeError:
        raise ConfigRefused("the config cannot be decoded") from None
    if header.type != common_pb2.CONFIG:
        raise ConfigRefused(f"the envelope holds no config: its type is {header.type}")
    return header.channel_id, config


def _check_organisations(where: str, ours: Organisations, theirs: Organisations) -> None:
    for name, mspid in ours.items():
        if theirs.get(name, mspid) != mspid:
            raise ConfigRefused(
                f"the {where} organisation {name} cannot change its membership provider from {mspid} "
                f"to {theirs[name]}"
            )
