"""How configs change: trees taken apart and put together, updates judged, differences made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.ordering import policytext, update
from twinlog.ordering.configtree import (
    ConfigRefused,
    Key,
    Kind,
    assemble,
    check_channel_id,
    check_mod_policy,
    flatten,
)
from twinlog.ordering.members import Members
from twinlog.ordering.policy import Policies
from twinlog.ordering.proto import common_pb2

Group = common_pb2.ConfigGroup
CHANNEL = "channel"
NEVER = common_pb2.Policy(type=1, value=b"\x12\x04\x12\x02\x08\x01")  # one of no rules

names = st.sampled_from(["A", "B", "c.d", "e-f"])
numbers = st.integers(0, 3)
mod_policies = st.sampled_from(["Open", "/Channel/Open"])


@st.composite
def groups(draw: st.DrawFn, depth: int = 2) -> Group:
    group = Group(version=draw(numbers), mod_policy=draw(mod_policies))
    for name in draw(st.sets(names, max_size=2)):
        value = common_pb2.ConfigValue(
            version=draw(numbers), value=draw(st.binary(max_size=2)), mod_policy=draw(mod_policies)
        )
        group.values[name].CopyFrom(value)
    # Everybody may change everything, in every group.
    policy = common_pb2.ConfigPolicy(policy=policytext.always(), mod_policy="Open", version=draw(numbers))
    group.policies["Open"].CopyFrom(policy)
    if depth:
        for name in draw(st.sets(names, max_size=2)):
            group.groups[name].CopyFrom(draw(groups(depth - 1)))
    return group


def derived(current: Group, change: common_pb2.ConfigUpdate) -> Group:
    envelope = common_pb2.ConfigUpdateEnvelope(config_update=change.SerializeToString())
    policies = Policies(current, Members([]))
    result = update.derive(CHANNEL, flatten(current), policies, envelope)
    update.check_reached(envelope, result)
    return result


def a_tree() -> Group:
    """/Channel with one value that everybody may change and one that nobody may."""
    root = Group(version=2, mod_policy="Open")
    root.policies["Open"].CopyFrom(common_pb2.ConfigPolicy(policy=policytext.always(), mod_policy="Open"))
    root.policies["Shut"].CopyFrom(common_pb2.ConfigPolicy(policy=NEVER, mod_policy="Shut"))
    root.values["Free"].CopyFrom(common_pb2.ConfigValue(version=5, value=b"old", mod_policy="Open"))
    root.values["Fixed"].CopyFrom(common_pb2.ConfigValue(value=b"old", mod_policy="/Channel/Shut"))
    root.values["Lost"].CopyFrom(common_pb2.ConfigValue(value=b"old", mod_policy="Missing"))
    root.groups["Sub"].CopyFrom(Group(version=1, mod_policy="Open"))
    root.groups["Sub"].policies["Open"].CopyFrom(
        common_pb2.ConfigPolicy(policy=NEVER, mod_policy="/Channel/Open")
    )
    return root


def a_change(*, version: int = 6, name: str = "Free", mod_policy: str = "Open") -> common_pb2.ConfigUpdate:
    change = common_pb2.ConfigUpdate(channel_id=CHANNEL)
    change.read_set.version = change.write_set.version = 2
    change.write_set.values[name].CopyFrom(
        common_pb2.ConfigValue(version=version, value=b"new", mod_policy=mod_policy)
    )
    return change


@given(groups())
def test_a_tree_taken_apart_and_put_together_is_the_same(root: Group) -> None:
    assert assemble(flatten(root)) == root


@given(groups(), groups())
def test_a_difference_leads_from_one_tree_to_the_other(original: Group, wanted: Group) -> None:
    change = update.difference(original, wanted)
    if change is None:
        assert without_versions(original) == without_versions(wanted)
        return
    change.channel_id = CHANNEL
    assert without_versions(derived(original, change)) == without_versions(wanted)


@given(groups(), groups())
def test_an_update_does_not_apply_twice(original: Group, wanted: Group) -> None:
    change = update.difference(original, wanted)
    if change is not None:
        change.channel_id = CHANNEL
        result = derived(original, change)
        with pytest.raises(ConfigRefused):
            derived(result, change)


def without_versions(group: Group) -> Group:
    bare = Group()
    bare.CopyFrom(group)
    stack = [bare]
    while stack:
        each = stack.pop()
        each.version = 0
        for item in (*each.values.values(), *each.policies.values()):
            item.ClearField("version")
        stack.extend(each.groups.values())
    return bare


def test_a_value_is_changed_and_the_rest_stays() -> None:
    result = derived(a_tree(), a_change())
    assert (result.values["Free"].version, result.values["Free"].value) == (6, b"new")
    assert result.version == 2 and result.values["Fixed"] == a_tree().values["Fixed"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (a_change(version=5), "to version 5; it is at 5"),
        (a_change(version=7), "to version 7; it is at 5"),
        (a_change(name="Fixed", version=1), "do not satisfy /Channel/Shut"),
        (a_change(name="Lost", version=1), "mod_policy 'Missing' of .* does not exist"),
        (a_change(mod_policy=""), "has no mod_policy"),
        (a_change(mod_policy="Open//x"), "the name '' is not allowed"),
        (a_change(name="New", version=1), "is new, and the update gives it version 1"),
        (a_change(name="New", version=0), "which no group of the result names"),
        (a_change(name="bad_name"), "'bad_name' is not allowed"),
        (common_pb2.ConfigUpdate(channel_id=CHANNEL), "changes nothing"),
        (common_pb2.ConfigUpdate(channel_id="other"), "for channel 'other'"),
    ],
)
def test_an_update_that_may_not_be_is_refused(change: common_pb2.ConfigUpdate, why: str) -> None:
    with pytest.raises(ConfigRefused, match=why):
        derived(a_tree(), change)


def test_what_an_update_has_read_must_still_be_so() -> None:
    change = a_change()
    change.read_set.values["Fixed"].version = 1
    with pytest.raises(ConfigRefused, match=r"\[Value\] /Channel/Fixed at version 1; it is at 0"):
        derived(a_tree(), change)
    change = a_change()
    change.read_set.groups["Gone"].version = 0
    with pytest.raises(ConfigRefused, match=r"read \[Group\] /Channel/Gone, which does not exist"):
        derived(a_tree(), change)


def test_a_groups_own_policy_guards_the_group() -> None:
    change = common_pb2.ConfigUpdate(channel_id=CHANNEL)
    change.read_set.version = change.write_set.version = 2
    change.write_set.groups["Sub"].CopyFrom(Group(version=2, mod_policy="Open"))
    with pytest.raises(ConfigRefused, match="do not satisfy /Channel/Sub/Open"):
        derived(a_tree(), change)


def test_a_group_that_names_what_is_not_there_is_refused() -> None:
    change = common_pb2.ConfigUpdate(channel_id=CHANNEL)
    change.write_set.CopyFrom(a_tree())
    change.write_set.version = 3
    elements = flatten(a_tree())
    with pytest.raises(ConfigRefused, match="does not have it"):
        assemble({key: item for key, item in elements.items() if key.path != "/Channel/Fixed"})


def test_elements_without_mod_policy_get_one_where_orderers_have_capabilities() -> None:
    root = a_tree()
    root.values["Free"].mod_policy = ""
    assert assemble(flatten(root)).values["Free"].mod_policy == ""
    root.groups["Orderer"].values["Capabilities"].value = b""
    mended = assemble(flatten(root))
    assert mended.values["Free"].mod_policy == "Admins"
    assert mended.groups["Orderer"].mod_policy == "Admins"


def test_updates_that_cannot_be_decoded_are_refused() -> None:
    for envelope in (common_pb2.Envelope(payload=b"\xff"), common_pb2.Envelope()):
        with pytest.raises(ConfigRefused):
            update.read_update(envelope)
    broken = common_pb2.ConfigUpdateEnvelope(config_update=b"\xff")
    with pytest.raises(ConfigRefused, match="cannot be decoded"):
        update.contents(broken)
    broken.signatures.add(signature_header=b"\xff")
    with pytest.raises(ConfigRefused, match="signature of the config update"):
        update.signed_data(broken)


@pytest.mark.parametrize("name", ["a", "my-channel.2", "a" * 249])
def test_names_that_channels_may_have(name: str) -> None:
    check_channel_id(name)


@pytest.mark.parametrize("name", ["", "A", "1a", "a_b", "a b", "a" * 250, "a\n"])
def test_names_that_channels_may_not_have(name: str) -> None:
    with pytest.raises(ConfigRefused):
        check_channel_id(name)


@pytest.mark.parametrize("mod_policy", ["Admins", "/Channel/Orderer/Admins", "Sub/Admins"])
def test_mod_policies_that_are_paths(mod_policy: str) -> None:
    check_mod_policy(mod_policy)


@pytest.mark.parametrize("mod_policy", ["", "/", "a//b", "a/", ".", "a/..", "a b", "x" * 250])
def test_mod_policies_that_are_no_paths(mod_policy: str) -> None:
    with pytest.raises(ConfigRefused):
        check_mod_policy(mod_policy)


def test_keys_are_shown_with_kind_and_path() -> None:
    assert str(Key(Kind.VALUE, "/Channel/Orderer/BatchSize")) == "[Value] /Channel/Orderer/BatchSize"
    assert Key(Kind.VALUE, "/Channel/Orderer/BatchSize").group == "/Channel/Orderer"
    assert Key(Kind.GROUP, "/Channel/Orderer").group == "/Channel/Orderer"
