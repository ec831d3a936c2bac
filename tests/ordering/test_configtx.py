"""Profiles of configtx.yaml, and the blocks and updates that are made of them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.ordering.network import Network
from twinlog.errors import FileProblems, UsageError
from twinlog.ordering import configtx, crypto, genesis, mspdir
from twinlog.ordering.proto import common_pb2, msp_pb2, orderer_pb2, peer_pb2

FILE = Path("/somewhere/configtx.yaml")
LITTLE = """\
Profiles:
  Little:
    Orderer: {OrdererType: kafka}
"""


def little(text: str = LITTLE, env: dict[str, str] | None = None) -> configtx.Profile:
    return configtx.parse(text, FILE, "Little", env or {})


def test_what_is_absent_or_zero_gets_fabrics_default() -> None:
    for text in (
        LITTLE,
        LITTLE.replace("{", "{BatchTimeout: 0, Addresses: , BatchSize: {MaxMessageCount: 0}, "),
    ):
        orderer = little(text).orderer
        assert orderer is not None
        assert orderer.batch_timeout_ns == 2_000_000_000
        assert orderer.batch_size.max_message_count == 500
        assert orderer.batch_size.absolute_max_bytes == 10 * 2**20
        assert orderer.batch_size.preferred_max_bytes == 2 * 2**20
        assert orderer.addresses == ["127.0.0.1:7050"]
        assert orderer.kafka.brokers == ["127.0.0.1:9092"]
        assert orderer.max_channels == 0


def test_keys_are_read_without_regard_to_capitals() -> None:
    orderer = little(LITTLE.replace("OrdererType", "orderertype")).orderer
    assert orderer is not None and orderer.orderer_type == "kafka"


def test_paths_are_seen_from_the_files_directory(network: Network) -> None:
    orderer = network.profile("System").orderer
    assert orderer is not None
    assert orderer.organizations[0].msp_dir == network.directory / "OrdererOrg/msp"


def test_the_environment_stands_over_the_profile_for_sections_that_are_there() -> None:
    env = {
        "CONFIGTX_ORDERER_ORDERERTYPE": "solo",
        "CONFIGTX_ORDERER_KAFKA_BROKERS": "[a:1, b:2]",
        "CONFIGTX_ORDERER_BATCHTIMEOUT": "7s",
        "CONFIGTX_ORDERER_BATCHSIZE_MAXMESSAGECOUNT": "7",
    }
    text = LITTLE.replace("kafka}", "kafka, Kafka: {Brokers: [c:3]}}")
    orderer = little(text, env).orderer
    assert orderer is not None
    assert orderer.orderer_type == "solo" and orderer.kafka.brokers == ["a:1", "b:2"]
    assert orderer.batch_timeout_ns == 7_000_000_000
    assert orderer.batch_size.max_message_count == 500  # its section is absent


@pytest.mark.parametrize(
    ("text", "size"),
    [("10 MB", 10 * 2**20), ("512k", 512 * 2**10), ("1 g", 2**30), ("99 KB", 99 * 1024), (1048576, 2**20)],
)
def test_sizes_count_in_powers_of_1024(text: object, size: int) -> None:
    assert configtx.size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1.5 MB", "4 GB", "10 TB"])
def test_sizes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        configtx.size_bytes(text)


def test_every_problem_of_a_profile_is_named_with_its_path() -> None:
    text = LITTLE.replace("{", "{Strange: 1, BatchTimeout: soon, BatchSize: {AbsoluteMaxBytes: much}, ")
    with pytest.raises(FileProblems) as caught:
        little(text)
    paths = {problem.path for problem in caught.value.problems}
    assert paths == {
        "Profiles.Little.Orderer.Strange",
        "Profiles.Little.Orderer.BatchTimeout",
        "Profiles.Little.Orderer.BatchSize.AbsoluteMaxBytes",
    }


def test_a_section_that_fabrics_tool_does_not_know_is_refused() -> None:
    with pytest.raises(FileProblems) as caught:
        little(LITTLE + "Policies: {}\n")
    assert [problem.path for problem in caught.value.problems] == ["policies"]


def test_an_unknown_profile_is_answered_with_those_that_exist(network: Network) -> None:
    with pytest.raises(UsageError) as caught:
        network.profile("Nope")
    assert caught.value.hint == "one of these? Alone, Both, Insecure, System"


@pytest.mark.parametrize("text", ["", "[", "Profiles: 3", "- a"])
def test_a_file_that_has_no_profiles_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        little(text)


def test_a_genesis_block_hashes_and_reads_back(network: Network, tmp_path: Path) -> None:
    block = network.genesis
    assert block.header.number == 0 and block.header.previous_hash == b""
    assert block.header.data_hash == hashlib.sha256(block.data.data[0]).digest()
    assert list(block.metadata.metadata) == [b""] * 5
    file = tmp_path / "genesis.block"
    file.write_bytes(block.SerializeToString())
    again, bundle = genesis.read_block(file)
    assert again == block and bundle.config == network.system.config


def test_a_genesis_header_is_that_of_fabrics_tool(network: Network) -> None:
    envelope = common_pb2.Envelope.FromString(network.genesis.data.data[0])
    payload = common_pb2.Payload.FromString(envelope.payload)
    header = common_pb2.ChannelHeader.FromString(payload.header.channel_header)
    nonce = common_pb2.SignatureHeader.FromString(payload.header.signature_header).nonce
    assert (header.type, header.version, header.epoch) == (common_pb2.CONFIG, 1, 0)
    assert header.tx_id == hashlib.sha256(nonce).hexdigest() and len(nonce) == 24
    assert envelope.signature == b""


def test_two_blocks_of_a_profile_hold_the_same_config(network: Network) -> None:
    again = genesis.channel_group(network.profile("System"))
    assert again.SerializeToString(deterministic=True) == (
        network.system.config.channel_group.SerializeToString(deterministic=True)
    )


def test_values_stand_where_others_look_for_them(network: Network) -> None:
    group = network.system.config.channel_group
    orderer = group.groups["Orderer"]
    assert set(orderer.values) == {
        "BatchSize",
        "BatchTimeout",
        "ChannelRestrictions",
        "Capabilities",
        "KafkaBrokers",
        "ConsensusType",
    }
    assert set(orderer.policies) == {"Admins", "Readers", "Writers", "BlockValidation"}
    timeout = orderer_pb2.BatchTimeout.FromString(orderer.values["BatchTimeout"].value)
    assert timeout.timeout == "500ms"
    assert group.values["OrdererAddresses"].mod_policy == "/Channel/Orderer/Admins"
    consortiums = group.groups["Consortiums"]
    assert consortiums.mod_policy == "/Channel/Orderer/Admins"
    assert consortiums.groups["Pair"].values["ChannelCreationPolicy"].mod_policy == "/Channel/Orderer/Admins"


def test_a_creation_names_consortium_members_and_anchor_peers(network: Network) -> None:
    change = genesis.creation_update(network.profile("Both"), "new")
    assert change.channel_id == "new"
    written = change.write_set.groups["Application"]
    assert written.version == 1 and set(written.groups) == {"Org1", "Org2"}
    assert change.read_set.groups["Application"].version == 0
    consortium = common_pb2.Consortium.FromString(change.write_set.values["Consortium"].value)
    assert consortium.name == "Pair"
    group = genesis.channel_group(network.profile("Both"))
    anchors = group.groups["Application"].groups["Org2"].values["AnchorPeers"].value
    assert peer_pb2.AnchorPeers.FromString(anchors).anchor_peers[0].port == 7051


@pytest.mark.parametrize(
    ("profile", "why"), [("System", "cannot create a channel"), ("Insecure", "cannot create a channel")]
)
def test_a_profile_that_creates_no_channel_is_refused(network: Network, profile: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        genesis.creation_update(network.profile(profile), "new")


def test_a_profile_of_another_way_to_agree_is_refused() -> None:
    with pytest.raises(UsageError, match="OrdererType is solo"):
        genesis.channel_group(little(LITTLE.replace("kafka", "solo")))


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("{Type: Magic, Rule: ANY Readers}", "has the type 'Magic'"),
        ("{Type: ImplicitMeta, Rule: SOME Readers}", "not written as in"),
        ("{Type: Signature, Rule: MAYBE}", "where a rule"),
    ],
)
def test_a_policy_that_cannot_be_read_is_named(policy: str, why: str) -> None:
    text = LITTLE.replace("kafka}", f"kafka, Policies: {{Admins: {policy}}}}}")
    with pytest.raises(UsageError, match=f"Admins.*{why}"):
        genesis.channel_group(little(text))


@pytest.mark.parametrize("content", [b"", b"\xff\xff", b"no block"])
def test_a_file_that_is_no_genesis_block_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "block"
    file.write_bytes(content)
    with pytest.raises(UsageError):
        genesis.read_block(file)
    with pytest.raises(UsageError, match="cannot read"):
        genesis.read_block(tmp_path / "absent")


def test_a_damaged_genesis_block_is_refused(network: Network, tmp_path: Path) -> None:
    block = common_pb2.Block()
    block.CopyFrom(network.genesis)
    block.header.data_hash = bytes(32)
    file = tmp_path / "block"
    file.write_bytes(block.SerializeToString())
    with pytest.raises(UsageError, match="damaged"):
        genesis.read_block(file)


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [(1, "1ns"), (1_500, "1.5µs"), (250_000_000, "250ms"), (2 * 10**9, "2s"), (90 * 10**9, "1m30s")],
)
def test_durations_are_written_as_go_writes_them(duration_ns: int, text: str) -> None:
    assert genesis.go_duration(duration_ns) == text
    assert genesis.go_duration(3600 * 10**9) == "1h0m0s"


def test_a_directory_gives_its_owner_and_only_with_the_key(network: Network, tmp_path: Path) -> None:
    signer = network.signer("Org1", "client")
    identity = network.system.members.identity(signer.creator)
    assert identity is not None and identity.units == {"client"}
    assert "PRIVATE" not in repr(signer)
    with pytest.raises(UsageError, match="no certificate to sign with"):
        mspdir.read_signer(network.directory / "Org1/msp", "Org1")
    with pytest.raises(UsageError, match="no authority's certificate"):
        mspdir.read_msp(tmp_path, "Org1")
    (tmp_path / "signcerts").mkdir()
    (tmp_path / "signcerts/cert.pem").write_bytes(signer.certificate_pem)
    (tmp_path / "keystore").mkdir()
    other = network.directory / "Org2/client/msp/keystore/key.pem"
    (tmp_path / "keystore/other.pem").write_bytes(other.read_bytes())
    (tmp_path / "keystore/readme").write_text("no key")
    with pytest.raises(UsageError, match="no key of the directory fits"):
        mspdir.read_signer(tmp_path, "Org1")


def test_units_are_read_from_the_directorys_file(tmp_path: Path, network: Network) -> None:
    ca = (network.directory / "Org1/msp/cacerts/ca.pem").read_bytes()
    (tmp_path / "cacerts").mkdir()
    (tmp_path / "cacerts/ca.pem").write_bytes(ca)
    (tmp_path / "config.yaml").write_text(
        "OrganizationalUnitIdentifiers:\n"
        "  - {Certificate: cacerts/ca.pem, OrganizationalUnitIdentifier: sales}\n"
        "NodeOUs: {Enable: true, PeerOUIdentifier: {OrganizationalUnitIdentifier: peer}}\n"
    )
    config = msp_pb2.FabricMSPConfig.FromString(mspdir.read_msp(tmp_path, "Org1").config)
    unit = config.organizational_unit_identifiers[0]
    assert (unit.organizational_unit_identifier, unit.certificate) == ("sales", ca)
    assert config.fabric_node_ous.enable and not config.fabric_node_ous.HasField("client_ou_identifier")
    assert config.fabric_node_ous.peer_ou_identifier.organizational_unit_identifier == "peer"


def test_keys_are_readable_by_their_owner_only(network: Network) -> None:
    keys = [path for path in network.directory.rglob("*") if path.suffix == ".key" or path.name == "key.pem"]
    people = 3 + 2 + 2  # administrators, orderers, clients: each with a key to sign and one for TLS
    assert len(keys) == 3 * 2 + people * 2
    assert {path.stat().st_mode & 0o777 for path in keys} == {0o600}


def test_an_organisation_written_again_keeps_its_keys_and_gets_who_is_new(tmp_path: Path) -> None:
    crypto.write_organisation(tmp_path, "Org")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    crypto.write_organisation(tmp_path, "Org", peers=["peer"])
    assert before == {path: path.read_bytes() for path in before}
    assert mspdir.read_signer(tmp_path / "Org/peer/msp", "Org").mspid == "Org"
