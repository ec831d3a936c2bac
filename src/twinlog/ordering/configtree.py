"""A channel's config as a flat set of elements, and back.

A config is a tree of groups that hold values, policies and groups. Updates are judged element by element,
each under its own key (`[Value] /Channel/Orderer/BatchSize`), so `update` takes the tree apart here, lays
the changed elements over the old ones and has the tree put together again. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from twinlog.ordering.policy import ROOT
from twinlog.ordering.proto import common_pb2
from twinlog.ordering.support import Refused

Item: TypeAlias = common_pb2.ConfigGroup | common_pb2.ConfigValue | common_pb2.ConfigPolicy

_NAME: Final = re.compile(r"[a-zA-Z0-9.-]+")
_CHANNEL_NAME: Final = re.compile(r"[a-z][a-z0-9.-]*")
_LONGEST_NAME: Final = 249
_ORDERER_CAPABILITIES: Final = f"/{ROOT}/Orderer/Capabilities"
_INHERITED_MOD_POLICY: Final = "Admins"


class ConfigRefused(Refused):
    """A config, or a change of one, that cannot hold; changes nothing."""


class Kind(StrEnum):
    """What an element is."""

    GROUP = "Group"
    VALUE = "Value"
    POLICY = "Policy"


@dataclass(frozen=True, order=True)
class Key:
    """Where an element stands; a group and a value may have the same path."""

    kind: Kind
    path: str

    def __str__(self) -> str:
        return f"[{self.kind}] {self.path}"

    @property
    def group(self) -> str:
        """The path of the group in which the element's mod_policy is looked up: a group's is its own."""
        return self.path if self.kind is Kind.GROUP else self.path.rpartition("/")[0]


def flatten(root: common_pb2.ConfigGroup) -> dict[Key, Item]:
    """Every element of a tree; raises ConfigRefused for a name that is not allowed."""
    return dict(_elements(root, f"/{ROOT}"))


def assemble(elements: Mapping[Key, Item]) -> common_pb2.ConfigGroup:
    """The tree of those elements that its groups name, beginning at the root."""
    # Channels made by the first releases have elements without a mod_policy, which nobody could ever change.
    mends = Key(Kind.VALUE, _ORDERER_CAPABILITIES) in elements
    return _group(elements, f"/{ROOT}", mends)


def check_channel_id(channel_id: str) -> None:
    """Raise ConfigRefused for a name that no channel may have; it is a topic's name too."""
    if not channel_id:
        raise ConfigRefused("a channel's name cannot be empty")
    if len(channel_id) > _LONGEST_NAME:
        raise ConfigRefused(f"a channel's name has at most {_LONGEST_NAME} characters")
    if not _CHANNEL_NAME.fullmatch(channel_id):
        raise ConfigRefused(
            f"the channel name {channel_id!r} is not allowed: small letters, digits, dots and dashes, "
            "a letter first"
        )


def check_name(name: str) -> None:
    """Raise ConfigRefused for a name that no element may have."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME or name in (".", ".."):
        raise ConfigRefused(f"the name {name[:_LONGEST_NAME]!r} is not allowed in a config")


def check_mod_policy(mod_policy: str) -> None:
    """Raise ConfigRefused for a mod_policy that cannot be the path of a policy."""
    if not mod_policy:
        raise ConfigRefused("it has no mod_policy")
    for name in mod_policy.removeprefix("/").split("/"):
        check_name(name)


def _elements(group: common_pb2.ConfigGroup, path: str) -> Iterator[tuple[Key, Item]]:
    yield Key(Kind.GROUP, path), group
    for name, child in group.groups.items():
        check_name(name)
        yield from _elements(child, f"{path}/{name}")
    for name, value in group.values.items():
        check_name(name)
        yield Key(Kind.VALUE, f"{path}/{name}"), value
    for name, policy in group.policies.items():
        check_name(name)
        yield Key(Kind.POLICY, f"{path}/{name}"), policy


def _group(elements: Mapping[Key, Item], path: str, mends: bool) -> common_pb2.ConfigGroup:
    declared = _element(elements, Key(Kind.GROUP, path))
    assert isinstance(declared, common_pb2.ConfigGroup)
    result = common_pb2.ConfigGroup(version=declared.version, mod_policy=declared.mod_policy)
    for name in declared.groups:
        result.groups[name].CopyFrom(_group(elements, f"{path}/{name}", mends))
    for name in declared.values:
        value = _element(elements, Key(Kind.VALUE, f"{path}/{name}"))
        assert isinstance(value, common_pb2.ConfigValue)
        result.values[name].CopyFrom(value)
    for name in declared.policies:
        policy = _element(elements, Key(Kind.POLICY, f"{path}/{name}"))
        assert isinstance(policy, common_pb2.ConfigPolicy)
        result.policies[name].CopyFrom(policy)
    if mends:
        items: list[Item] = [result, *result.values.values(), *result.policies.values()]
        for item in items:
            item.mod_policy = item.mod_policy or _INHERITED_MOD_POLICY
    return result


def _element(elements: Mapping[Key, Item], key: Key) -> Item:
    try:
        return elements[key]
    except KeyError:
        raise ConfigRefused(f"the config names {key} and does not have it") from None
