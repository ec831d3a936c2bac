"""A new channel's config before its first update, as the system channel gives it.

A client creates a channel by an update of a channel that does not exist. The config it is an update of is
made here: the channel's values, policies and orderer group from the system channel, and an application
group with the organisations asked for, which must all be in the consortium that the update names. The
update is then judged by `Bundle.propose` like any other. Pure: every orderer makes the same template.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import DecodeError

from twinlog.ordering import update
from twinlog.ordering.bundle import Bundle
from twinlog.ordering.configtree import ConfigRefused
from twinlog.ordering.proto import common_pb2

_APPLICATION: Final = "Application"
_CREATION_POLICY: Final = "ChannelCreationPolicy"


def template(system: Bundle, envelope: common_pb2.Envelope) -> Bundle:
    """The config that a creation's CONFIG_UPDATE envelope is an update of; raises ConfigRefused."""
    change = update.contents(update.read_update(envelope))
    channel_id = _channel_of(envelope)
    if change.channel_id != channel_id:
        raise ConfigRefused(
            f"the envelope is for channel {channel_id!r} and its update for {change.channel_id!r}"
        )
    consortium = _consortium_of(change)
    group = common_pb2.ConfigGroup()
    group.groups[_APPLICATION].CopyFrom(_application(system, consortium, change))
    present = system.config.channel_group
    group.groups["Orderer"].CopyFrom(present.groups["Orderer"])
    for name, value in present.values.items():
        group.values[name].CopyFrom(value)
    for name, policy in present.policies.items():
        group.policies[name].CopyFrom(policy)
    group.values["Consortium"].CopyFrom(
        common_pb2.ConfigValue(
            value=common_pb2.Consortium(name=consortium).SerializeToString(), mod_policy="Admins"
        )
    )
    if system.resubmits:  # the capability that made templates predictable is the same
        group.mod_policy = present.mod_policy
        _set_versions_to_zero(group)
    return Bundle.from_config(channel_id, common_pb2.Config(channel_group=group))


def _channel_of(envelope: common_pb2.Envelope) -> str:
    payload = common_pb2.Payload.FromString(envelope.payload)  # read_update has decoded both before
    return common_pb2.ChannelHeader.FromString(payload.header.channel_header).channel_id


def _consortium_of(change: common_pb2.ConfigUpdate) -> str:
    written = change.write_set
    if _APPLICATION not in written.groups:
        raise ConfigRefused("the creation of a channel must write the group /Channel/Application")
    if written.groups[_APPLICATION].version != 1:
        raise ConfigRefused(
            "the creation of a channel must set /Channel/Application to version 1, not to "
            f"{written.groups[_APPLICATION].version}"
        )
    if "Consortium" not in written.values:
        raise ConfigRefused("the creation of a channel must name a consortium")
    try:
        return common_pb2.Consortium.FromString(written.values["Consortium"].value).name
    except DecodeError:
        raise ConfigRefused("the name of the consortium cannot be decoded") from None


def _application(system: Bundle, consortium: str, change: common_pb2.ConfigUpdate) -> common_pb2.ConfigGroup:
    declared = system.values.consortiums
    if declared is None:
        raise ConfigRefused(f"the channel {system.channel_id} creates no channels")
    if consortium not in declared:
        raise ConfigRefused(f"the consortium {consortium!r} does not exist")
    group = common_pb2.ConfigGroup(mod_policy=_CREATION_POLICY)
    group.policies[_CREATION_POLICY].policy.CopyFrom(declared[consortium].creation_policy)
    members = system.config.channel_group.groups["Consortiums"].groups[consortium].groups
    wanted = change.write_set.groups[_APPLICATION].groups
    if members and not wanted:
        raise ConfigRefused(f"the new channel has no members, and the consortium {consortium} has some")
    if members:  # a consortium without members lets anybody in
        for name in wanted:
            if name not in members:
                raise ConfigRefused(f"{name} is not a member of the consortium {consortium}")
            group.groups[name].CopyFrom(members[name])
    return group


def _set_versions_to_zero(group: common_pb2.ConfigGroup) -> None:
    group.version = 0
    for value in group.values.values():
        value.version = 0
    for policy in group.policies.values():
        policy.version = 0
    for child in group.groups.values():
        _set_versions_to_zero(child)
