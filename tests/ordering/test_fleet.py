"""What `order up` writes for its orderers, on a bus that has everything but running brokers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.program.prepared_bus import prepare
from twinlog.errors import FileProblems, UsageError
from twinlog.ordering import localfile, mspdir
from twinlog.ordering.fleet import CLIENT_MSP, ORDERER_MSP, Fleet, Options, creation
from twinlog.ordering.genesis import read_block
from twinlog.ordering.messages import read
from twinlog.sites.background import Background
from twinlog.sites.home import Home

FILE = """\
bus: orders
kafka: {message.max.bytes: 12MiB, replica.fetch.max.bytes: 12MiB}
sites:
  a: {brokers: 4}
  b: {brokers: 4}
users:
  orderer: {auth: mtls, produce: ["*"], consume: ["*"], create: ["*"]}
  shop: {produce: ["*"]}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return prepare(tmp_path_factory.mktemp("bus"), FILE)


@pytest.fixture(scope="module")
def fleet(home: Home) -> Fleet:
    return Fleet(home)


def test_files_tell_each_orderer_where_its_brokers_and_its_standby_are(fleet: Fleet, home: Home) -> None:
    assert fleet.check(Options()) == []
    recorded = fleet.prepare(Options())
    assert recorded == fleet.recorded()
    assert (recorded.site, recorded.read) == ("a", "twin")
    ports = set()
    for member in recorded.members:
        config = localfile.load(fleet.directory / member.name / "orderer.yaml", {})
        ports |= {config.general.listen_port, config.operations.listen_address}
        assert config.twinlog.brokers == home.user_access("orderer", "a").bootstrap
        assert config.twinlog.standby == home.user_access("orderer", "b").bootstrap
        assert config.kafka.access(config.twinlog.brokers) == home.user_access("orderer", "a")
        assert (config.general.tls.enabled, config.general.genesis_file) == (True, fleet.genesis)
        signer = mspdir.read_signer(config.general.local_msp_dir, config.general.local_mspid)
        assert signer.mspid == ORDERER_MSP
        assert (fleet.directory / member.name / "key.pem").stat().st_mode & 0o777 == 0o600
    assert len(ports) == 6


def test_genesis_and_ports_stay_when_it_is_started_again_elsewhere(fleet: Fleet, home: Home) -> None:
    before, block = fleet.prepare(Options()), fleet.genesis.read_bytes()
    after = fleet.prepare(Options(site="b", orderers=4, read="all", batch_timeout="9s"))
    assert after.members[:3] == before.members
    assert (len(after.members), after.site, after.read) == (4, "b", "all")
    assert fleet.genesis.read_bytes() == block
    config = localfile.load(fleet.directory / "orderer-0/orderer.yaml", {})
    assert config.twinlog.brokers == home.user_access("orderer", "b").bootstrap
    assert config.twinlog.standby == ()
    assert len(fleet.prepare(Options(orderers=2)).members) == 2


def test_genesis_block_holds_what_was_asked_for_and_lets_clients_create_channels(fleet: Fleet) -> None:
    fleet.prepare(Options())
    _, bundle = read_block(fleet.genesis)
    assert (bundle.channel_id, bundle.consensus_type, bundle.batch_timeout_s) == ("system", "kafka", 2.0)
    assert sorted(bundle.msps) == [CLIENT_MSP, ORDERER_MSP]
    assert read(creation(fleet, "trades")).channel_id == "trades"


def test_site_that_is_too_small_and_user_without_a_certificate_are_refused(fleet: Fleet) -> None:
    with pytest.raises(FileProblems):
        fleet.check(replace(Options(), replication=4))
    with pytest.raises(UsageError, match="no such user 'shop'"):
        fleet.prepare(Options(user="shop"))


def test_loss_of_the_other_site_leaves_nobody_to_wait_for(tmp_path: Path) -> None:
    home = prepare(tmp_path / "bus", FILE)
    state = home.state()
    state.lost.append("b")
    home.state_file.write(state)
    assert Fleet(home).prepare(Options(orderers=1)).read == "all"


def test_certificate_was_renewed_starts_the_orderer_anew(
    fleet: Fleet, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.prepare(Options(orderers=1))
    ended: list[str] = []
    monkeypatch.setattr(Background, "dismiss", lambda self: ended.append(self.name))
    fleet.prepare(Options(orderers=1))
    assert ended == []
    asked = home.user_access
    monkeypatch.setattr(home, "user_access", lambda *who: replace(asked(*who), cert_pem="renewed"))
    fleet.prepare(Options(orderers=1))
    assert ended == ["orderer-0"]
