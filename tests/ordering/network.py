"""Three organisations with their certificates, and the channels that a configtx.yaml makes of them.

Written once per session (`network` in conftest): keys and directories take a moment, and nobody changes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from twinlog.ordering import configtx, crypto, genesis
from twinlog.ordering.bundle import Bundle
from twinlog.ordering.identity import Signer
from twinlog.ordering.mspdir import read_signer
from twinlog.ordering.policy import SignedData
from twinlog.ordering.proto import common_pb2

SYSTEM = "system"
PROFILES = """\
Organizations:
  - &OrdererOrg {Name: OrdererOrg, ID: OrdererOrg, MSPDir: OrdererOrg/msp}
  - &Org1 {Name: Org1, ID: Org1, MSPDir: Org1/msp}
  - &Org2
    Name: Org2
    ID: Org2
    MSPDir: Org2/msp
    AnchorPeers: [{Host: peer.org2, Port: 7051}]
Capabilities:
  Orderer: &Capabilities {V1_4_2: true, V1_1: false}
Orderer: &Orderer
  OrdererType: kafka
  Addresses: [localhost:7050]
  BatchTimeout: 500ms
  BatchSize: {MaxMessageCount: 10, AbsoluteMaxBytes: 1 MB, PreferredMaxBytes: 64 KB}
  MaxChannels: 3
  Kafka: {Brokers: [localhost:9092, localhost:9093]}
  Organizations: [*OrdererOrg]
  Capabilities: *Capabilities
Profiles:
  System:
    Capabilities: {V1_4_3: true}
    Orderer: *Orderer
    Consortiums:
      Pair: {Organizations: [*Org1, *Org2]}
      Open: {Organizations: }
  Insecure:
    Capabilities: {V1_4_3: true}
    Orderer: {<<: *Orderer, Organizations: }
    Consortiums:
      Open: {Organizations: }
  Both:
    Consortium: Pair
    Application: {Organizations: [*Org1, *Org2], Capabilities: *Capabilities}
  Alone:
    Consortium: Pair
    Application: {Organizations: [*Org1], Capabilities: *Capabilities}
"""


@dataclass(frozen=True)
class Network:
    """Where everything lies, and the system channel as it begins."""

    directory: Path
    file: Path
    genesis: common_pb2.Block
    system: Bundle

    def signer(self, mspid: str, name: str = crypto.ADMIN) -> Signer:
        """Somebody of an organisation: its `admin`, its `client`, or `orderer1`."""
        return read_signer(self.directory / mspid / name / "msp", mspid)

    def profile(self, name: str) -> configtx.Profile:
        """A profile of the file."""
        return configtx.load(self.file, name, {})

    def creation(self, channel_id: str, profile: str, signers: Sequence[Signer]) -> common_pb2.Envelope:
        """A signed update that creates a channel."""
        change = genesis.creation_update(self.profile(profile), channel_id)
        return common_pb2.Envelope.FromString(genesis.signed_update(change, signers))


def make_network(directory: Path) -> Network:
    """Write the organisations and the file, and make the system channel."""
    hosts = {"orderer1": ("localhost", "127.0.0.1"), "orderer2": ("localhost", "127.0.0.1")}
    crypto.write_organisation(directory, "OrdererOrg", orderers=hosts)
    for mspid in ("Org1", "Org2"):
        crypto.write_organisation(directory, mspid, clients=["client"])
    file = directory / "configtx.yaml"
    file.write_text(PROFILES)
    block = genesis.genesis_block(configtx.load(file, "System", {}), SYSTEM)
    return Network(directory, file, block, bundle_of(block))


def bundle_of(block: common_pb2.Block) -> Bundle:
    """The config in a config block."""
    return Bundle.from_envelope(common_pb2.Envelope.FromString(block.data.data[0]))


def signed(signer: Signer, data: bytes = b"data") -> SignedData:
    """A valid signature."""
    return SignedData(data, signer.creator, signer.sign(data))
