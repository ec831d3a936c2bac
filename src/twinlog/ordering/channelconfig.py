"""What a channel's config tree says, read into plain values and checked.

Called by `bundle` for every config that is to hold: genesis, each config block, each update that a client
proposes. The first fault raises ConfigRefused with the path. Groups and values that nobody knows are
faults too, as is a capability that this orderer does not have: it would decide otherwise than others. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from twinlog.ordering import members
from twinlog.ordering.configtree import ConfigRefused
from twinlog.ordering.durations import parse_duration_s
from twinlog.ordering.msp import Version
from twinlog.ordering.proto import common_pb2, msp_pb2, orderer_pb2, peer_pb2
from twinlog.ordering.support import BatchSize

_Value = TypeVar("_Value", bound=Message)

CHANNEL_CAPABILITIES: Final = frozenset({"V1_1", "V1_3", "V1_4_2", "V1_4_3"})
ORDERER_CAPABILITIES: Final = frozenset({"V1_1", "V1_4_2"})
_ENDPOINTS_SINCE: Final = frozenset({"V1_4_2", "V1_4_3"})
_ACLS_SINCE: Final = frozenset({"V1_2", "V1_3", "V1_4_2"})
_HASHES: Final = frozenset({"SHA256", "SHA3_256"})
_WIDTH: Final = 2**32 - 1
_HOST: Final = re.compile(r"[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9.-]*[a-zA-Z0-9]|")

_CHANNEL_VALUES: Final[Mapping[str, type[Message]]] = {
    "HashingAlgorithm": common_pb2.HashingAlgorithm,
    "BlockDataHashingStructure": common_pb2.BlockDataHashingStructure,
    "OrdererAddresses": common_pb2.OrdererAddresses,
    "Consortium": common_pb2.Consortium,
    "Capabilities": common_pb2.Capabilities,
}
_ORDERER_VALUES: Final[Mapping[str, type[Message]]] = {
    "ConsensusType": orderer_pb2.ConsensusType,
    "BatchSize": orderer_pb2.BatchSize,
    "BatchTimeout": orderer_pb2.BatchTimeout,
    "KafkaBrokers": orderer_pb2.KafkaBrokers,
    "ChannelRestrictions": orderer_pb2.ChannelRestrictions,
    "Capabilities": common_pb2.Capabilities,
}
_APPLICATION_VALUES: Final[Mapping[str, type[Message]]] = {
    "ACLs": peer_pb2.ACLs,
    "Capabilities": common_pb2.Capabilities,
}
_ORGANISATION: Final[Mapping[str, type[Message]]] = {"MSP": msp_pb2.MSPConfig}
_ORDERER_ORGANISATION = {**_ORGANISATION, "Endpoints": common_pb2.OrdererAddresses}
_APPLICATION_ORGANISATION = {**_ORGANISATION, "AnchorPeers": peer_pb2.AnchorPeers}

Organisations = Mapping[str, str]  # the name of each and the id of its membership provider


@dataclass(frozen=True)
class Orderer:
    """The group /Channel/Orderer."""

    consensus: orderer_pb2.ConsensusType
    batch_size: BatchSize
    batch_timeout_s: float
    brokers: tuple[str, ...]
    max_channels: int
    capabilities: frozenset[str]
    organisations: Organisations


@dataclass(frozen=True)
class Consortium:
    """One group of /Channel/Consortiums."""

    creation_policy: common_pb2.Policy
    organisations: Organisations


@dataclass(frozen=True)
class ChannelConfig:
    """The whole of a channel's config."""

    orderer: Orderer
    application: Organisations | None
    consortiums: Mapping[str, Consortium] | None
    capabilities: frozenset[str]
    members: members.Members = field(repr=False)

    @property
    def allows_migration(self) -> bool:
        """True if the consensus type may change, by way of maintenance."""
        return bool(self.capabilities & _ENDPOINTS_SINCE)


class _Providers:
    """The membership providers met while reading; two organisations may share one, if it is the same."""

    def __init__(self, version: Version) -> None:
        self._version = version
        self._configs: dict[str, bytes] = {}
        self.found: dict[str, members.Provider] = {}

    def add(self, config: msp_pb2.MSPConfig, path: str) -> str:
        """Set one up; its id."""
        try:
            provider = members.from_config(config, self._version)
        except ValueError as error:
            raise ConfigRefused(f"the membership provider of {path} cannot be used: {error}") from None
        if not provider.mspid:
            raise ConfigRefused(f"the membership provider of {path} has no id")
        if self._configs.setdefault(provider.mspid, config.config) != config.config:
            raise ConfigRefused(f"the membership provider {provider.mspid} is defined in two ways")
        self.found.setdefault(provider.mspid, provider)
        return provider.mspid


def read(root: common_pb2.ConfigGroup) -> ChannelConfig:
    """Read and check a config tree."""
    values = _values(root, "/Channel", _CHANNEL_VALUES)
    capabilities = _capabilities(values)
    _check_order_of_capabilities(root)
    _check_supported(capabilities, CHANNEL_CAPABILITIES, "channel")
    hashing = _get(values, "HashingAlgorithm", common_pb2.HashingAlgorithm).name
    if hashing not in _HASHES:
        raise ConfigRefused(f"the hashing algorithm {hashing!r} is not known")
    if _get(values, "BlockDataHashingStructure", common_pb2.BlockDataHashingStructure).width != _WIDTH:
        raise ConfigRefused(f"the width of the block data hashing structure must be {_WIDTH}")
    has_endpoints = bool(capabilities & _ENDPOINTS_SINCE)
    if not has_endpoints and not _get(values, "OrdererAddresses", common_pb2.OrdererAddresses).addresses:
        raise ConfigRefused("the channel names no addresses of orderers")
    for name in root.groups:
        if name not in ("Orderer", "Application", "Consortiums"):
            raise ConfigRefused(f"the group /Channel/{name} is not allowed")
    if "Orderer" not in root.groups:
        raise ConfigRefused("the config has no group /Channel/Orderer")
    providers = _Providers(_msp_version(capabilities))
    return ChannelConfig(
        orderer=_orderer(root.groups["Orderer"], providers, has_endpoints),
        application=_application(root.groups["Application"], providers)
        if "Application" in root.groups
        else None,
        consortiums=_consortiums(root.groups["Consortiums"], providers)
        if "Consortiums" in root.groups
        else None,
        capabilities=capabilities,
        members=members.Members(providers.found.values()),
    )


def _orderer(group: common_pb2.ConfigGroup, providers: _Providers, has_endpoints: bool) -> Orderer:
    path = "/Channel/Orderer"
    values = _values(group, path, _ORDERER_VALUES)
    capabilities = _capabilities(values)
    _check_supported(capabilities, ORDERER_CAPABILITIES, "orderer")
    brokers = tuple(_get(values, "KafkaBrokers", orderer_pb2.KafkaBrokers).brokers)
    for broker in brokers:
        if not is_broker(broker):
            raise ConfigRefused(f"the broker {broker!r} is not written as host:port")
    for name, organisation in group.groups.items():
        if not has_endpoints and "Endpoints" in organisation.values:
            raise ConfigRefused(f"{path}/{name} has endpoints, which need the channel capability V1_4_2")
    return Orderer(
        consensus=_get(values, "ConsensusType", orderer_pb2.ConsensusType),
        batch_size=_batch_size(_get(values, "BatchSize", orderer_pb2.BatchSize)),
        batch_timeout_s=_batch_timeout_s(_get(values, "BatchTimeout", orderer_pb2.BatchTimeout).timeout),
        brokers=brokers,
        max_channels=_get(values, "ChannelRestrictions", orderer_pb2.ChannelRestrictions).max_count,
        capabilities=capabilities,
        organisations=_organisations(group, path, providers, _ORDERER_ORGANISATION),
    )


def _application(group: common_pb2.ConfigGroup, providers: _Providers) -> Organisations:
    path = "/Channel/Application"
    values = _values(group, path, _APPLICATION_VALUES)
    if "ACLs" in values and not _capabilities(values) & _ACLS_SINCE:
        raise ConfigRefused("access lists need the application capability V1_2")
    return _organisations(group, path, providers, _APPLICATION_ORGANISATION)


def _consortiums(group: common_pb2.ConfigGroup, providers: _Providers) -> Mapping[str, Consortium]:
    found = {}
    for name, child in group.groups.items():
        path = f"/Channel/Consortiums/{name}"
        values = _values(child, path, {"ChannelCreationPolicy": common_pb2.Policy})
        found[name] = Consortium(
            creation_policy=_get(values, "ChannelCreationPolicy", common_pb2.Policy),
            organisations=_organisations(child, path, providers, _ORGANISATION),
        )
    return found


def _organisations(
    group: common_pb2.ConfigGroup, path: str, providers: _Providers, known: Mapping[str, type[Message]]
) -> Organisations:
    found = {}
    for name, organisation in group.groups.items():
        if organisation.groups:
            raise ConfigRefused(f"{path}/{name} is an organisation and cannot hold groups")
        values = _values(organisation, f"{path}/{name}", known)
        found[name] = providers.add(_get(values, "MSP", msp_pb2.MSPConfig), f"{path}/{name}")
    return found


def _values(
    group: common_pb2.ConfigGroup, path: str, known: Mapping[str, type[Message]]
) -> dict[str, Message]:
    found = {}
    for name, value in group.values.items():
        if name not in known:
            raise ConfigRefused(f"the value {path}/{name} is not known")
        try:
            found[name] = known[name].FromString(value.value)
        except DecodeError:
            raise ConfigRefused(f"the value {path}/{name} cannot be decoded") from None
    return found


def _get(values: Mapping[str, Message], name: str, kind: Callable[[], _Value]) -> _Value:
    """A value that was read, or an empty one."""
    return values.get(name) or kind()  # type: ignore[return-value]


def _batch_size(declared: orderer_pb2.BatchSize) -> BatchSize:
    size = BatchSize(declared.max_message_count, declared.absolute_max_bytes, declared.preferred_max_bytes)
    if not (size.max_message_count and size.absolute_max_bytes and size.preferred_max_bytes):
        raise ConfigRefused("the batch size cannot be 0: messages, absolute bytes and preferred bytes")
    if size.preferred_max_bytes > size.absolute_max_bytes:
        raise ConfigRefused(
            f"the preferred size of a batch ({size.preferred_max_bytes} bytes) is over the absolute one "
            f"({size.absolute_max_bytes})"
        )
    return size


def _batch_timeout_s(text: str) -> float:
    try:
        timeout_s = parse_duration_s(text)
    except ValueError as error:
        raise ConfigRefused(f"the batch timeout cannot be read: {error}") from None
    if timeout_s <= 0:
        raise ConfigRefused(f"the batch timeout must be more than 0, not {text}")
    return timeout_s


def is_broker(text: str) -> bool:
    """True if a text looks like host:port."""
    host, colon, port = text.partition(":")
    return (
        bool(colon)
        and port.isascii()
        and port.isdigit()
        and int(port) < 2**16
        and _HOST.fullmatch(host) is not None
    )


def _capabilities(values: Mapping[str, Message]) -> frozenset[str]:
    return frozenset(_get(values, "Capabilities", common_pb2.Capabilities).capabilities)


def _check_supported(capabilities: frozenset[str], supported: frozenset[str], kind: str) -> None:
    for name in sorted(capabilities - supported):
        raise ConfigRefused(
            f"the config asks for the {kind} capability {name!r}, which this orderer does not have"
        )


def _check_order_of_capabilities(root: common_pb2.ConfigGroup) -> None:
    if "Orderer" in root.groups and "Capabilities" not in root.groups["Orderer"].values:
        if "Capabilities" in root.values:
            raise ConfigRefused("channel capabilities need orderer capabilities first")
        if "Application" in root.groups and "Capabilities" in root.groups["Application"].values:
            raise ConfigRefused("application capabilities need orderer capabilities first")


def _msp_version(capabilities: frozenset[str]) -> Version:
    if "V1_4_3" in capabilities:
        return Version.V1_4_3
    if capabilities & {"V1_3", "V1_4_2"}:
        return Version.V1_3
    return Version.V1_1 if "V1_1" in capabilities else Version.V1_0
