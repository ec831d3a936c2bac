"""The bus of every scenario is a file that a person could have written, with disks apart where wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.drills import declaration, disks
from twinlog.drills.scenarios import SCENARIOS, Scenario
from twinlog.drills.upgrade import OLD
from twinlog.spec.model import KAFKA_VERSION, Promote


@pytest.mark.parametrize("one", SCENARIOS.values(), ids=lambda one: one.name)
def test_bus_of_a_scenario_is_as_large_and_as_old_as_it_says(tmp_path: Path, one: Scenario) -> None:
    bus = declaration.declare(tmp_path, one, Promote.ASK, None).bus
    sizes = [len(site.broker_specs) for site in bus.sites.values()]
    assert sizes == [one.size.brokers, one.size.standby_brokers]
    versions = {bus.kafka_version_of(site) for site in bus.sites}
    assert versions == {OLD if one.name == "rolling-upgrade" else KAFKA_VERSION}
    assert one.kafka.items() <= {name: str(value).lower() for name, value in bus.kafka.items()}.items()


def test_first_broker_of_each_site_has_a_disk_of_its_own_for_who_may_mount_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = SCENARIOS["disk-full"]
    monkeypatch.setattr(disks, "can_mount", lambda: True)
    sites = declaration.declare(tmp_path, scenario, Promote.ASK, None).bus.sites
    data = {name: [broker.data for broker in site.broker_specs] for name, site in sites.items()}
    assert data == {"a": [("disks/a",), None, None], "b": [("disks/b",), None, None]}
    monkeypatch.setattr(disks, "can_mount", lambda: False)
    assert declaration.own_disks(scenario) == ()
