"""New channels, as the system channel lets them be made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.ordering.network import Network, signed
from twinlog.ordering import creation, genesis
from twinlog.ordering.bundle import Bundle
from twinlog.ordering.configtree import ConfigRefused
from twinlog.ordering.proto import common_pb2

Update = common_pb2.ConfigUpdate


def created(network: Network, envelope: common_pb2.Envelope) -> Bundle:
    template = creation.template(network.system, envelope)
    return Bundle.from_config("new", template.propose(envelope).config)


def test_an_admin_of_any_member_creates_a_channel(network: Network) -> None:
    for profile in ("Both", "Alone"):
        bundle = created(network, network.creation("new", profile, [network.signer("Org1")]))
        assert bundle.sequence == 1 and not bundle.is_system
        assert bundle.batch_size == network.system.batch_size
        assert bundle.writers.evaluate([signed(network.signer("Org1", "client"))])
        may_second = bundle.writers.evaluate([signed(network.signer("Org2", "client"))])
        assert may_second is (profile == "Both")


def test_a_new_channels_config_is_derived_again_to_the_same_tree(network: Network) -> None:
    envelope = network.creation("new", "Both", [network.signer("Org2")])
    template = creation.template(network.system, envelope)
    proposed = template.propose(envelope)
    assert template.next(proposed).config == proposed.config
    assert creation.template(network.system, envelope).propose(envelope) == proposed


def test_who_is_no_admin_of_a_member_creates_nothing(network: Network) -> None:
    for signer in (
        network.signer("Org1", "client"),
        network.signer("OrdererOrg"),
    ):
        with pytest.raises(ConfigRefused, match="do not satisfy /Channel/Application/ChannelCreationPolicy"):
            created(network, network.creation("new", "Both", [signer]))


def test_an_admin_of_another_member_cannot_create_a_channel_without_his_organisation(
    network: Network,
) -> None:
    with pytest.raises(ConfigRefused, match="ChannelCreationPolicy"):
        created(network, network.creation("new", "Alone", [network.signer("Org2")]))


def rename(change: Update) -> None:
    change.channel_id = "other"


def drop_application(change: Update) -> None:
    del change.write_set.groups["Application"]


def keep_version(change: Update) -> None:
    change.write_set.groups["Application"].version = 0


def drop_consortium(change: Update) -> None:
    del change.write_set.values["Consortium"]


def break_consortium(change: Update) -> None:
    change.write_set.values["Consortium"].value = b"\xff"


def name_unknown_consortium(change: Update) -> None:
    change.write_set.values["Consortium"].value = common_pb2.Consortium(name="Nope").SerializeToString()


def add_stranger(change: Update) -> None:
    change.write_set.groups["Application"].groups["Stranger"].version = 0


def drop_members(change: Update) -> None:
    change.write_set.groups["Application"].ClearField("groups")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (rename, "envelope is for channel 'new' and its update for 'other'"),
        (drop_application, "must write the group /Channel/Application"),
        (keep_version, "to version 1, not to 0"),
        (drop_consortium, "must name a consortium"),
        (break_consortium, "cannot be decoded"),
        (name_unknown_consortium, "'Nope' does not exist"),
        (add_stranger, "Stranger is not a member"),
        (drop_members, "has no members"),
    ],
)
def test_a_creation_that_may_not_be_is_refused(
    network: Network, spoil: Callable[[Update], None], why: str
) -> None:
    change = genesis.creation_update(network.profile("Both"), "new")
    signer = network.signer("Org1")
    envelope = common_pb2.Envelope.FromString(genesis.signed_update(change, [signer]))
    spoil(change)
    payload = common_pb2.Payload.FromString(envelope.payload)
    inner = common_pb2.ConfigUpdateEnvelope(config_update=change.SerializeToString())
    payload.data = inner.SerializeToString()
    envelope.payload = payload.SerializeToString()
    with pytest.raises(ConfigRefused, match=why):
        creation.template(network.system, envelope)


def test_a_channel_that_is_no_system_channel_creates_none(network: Network) -> None:
    envelope = network.creation("new", "Both", [network.signer("Org1")])
    ordinary = created(network, envelope)
    with pytest.raises(ConfigRefused, match="creates no channels"):
        creation.template(ordinary, envelope)


def test_a_new_channel_begins_at_version_zero_although_the_system_channel_has_changed(
    network: Network,
) -> None:
    config = common_pb2.Config()
    config.CopyFrom(network.system.config)
    config.channel_group.groups["Orderer"].version = 7
    config.channel_group.groups["Orderer"].values["BatchSize"].version = 9
    config.channel_group.policies["Writers"].version = 2
    later = Bundle.from_config("system", config)
    envelope = network.creation("new", "Both", [network.signer("Org1")])
    group = creation.template(later, envelope).config.channel_group
    orderer = group.groups["Orderer"]
    assert (orderer.version, orderer.values["BatchSize"].version, group.policies["Writers"].version) == (
        0,
        0,
        0,
    )
