"""Fabric's orderer.yaml: what is read, what the environment changes, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.errors import FileProblems
from twinlog.ordering.durations import parse_duration_ns, parse_duration_s
from twinlog.ordering.localconfig import LocalConfig
from twinlog.ordering.localfile import parse
from twinlog.wire.access import Protocol

FILE = Path("/etc/fabric/orderer.yaml")
SAMPLE = """\
General:
    LedgerType: file
    ListenAddress: 127.0.0.1
    ListenPort: 7050
    TLS:
        Enabled: false
        PrivateKey: tls/server.key
        Certificate: tls/server.crt
        RootCAs:
          - tls/ca.crt
        ClientAuthRequired: false
        ClientRootCAs:
    Keepalive:
        ServerMinInterval: 60s
        ServerInterval: 7200s
        ServerTimeout: 20s
    Cluster:
        SendBufferSize: 10
        ReplicationPullTimeout: 5s
    GenesisMethod: file
    GenesisFile: genesisblock
    LocalMSPDir: msp
    LocalMSPID: SampleOrg
    LogLevel: info
    Profile:
        Enabled: false
        Address: 0.0.0.0:6060
    BCCSP:
        Default: SW
        SW:
            Hash: SHA2
            Security: 256
            FileKeyStore:
                KeyStore:
    Authentication:
        TimeWindow: 15m
FileLedger:
    Location: /var/hyperledger/production/orderer
    Prefix: hyperledger-fabric-ordererledger
RAMLedger:
    HistorySize: 1000
Kafka:
    Retry:
        ShortInterval: 5s
        ShortTotal: 10m
        LongInterval: 5m
        LongTotal: 12h
        NetworkTimeouts:
            DialTimeout: 10s
            ReadTimeout: 10s
            WriteTimeout: 10s
        Metadata:
            RetryBackoff: 250ms
            RetryMax: 3
        Producer:
            RetryBackoff: 100ms
            RetryMax: 3
        Consumer:
            RetryBackoff: 2s
    Topic:
        ReplicationFactor: 3
    Verbose: false
    TLS:
      Enabled: false
      PrivateKey:
      Certificate:
      RootCAs:
    SASLPlain:
      Enabled: false
      User:
      Password:
    Version:
Debug:
    BroadcastTraceDir:
    DeliverTraceDir:
Operations:
    ListenAddress: 127.0.0.1:8443
    TLS:
        Enabled: false
        Certificate:
        PrivateKey:
        ClientAuthRequired: false
        ClientRootCAs: []
Metrics:
    Provider: disabled
    Statsd:
      Network: udp
      Address: 127.0.0.1:8125
      WriteInterval: 30s
      Prefix:
Consensus:
    WALDir: /var/hyperledger/production/orderer/etcdraft/wal
"""


def _parse(text: str, **env: str) -> LocalConfig:
    return parse(text, FILE, env)


def _problems(text: str, **env: str) -> list[str]:
    with pytest.raises(FileProblems) as caught:
        _parse(text, **env)
    return [problem.what for problem in caught.value.problems]


def test_sample_file_is_read_whole() -> None:
    config = _parse(SAMPLE)
    assert (config.general.listen_port, config.general.genesis_method) == (7050, "file")
    assert config.general.local_msp_dir == FILE.parent / "msp"
    assert config.general.tls.root_cas[0].path == FILE.parent / "tls/ca.crt"
    assert config.general.log_level == "info"
    retry = config.kafka.retry
    assert (retry.short_interval_s, retry.short_total_s, retry.long_interval_s) == (5.0, 600.0, 300.0)
    assert retry.network_timeouts.read_timeout_s == 10.0
    assert config.operations.listen_address == "127.0.0.1:8443"
    assert config.kafka.version == "0.10.2.0"


def test_empty_file_gives_the_built_in_values() -> None:
    config = _parse("General:\nFileLedger:\n")
    assert config.general.local_msp_dir == FILE.parent / "msp"
    assert config.kafka == LocalConfig().kafka
    assert config.kafka.retry.short_interval_s == 60.0
    assert config.kafka.retry.long_interval_s == 600.0


def test_zero_counts_as_absent() -> None:
    config = _parse("Kafka: {Retry: {ShortInterval: 0s, Producer: {RetryMax: 0}}}")
    assert config.kafka.retry.short_interval_s == 60.0
    assert config.kafka.retry.producer.retry_max == 3


def test_variable_stands_over_the_file() -> None:
    env = {"ORDERER_KAFKA_RETRY_SHORTINTERVAL": "1s", "ORDERER_GENERAL_TLS_ROOTCAS": "[a.pem, b.pem]"}
    config = _parse(SAMPLE, **env)
    assert config.kafka.retry.short_interval_s == 1.0
    assert [one.path for one in config.general.tls.root_cas] == [FILE.parent / "a.pem", FILE.parent / "b.pem"]


def test_variable_of_a_section_that_the_file_lacks_is_not_looked_for() -> None:
    config = _parse("General: {ListenPort: 1}", ORDERER_KAFKA_RETRY_SHORTINTERVAL="1s")
    assert config.kafka.retry.short_interval_s == 60.0


def test_variable_of_a_key_that_the_file_lacks_is_taken() -> None:
    assert _parse("General:\n", ORDERER_GENERAL_LISTENPORT="9000").general.listen_port == 9000


def test_keys_are_read_without_regard_to_capitals() -> None:
    assert _parse("general: {listenport: 7}").general.listen_port == 7


def test_file_of_a_key_for_kafka_can_come_from_the_environment() -> None:
    text = "Kafka: {TLS: {Enabled: true, Certificate: {File: c}, RootCAs: {File: r}}}"
    tls = _parse(text, ORDERER_KAFKA_TLS_PRIVATEKEY_FILE="/keys/k").kafka.tls
    assert tls.private_key.path == Path("/keys/k")
    assert tls.root_cas.path == FILE.parent / "r"


def test_kafka_with_keys_and_password_is_reached_over_sasl_and_tls(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("-----BEGIN X-----")
    text = f"""\
Kafka:
  TLS: {{Enabled: true, PrivateKey: {{File: {tmp_path}/p}}, Certificate: '-----BEGIN C-----',
         RootCAs: {{File: {tmp_path}/p}}}}
  SASLPlain: {{Enabled: true, User: u, Password: secret}}
"""
    config = _parse(text)
    access = config.kafka.access(("h:1",))
    assert access.protocol is Protocol.SASL_SSL
    assert (access.key_pem, access.cert_pem) == ("-----BEGIN X-----", "-----BEGIN C-----")
    assert (access.username, access.password) == ("u", "secret")
    assert "secret" not in repr(config)


def test_unknown_keys_and_bad_values_are_all_named_at_once() -> None:
    text = "General: {ListenPorts: 1, TLS: {Enabled: maybe}}\nKafka: {Retry: {ShortTotal: 5}}\nNew: {}\n"
    assert _problems(text) == [
        "General.ListenPorts: an orderer knows no key ListenPorts",
        "General.TLS.Enabled: maybe is neither true nor false",
        "Kafka.Retry.ShortTotal: '5' is no duration: write one as in 2s, 250ms or 1h30m",
        "New: an orderer knows no key New",
    ]


def test_half_given_security_is_refused() -> None:
    text = (
        "Kafka: {TLS: {Enabled: true}, SASLPlain: {Enabled: true, User: u}}\nGeneral: {TLS: {Enabled: true}}"
    )
    assert len(_problems(text)) == 5


def test_waiting_for_a_standby_needs_its_brokers() -> None:
    assert _problems("Twinlog: {Read: twin}") == [
        "Twinlog.Standby: Read: twin needs the brokers of the standby"
    ]


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("2s", 2_000_000_000),
        ("250ms", 250_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("-1.5s", -1_500_000_000),
        ("+1us", 1_000),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
        ("0", 0),
    ],
)
def test_go_duration_is_nanoseconds(text: str, nanoseconds: int) -> None:
    assert parse_duration_ns(text) == nanoseconds
    assert parse_duration_s(text) == nanoseconds / 1e9


@pytest.mark.parametrize("text", ["", "5", ".s", "s", "1d", "1 s", "1s ", "--1s", "1s2", "9999999h"])
def test_text_that_is_no_go_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration_ns(text)
