"""How a channel's config changes: an update is judged against the config as it is, and gives the next one.

An update says what it has read (elements with their versions) and what it writes. What it writes and has
not read is the change, and each changed element's own mod_policy must be satisfied by the signatures.
`derive` judges, for Broadcast and again for the log; `difference` makes updates, for channel creation and
tools. Pure: the same config and update give the same answer on every orderer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from google.protobuf.message import DecodeError

from twinlog.ordering.configtree import ConfigRefused, Item, Key, assemble, check_mod_policy, flatten
from twinlog.ordering.policy import Policies, SignedData
from twinlog.ordering.proto import common_pb2

_Member = TypeVar("_Member", common_pb2.ConfigValue, common_pb2.ConfigPolicy)


def read_update(envelope: common_pb2.Envelope) -> common_pb2.ConfigUpdateEnvelope:
    """The update in a CONFIG_UPDATE envelope."""
    try:
        payload = common_pb2.Payload.FromString(envelope.payload)
        header = common_pb2.ChannelHeader.FromString(payload.header.channel_header)
        if header.type != common_pb2.CONFIG_UPDATE:
            raise ConfigRefused(f"the envelope holds no config update: its type is {header.type}")
        return common_pb2.ConfigUpdateEnvelope.FromString(payload.data)
    except DecodeError:
        raise ConfigRefused("the config update cannot be decoded") from None


def contents(update: common_pb2.ConfigUpdateEnvelope) -> common_pb2.ConfigUpdate:
    """What an update reads and writes."""
    try:
        return common_pb2.ConfigUpdate.FromString(update.config_update)
    except DecodeError:
        raise ConfigRefused("the config update cannot be decoded") from None


def signed_data(update: common_pb2.ConfigUpdateEnvelope) -> list[SignedData]:
    """The signatures of an update, as policies take them."""
    try:
        return [
            SignedData(
                each.signature_header + update.config_update,
                common_pb2.SignatureHeader.FromString(each.signature_header).creator,
                each.signature,
            )
            for each in update.signatures
        ]
    except DecodeError:
        raise ConfigRefused("a signature of the config update cannot be decoded") from None


def derive(
    channel_id: str,
    current: Mapping[Key, Item],
    policies: Policies,
    update: common_pb2.ConfigUpdateEnvelope,
) -> common_pb2.ConfigGroup:
    """The config tree after an update; raises ConfigRefused if it may not be, naming the element."""
    change = contents(update)
    if change.channel_id != channel_id:
        raise ConfigRefused(f"the update is for channel {change.channel_id!r}, not for {channel_id!r}")
    read = flatten(change.read_set) if change.HasField("read_set") else {}
    written = flatten(change.write_set) if change.HasField("write_set") else {}
    for key, item in read.items():
        _check_read(key, item, current)
    changed = {
        key: item for key, item in written.items() if key not in read or read[key].version != item.version
    }
    if not changed:
        raise ConfigRefused("the update changes nothing")
    signed = signed_data(update)
    for key, item in changed.items():
        _check_changed(key, item, current, policies, signed)
    return assemble({**current, **changed})


def check_reached(update: common_pb2.ConfigUpdateEnvelope, result: common_pb2.ConfigGroup) -> None:
    """Raise ConfigRefused if an update writes what no group of the result names, and so has no effect.

    Asked of clients only: what is in the log already is taken as every other orderer takes it.
    """
    reached = flatten(result)
    for key in flatten(contents(update).write_set):
        if key not in reached:
            raise ConfigRefused(f"the update writes {key}, which no group of the result names")


def _check_read(key: Key, item: Item, current: Mapping[Key, Item]) -> None:
    if key not in current:
        raise ConfigRefused(f"the update has read {key}, which does not exist")
    if current[key].version != item.version:
        raise ConfigRefused(
            f"the update has read {key} at version {item.version}; it is at {current[key].version}"
        )


def _check_changed(
    key: Key,
    item: Item,
    current: Mapping[Key, Item],
    policies: Policies,
    signed: Sequence[SignedData],
) -> None:
    try:
        check_mod_policy(item.mod_policy)
    except ConfigRefused as error:
        raise ConfigRefused(f"{key} cannot be written: {error.what}") from None
    if key not in current:
        if item.version != 0:
            raise ConfigRefused(f"{key} is new, and the update gives it version {item.version}")
        return
    present = current[key]
    if item.version != present.version + 1:
        raise ConfigRefused(f"the update sets {key} to version {item.version}; it is at {present.version}")
    policy = policies.for_changes(present.mod_policy, key.group)
    if policy is None:
        raise ConfigRefused(f"the mod_policy {present.mod_policy!r} of {key} does not exist")
    if not policy.evaluate(signed):
        raise ConfigRefused(f"the signatures do not satisfy {policy.path}, which guards {key}")


def difference(
    original: common_pb2.ConfigGroup, wanted: common_pb2.ConfigGroup
) -> common_pb2.ConfigUpdate | None:
    """The least update that turns one tree into another; None if they are the same."""
    read, write = common_pb2.ConfigGroup(), common_pb2.ConfigGroup()
    if not _compare(original, wanted, read, write):
        return None
    return common_pb2.ConfigUpdate(read_set=read, write_set=write)


def _compare(
    original: common_pb2.ConfigGroup,
    wanted: common_pb2.ConfigGroup,
    read: common_pb2.ConfigGroup,
    write: common_pb2.ConfigGroup,
) -> bool:
    """Fill both sets for one group; True if anything in it or below differs."""
    read.version = write.version = original.version
    same_values = _compare_members(original.values, wanted.values, write.values)
    same_policies = _compare_members(original.policies, wanted.policies, write.policies)
    same_groups = []
    for name in sorted(original.groups.keys() & wanted.groups.keys()):
        below_read, below_write = common_pb2.ConfigGroup(), common_pb2.ConfigGroup()
        if _compare(original.groups[name], wanted.groups[name], below_read, below_write):
            read.groups[name].CopyFrom(below_read)
            write.groups[name].CopyFrom(below_write)
        else:
            same_groups.append(name)
    for name in sorted(wanted.groups.keys() - original.groups.keys()):
        _compare(common_pb2.ConfigGroup(), wanted.groups[name], common_pb2.ConfigGroup(), write.groups[name])
        write.groups[name].version = 0
        write.groups[name].mod_policy = wanted.groups[name].mod_policy
    if not _members_differ(original, wanted):
        return bool(write.groups or write.values or write.policies)
    # The group itself changes: both sets then name all its members, or those not named would be taken out.
    write.version = original.version + 1
    write.mod_policy = wanted.mod_policy
    for each in (read, write):
        for name in same_values:
            each.values[name].version = original.values[name].version
        for name in same_policies:
            each.policies[name].version = original.policies[name].version
        for name in same_groups:
            each.groups[name].version = original.groups[name].version
    return True


def _compare_members(
    original: Mapping[str, _Member], wanted: Mapping[str, _Member], write: Mapping[str, _Member]
) -> list[str]:
    """Write the values or policies that are new or other; the names of those that stay."""
    same = []
    for name in sorted(wanted):
        if name in original and _is_same(original[name], wanted[name]):
            same.append(name)
            continue
        # Looking a name up in a map of messages makes its entry.
        write[name].CopyFrom(wanted[name])
        write[name].version = original[name].version + 1 if name in original else 0
    return same


def _is_same(one: _Member, other: _Member) -> bool:
    if one.mod_policy != other.mod_policy:
        return False
    if isinstance(one, common_pb2.ConfigValue):
        assert isinstance(other, common_pb2.ConfigValue)
        return one.value == other.value
    assert isinstance(other, common_pb2.ConfigPolicy)
    return one.policy == other.policy


def _members_differ(original: common_pb2.ConfigGroup, wanted: common_pb2.ConfigGroup) -> bool:
    return (
        original.mod_policy != wanted.mod_policy
        or set(original.groups) != set(wanted.groups)
        or set(original.values) != set(wanted.values)
        or set(original.policies) != set(wanted.policies)
    )
