"""The files that `twinlog order up` writes for its orderers, in Fabric's own formats. Pure.

`configtx.yaml` has a profile for the system channel and one for channels of clients; `orderer.yaml` is what
Fabric's orderer would be given, and the section Twinlog. Both may be taken as a beginning for one's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_CONFIGTX = """\
# Profiles of this bus's channels, as configtxgen and `twinlog order genesis` read them.
Organizations:
  - &Orderers
    Name: Orderers
    ID: OrdererMSP
    MSPDir: crypto/OrdererMSP/msp
    Policies:
      Readers: {{Type: Signature, Rule: "OR('OrdererMSP.member')"}}
      Writers: {{Type: Signature, Rule: "OR('OrdererMSP.member')"}}
      Admins: {{Type: Signature, Rule: "OR('OrdererMSP.admin')"}}
  - &Clients
    Name: Clients
    ID: ClientMSP
    MSPDir: crypto/ClientMSP/msp
    Policies:
      Readers: {{Type: Signature, Rule: "OR('ClientMSP.member')"}}
      Writers: {{Type: Signature, Rule: "OR('ClientMSP.member')"}}
      Admins: {{Type: Signature, Rule: "OR('ClientMSP.admin')"}}
Capabilities:
  Channel: &ChannelCapabilities {{V1_4_3: true}}
  Orderer: &OrdererCapabilities {{V1_4_2: true}}
  Application: &ApplicationCapabilities {{V1_4_2: true}}
Channel:
  Policies: &Policies
    Readers: {{Type: ImplicitMeta, Rule: ANY Readers}}
    Writers: {{Type: ImplicitMeta, Rule: ANY Writers}}
    Admins: {{Type: ImplicitMeta, Rule: MAJORITY Admins}}
Profiles:
  System:
    Policies: *Policies
    Capabilities: *ChannelCapabilities
    Orderer:
      OrdererType: kafka
      Addresses: [{addresses}]
      BatchTimeout: {batch_timeout}
      BatchSize:
        MaxMessageCount: {max_messages}
        AbsoluteMaxBytes: {absolute_max_bytes}
        PreferredMaxBytes: {preferred_max_bytes}
      Kafka:
        Brokers: [{brokers}]
      Organizations: [*Orderers]
      Capabilities: *OrdererCapabilities
      Policies:
        <<: *Policies
        BlockValidation: {{Type: ImplicitMeta, Rule: ANY Writers}}
    Consortiums:
      Clients:
        Organizations: [*Clients]
  Channel:
    Consortium: Clients
    Policies: *Policies
    Capabilities: *ChannelCapabilities
    Application:
      Organizations: [*Clients]
      Capabilities: *ApplicationCapabilities
      Policies: *Policies
"""

_ORDERER = """\
# Written by `twinlog order up`; changes are lost at the next one.
General:
  ListenAddress: 127.0.0.1
  ListenPort: {port}
  TLS:
    Enabled: {tls}
    PrivateKey: {own}/tls/server.key
    Certificate: {own}/tls/server.crt
    RootCAs: [{own}/tls/ca.crt]
    ClientAuthRequired: {mutual_tls}
    ClientRootCAs: [{clients}]
  GenesisMethod: file
  GenesisFile: {genesis}
  LocalMSPDir: {own}/msp
  LocalMSPID: {mspid}
FileLedger:
  Location: {ledger}
Kafka:
  Retry:
    ShortInterval: 1s
    ShortTotal: 10m
    LongInterval: 10s
    LongTotal: 12h
    NetworkTimeouts:
      DialTimeout: 10s
      ReadTimeout: 10s
      WriteTimeout: 10s
  Topic:
    ReplicationFactor: {replication}
  TLS:
    Enabled: true
    PrivateKey: {{File: key.pem}}
    Certificate: {{File: cert.pem}}
    RootCAs: {{File: ca.pem}}
Operations:
  ListenAddress: 127.0.0.1:{operations_port}
Metrics:
  Provider: prometheus
Twinlog:
  Read: {read}
  Brokers: [{brokers}]
  Standby: [{standby}]
  MinInsyncReplicas: {min_insync}
"""


def configtx_text(options: Mapping[str, Any], addresses: Sequence[str], brokers: Sequence[str]) -> str:
    """The profiles of a bus's channels."""
    return _CONFIGTX.format(**options, addresses=_listed(addresses), brokers=_listed(brokers))


def orderer_text(port: int, operations_port: int, values: Mapping[str, Any]) -> str:
    """One orderer's file."""
    shown = {
        name: _listed(value) if isinstance(value, list | tuple) else _plain(value)
        for name, value in values.items()
    }
    return _ORDERER.format(port=port, operations_port=operations_port, **shown)


def _listed(values: Sequence[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
