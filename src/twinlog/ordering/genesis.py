"""The first block of a system channel, and updates that create channels, from a profile of configtx.yaml.

Called by `twinlog order genesis` and its kin, and by tests. The tree is the one that Fabric's configtxgen
makes from the same file, value by value; nonce and time are new each time. `read_block` takes blocks of
either. Reads the organisations' directories, and no clock but for the header.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from google.protobuf.message import DecodeError, Message

from twinlog.errors import UsageError
from twinlog.ordering import blocks, configtx, messages, policytext
from twinlog.ordering.bundle import Bundle
from twinlog.ordering.configtree import ConfigRefused, check_channel_id
from twinlog.ordering.identity import Signer
from twinlog.ordering.mspdir import read_msp
from twinlog.ordering.proto import common_pb2, orderer_pb2, peer_pb2
from twinlog.ordering.update import difference

_ADMINS: Final = "Admins"
_ORDERER_ADMINS: Final = "/Channel/Orderer/Admins"
_NONCE_BYTES: Final = 24
_WIDTH: Final = 2**32 - 1
_DEFAULTS: Final = {"Admins": "MAJORITY Admins", "Readers": "ANY Readers", "Writers": "ANY Writers"}


def genesis_block(profile: configtx.Profile, channel_id: str) -> common_pb2.Block:
    """Block 0 of a channel that a profile describes whole."""
    config = common_pb2.Config(channel_group=channel_group(profile))
    Bundle.from_config(channel_id, config)  # better refused here than by every orderer
    nonce = secrets.token_bytes(_NONCE_BYTES)
    header = common_pb2.ChannelHeader(
        type=common_pb2.CONFIG,
        version=1,
        channel_id=channel_id,
        tx_id=hashlib.sha256(nonce).hexdigest(),
    )
    header.timestamp.seconds = int(time.time())
    payload = common_pb2.Payload(
        header=common_pb2.Header(
            channel_header=header.SerializeToString(),
            signature_header=common_pb2.SignatureHeader(nonce=nonce).SerializeToString(),
        ),
        data=_bytes(common_pb2.ConfigEnvelope(config=config)),
    )
    envelope = common_pb2.Envelope(payload=payload.SerializeToString())
    return blocks.new_block(0, b"", [envelope.SerializeToString()])


def creation_update(profile: configtx.Profile, channel_id: str) -> common_pb2.ConfigUpdate:
    """The update that creates a channel which a profile describes."""
    check_channel_id(channel_id)
    if profile.application is None or not profile.consortium:
        raise UsageError(
            "the profile cannot create a channel: it needs an Application section and a Consortium",
            hint="is it the profile of a system channel? twinlog order genesis makes those",
        )
    wanted = channel_group(profile)
    template = common_pb2.ConfigGroup()
    template.CopyFrom(wanted)
    for member in ("values", "policies"):
        template.groups["Application"].ClearField(member)
    change = difference(template, wanted)
    assert change is not None  # policies are never empty
    change.channel_id = channel_id
    consortium = common_pb2.Consortium(name=profile.consortium).SerializeToString()
    change.read_set.values["Consortium"].version = 0
    change.write_set.values["Consortium"].CopyFrom(common_pb2.ConfigValue(value=consortium))
    return change


def signed_update(change: common_pb2.ConfigUpdate, signers: Sequence[Signer]) -> bytes:
    """An update in an envelope: signed by everybody, and sent by the first."""
    update = common_pb2.ConfigUpdateEnvelope(config_update=_bytes(change))
    for signer in signers:
        header = signer.header().SerializeToString()
        update.signatures.add(signature_header=header, signature=signer.sign(header + update.config_update))
    kind = common_pb2.CONFIG_UPDATE
    data = update.SerializeToString()
    return messages.signed(kind, change.channel_id, data, signers[0], int(time.time()))


def read_block(file: Path) -> tuple[common_pb2.Block, Bundle]:
    """A genesis block from a file, ours or configtxgen's, and the config in it."""
    try:
        block = common_pb2.Block.FromString(file.read_bytes())
        if block.header.number != 0 or len(block.data.data) != 1:
            raise UsageError("is no genesis block", where=str(file), hint="twinlog order genesis --help")
        if block.header.data_hash != blocks.data_hash(block.data.data):
            raise UsageError("the block is damaged: its hash is not that of its data", where=str(file))
        return block, Bundle.from_envelope(common_pb2.Envelope.FromString(block.data.data[0]))
    except OSError as error:
        raise UsageError(f"cannot read the genesis block: {error}", where=str(file)) from None
    except DecodeError:
        raise UsageError("is no block", where=str(file), hint="twinlog order genesis --help") from None
    except ConfigRefused as error:
        raise UsageError(f"the config cannot be used: {error.what}", where=str(file)) from None


def channel_group(profile: configtx.Profile) -> common_pb2.ConfigGroup:
    """The config tree of a profile."""
    group = _group(profile.policies, _DEFAULTS)
    _add(group, "HashingAlgorithm", common_pb2.HashingAlgorithm(name="SHA256"))
    _add(group, "BlockDataHashingStructure", common_pb2.BlockDataHashingStructure(width=_WIDTH))
    if profile.orderer is not None and profile.orderer.addresses:
        addresses = common_pb2.OrdererAddresses(addresses=profile.orderer.addresses)
        _add(group, "OrdererAddresses", addresses, _ORDERER_ADMINS)
    if profile.consortium:
        _add(group, "Consortium", common_pb2.Consortium(name=profile.consortium))
    _add_capabilities(group, profile.capabilities)
    if profile.orderer is not None:
        group.groups["Orderer"].CopyFrom(_orderer(profile.orderer))
    if profile.application is not None:
        group.groups["Application"].CopyFrom(_application(profile.application))
    if profile.consortiums is not None:
        group.groups["Consortiums"].CopyFrom(_consortiums(profile.consortiums))
    return group


def _orderer(declared: configtx.Orderer) -> common_pb2.ConfigGroup:
    if declared.orderer_type != "kafka":
        raise UsageError(
            f"the profile's OrdererType is {declared.orderer_type}, and orderers here agree by way of Kafka",
            hint="OrdererType: kafka",
        )
    group = _group(declared.policies, {**_DEFAULTS, "BlockValidation": "ANY Writers"})
    size = declared.batch_size
    sizes = orderer_pb2.BatchSize(
        max_message_count=size.max_message_count,
        absolute_max_bytes=size.absolute_max_bytes,
        preferred_max_bytes=size.preferred_max_bytes,
    )
    _add(group, "BatchSize", sizes)
    _add(group, "BatchTimeout", orderer_pb2.BatchTimeout(timeout=go_duration(declared.batch_timeout_ns)))
    _add(group, "ChannelRestrictions", orderer_pb2.ChannelRestrictions(max_count=declared.max_channels))
    _add_capabilities(group, declared.capabilities)
    _add(group, "KafkaBrokers", orderer_pb2.KafkaBrokers(brokers=declared.kafka.brokers))
    _add(group, "ConsensusType", orderer_pb2.ConsensusType(type=declared.orderer_type))
    for organization in declared.organizations:
        child = _organization(organization)
        if organization.orderer_endpoints:
            endpoints = common_pb2.OrdererAddresses(addresses=organization.orderer_endpoints)
            _add(child, "Endpoints", endpoints)
        group.groups[organization.name].CopyFrom(child)
    return group


def _application(declared: configtx.Application) -> common_pb2.ConfigGroup:
    group = _group(declared.policies, _DEFAULTS)
    if declared.acls:
        acls = {name: peer_pb2.APIResource(policy_ref=path) for name, path in declared.acls.items()}
        _add(group, "ACLs", peer_pb2.ACLs(acls=acls))
    _add_capabilities(group, declared.capabilities)
    for organization in declared.organizations:
        child = _organization(organization)
        if organization.anchor_peers:
            anchors = [
                peer_pb2.AnchorPeer(host=peer.host, port=peer.port) for peer in organization.anchor_peers
            ]
            _add(child, "AnchorPeers", peer_pb2.AnchorPeers(anchor_peers=anchors))
        group.groups[organization.name].CopyFrom(child)
    return group


def _consortiums(declared: Mapping[str, configtx.Consortium]) -> common_pb2.ConfigGroup:
    group = common_pb2.ConfigGroup(mod_policy=_ORDERER_ADMINS)
    group.policies[_ADMINS].CopyFrom(
        common_pb2.ConfigPolicy(policy=policytext.always(), mod_policy=_ORDERER_ADMINS)
    )
    for name, consortium in declared.items():
        child = common_pb2.ConfigGroup(mod_policy=_ORDERER_ADMINS)
        for organization in consortium.organizations:
            child.groups[organization.name].CopyFrom(_organization(organization))
        _add(child, "ChannelCreationPolicy", policytext.implicit_meta("ANY Admins"), _ORDERER_ADMINS)
        group.groups[name].CopyFrom(child)
    return group


def _organization(declared: configtx.Organization) -> common_pb2.ConfigGroup:
    if declared.msp_type != "bccsp":
        raise UsageError(f"MSPs of type {declared.msp_type} are not supported", where=declared.name)
    group = common_pb2.ConfigGroup(mod_policy=_ADMINS)
    if declared.policies:
        _add_policies(group, declared.policies)
    else:
        admin = "ADMIN" if declared.admin_principal == "Role.ADMIN" else "MEMBER"
        for name, role in {"Admins": admin, "Readers": "MEMBER", "Writers": "MEMBER"}.items():
            policy = policytext.signed_by_role(declared.id, role)
            group.policies[name].CopyFrom(common_pb2.ConfigPolicy(policy=policy, mod_policy=_ADMINS))
    _add(group, "MSP", read_msp(declared.msp_dir, declared.id))
    return group


def _group(policies: Mapping[str, configtx.Policy], defaults: Mapping[str, str]) -> common_pb2.ConfigGroup:
    group = common_pb2.ConfigGroup(mod_policy=_ADMINS)
    meta = {name: configtx.Policy(type="ImplicitMeta", rule=rule) for name, rule in defaults.items()}
    _add_policies(group, policies or meta)
    return group


def _add_policies(group: common_pb2.ConfigGroup, declared: Mapping[str, configtx.Policy]) -> None:
    kinds = {"ImplicitMeta": policytext.implicit_meta, "Signature": policytext.signature}
    for name, policy in declared.items():
        try:
            made = kinds[policy.type](policy.rule)
        except KeyError:
            raise UsageError(
                f"the policy {name} has the type {policy.type!r}", hint="Type: ImplicitMeta, or Signature"
            ) from None
        except ValueError as error:
            raise UsageError(f"the rule of the policy {name} cannot be read: {error}") from None
        group.policies[name].CopyFrom(common_pb2.ConfigPolicy(policy=made, mod_policy=_ADMINS))


def _add_capabilities(group: common_pb2.ConfigGroup, declared: Mapping[str, bool]) -> None:
    if declared:
        wanted = {name: common_pb2.Capability() for name, is_required in declared.items() if is_required}
        _add(group, "Capabilities", common_pb2.Capabilities(capabilities=wanted))


def _add(group: common_pb2.ConfigGroup, name: str, value: Message, mod_policy: str = _ADMINS) -> None:
    group.values[name].CopyFrom(common_pb2.ConfigValue(value=_bytes(value), mod_policy=mod_policy))


def _bytes(message: Message) -> bytes:
    # Maps have no order of their own; with one, the same file gives the same bytes.
    return message.SerializeToString(deterministic=True)


def go_duration(duration_ns: int) -> str:
    """A duration as Go prints it: `2s`, `1m30s`, `250ms`."""
    for unit, size_ns in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if duration_ns < size_ns * 1000 and size_ns < 10**9:
            return f"{duration_ns / size_ns:.9g}{unit}"
    minutes, rest_ns = divmod(duration_ns, 60 * 10**9)
    seconds = f"{rest_ns / 10**9:.11g}s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds
