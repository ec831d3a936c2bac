"""A channel's config made ready, from genesis through updates to new channels."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.ordering.network import SYSTEM, Network, signed
from twinlog.ordering import crypto, genesis
from twinlog.ordering.bundle import Bundle
from twinlog.ordering.configtree import ConfigRefused
from twinlog.ordering.identity import Signer
from twinlog.ordering.proto import common_pb2, msp_pb2, orderer_pb2
from twinlog.ordering.support import BatchSize
from twinlog.ordering.update import difference

Group = common_pb2.ConfigGroup


def changed(bundle: Bundle, change: Callable[[Group], None], *signers: Signer) -> common_pb2.Envelope:
    """A signed update that turns a bundle's tree into another."""
    wanted = Group()
    wanted.CopyFrom(bundle.config.channel_group)
    change(wanted)
    update = difference(bundle.config.channel_group, wanted)
    assert update is not None
    update.channel_id = bundle.channel_id
    return common_pb2.Envelope.FromString(genesis.signed_update(update, signers))


def smaller_batches(group: Group) -> None:
    sizes = orderer_pb2.BatchSize(max_message_count=3, absolute_max_bytes=1000, preferred_max_bytes=500)
    group.groups["Orderer"].values["BatchSize"].value = sizes.SerializeToString()


def test_genesis_says_what_the_profile_says(network: Network) -> None:
    system = network.system
    assert system.channel_id == SYSTEM and system.sequence == 0 and system.is_system
    assert system.batch_size == BatchSize(10, 2**20, 64 * 2**10)
    assert system.batch_timeout_s == 0.5
    assert system.brokers == ("localhost:9092", "localhost:9093")
    assert (system.max_channels, system.consensus_type) == (3, "kafka")
    assert system.capabilities == {"V1_4_2"}
    assert system.resubmits and system.checks_expiry and system.allows_migration
    assert not system.in_maintenance
    assert set(system.msps) == {"OrdererOrg", "Org1", "Org2"}


def test_writers_readers_and_validators_are_those_of_the_default_policies(network: Network) -> None:
    system = network.system
    orderer, client = network.signer("OrdererOrg", "orderer1"), network.signer("Org1", "client")
    for policy in (system.writers, system.readers, system.policy("/Channel/Orderer/BlockValidation")):
        assert policy.evaluate([signed(orderer)])
        assert not policy.evaluate([signed(orderer)._replace(data=b"other")])
        assert not policy.evaluate([signed(client)])  # of the consortium, not of the channel


def test_nobody_but_the_admin_may_change_the_orderer_group(network: Network) -> None:
    system = network.system
    admin = network.signer("OrdererOrg")
    proposed = system.propose(changed(system, smaller_batches, admin))
    following = system.next(proposed)
    assert following.sequence == 1 and following.batch_size == BatchSize(3, 1000, 500)
    assert system.batch_size.max_message_count == 10
    for signer in (network.signer("OrdererOrg", "orderer1"), network.signer("Org1")):
        with pytest.raises(ConfigRefused, match="do not satisfy /Channel/Orderer/Admins"):
            system.propose(changed(system, smaller_batches, signer))


def test_an_update_of_an_older_config_is_refused(network: Network) -> None:
    admin = network.signer("OrdererOrg")
    envelope = changed(network.system, smaller_batches, admin)
    following = network.system.next(network.system.propose(envelope))
    with pytest.raises(ConfigRefused, match="to version 1; it is at 1"):
        following.propose(envelope)


def test_a_config_that_does_not_follow_is_refused(network: Network) -> None:
    system = network.system
    proposed = system.propose(changed(system, smaller_batches, network.signer("OrdererOrg")))
    later = common_pb2.ConfigEnvelope()
    later.CopyFrom(proposed)
    later.config.sequence = 2
    with pytest.raises(ConfigRefused, match="sequence 2, and 1 comes next"):
        system.next(later)
    other = common_pb2.ConfigEnvelope()
    other.CopyFrom(proposed)
    other.config.channel_group.values["Consortium"].value = b""
    with pytest.raises(ConfigRefused, match="not what its update leads to"):
        system.next(other)
    with pytest.raises(ConfigRefused):
        system.next(common_pb2.ConfigEnvelope())


def set_value(group: Group, path: str, value: bytes) -> None:
    *above, name = path.split("/")
    for each in above:
        group = group.groups[each]
    group.values[name].value = value
    group.values[name].mod_policy = "Admins"


def batch_size(count: int, absolute: int, preferred: int) -> bytes:
    sizes = orderer_pb2.BatchSize(
        max_message_count=count, absolute_max_bytes=absolute, preferred_max_bytes=preferred
    )
    return sizes.SerializeToString()


def capabilities(name: str) -> bytes:
    wanted = {name: common_pb2.Capability()}
    return common_pb2.Capabilities(capabilities=wanted).SerializeToString()


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("Orderer/BatchSize", batch_size(0, 10, 5), "cannot be 0"),
        ("Orderer/BatchSize", batch_size(1, 0, 5), "cannot be 0"),
        ("Orderer/BatchSize", batch_size(1, 10, 0), "cannot be 0"),
        ("Orderer/BatchSize", batch_size(1, 10, 11), "over the absolute one"),
        ("Orderer/BatchSize", b"\xff", "/Channel/Orderer/BatchSize cannot be decoded"),
        ("Orderer/BatchTimeout", b"", "batch timeout cannot be read"),
        ("Orderer/BatchTimeout", b"\n\x030ms", "must be more than 0"),
        ("Orderer/BatchTimeout", b"\n\x03-1s", "must be more than 0"),
        ("Orderer/KafkaBrokers", b"\n\x04host", "not written as host:port"),
        ("Orderer/KafkaBrokers", b"\n\x07a:70000", "not written as host:port"),
        ("Orderer/Capabilities", capabilities("V9"), "orderer capability 'V9'"),
        ("Capabilities", capabilities("V9"), "channel capability 'V9'"),
        ("HashingAlgorithm", b"\n\x03MD5", "'MD5' is not known"),
        ("BlockDataHashingStructure", b"\x08\x07", "must be 4294967295"),
        ("Orderer/Strange", b"", "/Channel/Orderer/Strange is not known"),
        ("Orderer/OrdererOrg/MSP", b"", "needs the certificate of at least one authority"),
        ("Orderer/OrdererOrg/Strange", b"", "/Channel/Orderer/OrdererOrg/Strange is not known"),
        ("Application/ACLs", b"", "access lists need the application capability V1_2"),
        ("Strange/Value", b"", "/Channel/Strange is not allowed"),
        ("Orderer/OrdererOrg/Inner/Value", b"", "cannot hold groups"),
    ],
)
def test_a_value_that_cannot_hold_is_refused(network: Network, path: str, value: bytes, why: str) -> None:
    config = common_pb2.Config()
    config.CopyFrom(network.system.config)
    set_value(config.channel_group, path, value)
    with pytest.raises(ConfigRefused, match=why):
        Bundle.from_config(SYSTEM, config)


def test_a_proposed_value_that_cannot_hold_is_refused_like_any_other(network: Network) -> None:
    envelope = changed(
        network.system,
        lambda group: set_value(group, "Orderer/BatchSize", batch_size(0, 1, 1)),
        network.signer("OrdererOrg"),
    )
    with pytest.raises(ConfigRefused, match="cannot be 0"):
        network.system.propose(envelope)


def test_a_config_without_its_parts_is_refused(network: Network) -> None:
    for config, why in (
        (common_pb2.Config(), "no channel group"),
        (common_pb2.Config(channel_group=Group()), "hashing algorithm"),
    ):
        with pytest.raises(ConfigRefused, match=why):
            Bundle.from_config(SYSTEM, config)
    with pytest.raises(ConfigRefused, match="not allowed"):
        Bundle.from_config("Not a channel", network.system.config)
    bare = common_pb2.Config()
    bare.CopyFrom(network.system.config)
    del bare.channel_group.groups["Orderer"]
    with pytest.raises(ConfigRefused, match="no group /Channel/Orderer"):
        Bundle.from_config(SYSTEM, bare)


def test_an_older_channel_needs_addresses_and_knows_no_endpoints(network: Network) -> None:
    config = common_pb2.Config()
    config.CopyFrom(network.system.config)
    group = config.channel_group
    group.values["Capabilities"].value = capabilities("V1_3")
    for name in ("OrdererOrg",):  # units mark admins since V1_4_3 only, and V1_3 wants clients to be named
        del group.groups["Orderer"].groups[name]
    del group.groups["Consortiums"]
    Bundle.from_config(SYSTEM, config)
    group.values["OrdererAddresses"].value = b""
    with pytest.raises(ConfigRefused, match="no addresses of orderers"):
        Bundle.from_config(SYSTEM, config)
    del group.groups["Orderer"].values["Capabilities"]
    with pytest.raises(ConfigRefused, match="need orderer capabilities first"):
        Bundle.from_config(SYSTEM, config)


def test_an_organisation_keeps_its_provider(network: Network) -> None:
    def take_over(group: Group) -> None:
        theirs = group.groups["Consortiums"].groups["Pair"].groups["Org1"].values["MSP"].value
        group.groups["Orderer"].groups["OrdererOrg"].values["MSP"].value = theirs

    config = common_pb2.Config()
    config.CopyFrom(network.system.config)
    take_over(config.channel_group)
    following = Bundle.from_config(SYSTEM, config)
    with pytest.raises(ConfigRefused, match="from OrdererOrg to Org1"):
        network.system.check_next(following)


def test_groups_are_neither_taken_away_nor_added(network: Network) -> None:
    config = common_pb2.Config()
    config.CopyFrom(network.system.config)
    del config.channel_group.groups["Consortiums"]
    bare = Bundle.from_config(SYSTEM, config)
    for one, other in ((bare, network.system), (network.system, bare)):
        with pytest.raises(ConfigRefused, match="neither be added nor taken away"):
            one.check_next(other)


def test_the_consensus_type_stays_where_the_channel_does_not_know_maintenance(network: Network) -> None:
    config = common_pb2.Config()
    config.CopyFrom(network.system.config)
    raft = orderer_pb2.ConsensusType(type="etcdraft", state=orderer_pb2.ConsensusType.STATE_MAINTENANCE)
    config.channel_group.groups["Orderer"].values["ConsensusType"].value = raft.SerializeToString()
    moved = Bundle.from_config(SYSTEM, config)
    assert moved.in_maintenance
    network.system.check_next(moved)  # V1_4_3 knows it; which moves are allowed, Broadcast decides
    config.channel_group.values["Capabilities"].value = capabilities("V1_1")
    del config.channel_group.groups["Consortiums"]
    del config.channel_group.groups["Orderer"].groups["OrdererOrg"]
    older = Bundle.from_config(SYSTEM, config)
    kafka = orderer_pb2.ConsensusType(type="kafka")
    config.channel_group.groups["Orderer"].values["ConsensusType"].value = kafka.SerializeToString()
    with pytest.raises(ConfigRefused, match="cannot change from etcdraft to kafka"):
        older.check_next(Bundle.from_config(SYSTEM, config))


def test_in_maintenance_only_orderers_write_and_read(network: Network) -> None:
    config = common_pb2.Config()
    config.CopyFrom(network.system.config)
    state = orderer_pb2.ConsensusType(type="kafka", state=orderer_pb2.ConsensusType.STATE_MAINTENANCE)
    config.channel_group.groups["Orderer"].values["ConsensusType"].value = state.SerializeToString()
    bundle = Bundle.from_config(SYSTEM, config)
    assert bundle.writers.path == "/Channel/Orderer/Writers"
    assert bundle.readers.path == "/Channel/Orderer/Readers"


def test_a_provider_defined_in_two_ways_is_refused(network: Network) -> None:
    other = crypto.new_authority("other")
    admin = other.issue(crypto.Wanted("admin"))
    provider = msp_pb2.FabricMSPConfig(name="Org1", root_certs=[other.pem], admins=[admin.pem])
    config = common_pb2.Config()
    config.CopyFrom(network.system.config)
    value = msp_pb2.MSPConfig(config=provider.SerializeToString()).SerializeToString()
    config.channel_group.groups["Orderer"].groups["OrdererOrg"].values["MSP"].value = value
    with pytest.raises(ConfigRefused, match="Org1 is defined in two ways"):
        Bundle.from_config(SYSTEM, config)


def test_without_organisations_everybody_may_do_everything(network: Network) -> None:
    block = genesis.genesis_block(network.profile("Insecure"), "open")
    bundle = Bundle.from_envelope(common_pb2.Envelope.FromString(block.data.data[0]))
    assert bundle.writers.evaluate([])
    assert bundle.propose(changed(bundle, smaller_batches, network.signer("Org1"))).config.sequence == 1
