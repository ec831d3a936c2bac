"""Administration over the wire, against a live site, as its administrator.

Every test cleans up what it made under names of its own, so that tests can share a site.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import pytest

from twinlog.errors import KafkaError, TwinlogError
from twinlog.wire import acls, canary, configs, logdirs, offsets, quorum, quotas, topics, users
from twinlog.wire.access import Access, Mechanism
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.configs import EVERY_BROKER, Kind, Source
from twinlog.wire.failures import ConnectionFailed
from twinlog.wire.quotas import DEFAULT, Limit, Owner

pytestmark = pytest.mark.cluster

TOPIC = "wire-admin"
USER = "wire-admin-user"
RULES = (
    Acl(Resource.TOPIC, TOPIC, f"User:{USER}", Operation.WRITE),
    Acl(Resource.GROUP, "wire-admin-", f"User:{USER}", Operation.READ, prefixed=True),
    Acl(Resource.CLUSTER, acls.CLUSTER_NAME, f"User:{USER}", Operation.ALTER, allow=False, host="192.0.2.1"),
)


class Site(Protocol):
    """What these tests need of a site."""

    broker_count: int

    def access(self, user: str | None) -> Access:
        """The access of a user, or of the administrator."""


@pytest.fixture
def cluster(site: Site) -> Iterator[Cluster]:
    with Cluster(site.access(None)) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: Cluster, site: Site) -> Iterator[str]:
    """A topic of three partitions, copied as often as the site allows."""
    topics.delete(cluster, TOPIC)
    topics.create(cluster, topics.NewTopic(TOPIC, 3, min(3, site.broker_count)))
    offsets.end_offsets(cluster, [(TOPIC, partition) for partition in range(3)])  # its leaders know it
    yield TOPIC
    topics.delete(cluster, TOPIC)


def test_every_broker_of_the_site_is_listed_and_answers(cluster: Cluster, site: Site) -> None:
    brokers = cluster.brokers()
    assert len(brokers) == site.broker_count
    assert all(cluster.broker(broker.id).is_open for broker in brokers)
    assert cluster.cluster_id


def test_a_new_topic_has_the_partitions_and_copies_that_were_asked_for(
    cluster: Cluster, site: Site, topic: str
) -> None:
    (found,) = topics.describe(cluster, [topic])
    copies = min(3, site.broker_count)
    assert [partition.index for partition in found.partitions] == [0, 1, 2]
    assert all(len(partition.replicas) == copies and partition.has_leader for partition in found.partitions)
    assert found in topics.describe(cluster)


def test_a_topic_is_not_made_twice(cluster: Cluster, topic: str) -> None:
    with pytest.raises(KafkaError) as caught:
        topics.create(cluster, topics.NewTopic(topic, 1, 1))
    assert caught.value.code == "TOPIC_ALREADY_EXISTS"


def test_an_assignment_puts_copies_where_it_says(cluster: Cluster) -> None:
    ids = tuple(broker.id for broker in cluster.brokers())
    name = f"{TOPIC}-assigned"
    topics.create(cluster, topics.NewTopic(name, assignment=(ids, ids[::-1])))
    try:
        (found,) = topics.describe(cluster, [name])
        assert [partition.replicas for partition in found.partitions] == [ids, ids[::-1]]
    finally:
        topics.delete(cluster, name)


def test_a_topic_grows_and_does_not_shrink(cluster: Cluster, topic: str) -> None:
    topics.add_partitions(cluster, topic, 5)
    (found,) = topics.describe(cluster, [topic])
    assert len(found.partitions) == 5
    with pytest.raises(KafkaError) as caught:
        topics.add_partitions(cluster, topic, 2)
    assert caught.value.code == "INVALID_PARTITIONS"


def test_a_deleted_topic_is_gone_and_deleting_it_again_is_fine(cluster: Cluster, topic: str) -> None:
    topics.delete(cluster, topic)
    assert topics.describe(cluster, [topic]) == ()
    topics.delete(cluster, topic)


def test_a_topic_that_was_only_validated_is_not_made(cluster: Cluster) -> None:
    name = f"{TOPIC}-validated"
    topics.create(cluster, topics.NewTopic(name, 1, 1), validate_only=True)
    assert topics.describe(cluster, [name]) == ()


def test_settings_of_a_topic_are_set_unset_and_told_apart_from_defaults(cluster: Cluster, topic: str) -> None:
    def waits_for(is_own: bool) -> str:
        # The broker that is asked may hear of the change a moment later than the controller.
        entry = configs.describe(cluster, Kind.TOPIC, topic, ["retention.ms"])["retention.ms"]
        return "" if (entry.value == "123456" and entry.source is Source.TOPIC) == is_own else f"{entry}"

    configs.alter(cluster, Kind.TOPIC, topic, values={"retention.ms": "123456"})
    cluster.wait_until(lambda: waits_for(True), "setting retention.ms")
    configs.alter(cluster, Kind.TOPIC, topic, unset=["retention.ms"])
    cluster.wait_until(lambda: waits_for(False), "unsetting retention.ms")


def test_a_wrong_setting_is_refused_and_validating_changes_nothing(cluster: Cluster, topic: str) -> None:
    with pytest.raises(KafkaError) as caught:
        configs.alter(cluster, Kind.TOPIC, topic, values={"no.such.setting": "1"})
    assert caught.value.code == "INVALID_CONFIG"
    configs.alter(cluster, Kind.TOPIC, topic, values={"retention.ms": "9"}, validate_only=True)
    assert configs.describe(cluster, Kind.TOPIC, topic)["retention.ms"].value != "9"


def test_secrets_of_a_broker_are_not_told(cluster: Cluster) -> None:
    name = str(cluster.brokers()[0].id)
    entries = configs.describe(cluster, Kind.BROKER, name)
    assert entries["node.id"].value == name
    assert entries["node.id"].read_only
    assert all(entry.value is None for entry in entries.values() if entry.is_sensitive)


def test_a_setting_for_every_broker_reaches_each_of_them(cluster: Cluster) -> None:
    key = "background.threads"
    configs.alter(cluster, Kind.BROKER, EVERY_BROKER, values={key: "11"})

    def lacking() -> str:
        names = [str(broker.id) for broker in cluster.brokers()]
        found = configs.describe_many(cluster, Kind.BROKER, names, [key])
        return ", ".join(name for name in names if found[name][key].value != "11")

    try:
        cluster.wait_until(lacking, "waiting for a setting")
    finally:
        configs.alter(cluster, Kind.BROKER, EVERY_BROKER, unset=[key])


def test_loggers_of_a_broker_are_listed(cluster: Cluster) -> None:
    loggers = configs.describe(cluster, Kind.LOGGER, str(cluster.brokers()[0].id))
    assert loggers["root"].value


def test_rules_are_added_reach_every_broker_and_are_removed_exactly(cluster: Cluster) -> None:
    acls.add(cluster, RULES)
    acls.add(cluster, RULES)
    try:
        acls.wait_until_everywhere(cluster, present=RULES)
        assert acls.describe(cluster, principal=f"User:{USER}") == frozenset(RULES)
        acls.remove(cluster, RULES[:1])
        acls.wait_until_everywhere(cluster, present=RULES[1:], absent=RULES[:1])
    finally:
        acls.remove(cluster, RULES)
    acls.wait_until_everywhere(cluster, absent=RULES)


@pytest.mark.parametrize("mechanism", [Mechanism.SCRAM_SHA_512, Mechanism.SCRAM_SHA_256])
def test_a_user_is_made_listed_and_deleted(cluster: Cluster, mechanism: Mechanism) -> None:
    users.upsert(cluster, USER, "pässword,=", mechanism, iterations=4096)
    wanted = users.Credential(USER, mechanism, 4096)
    cluster.wait_until(lambda: "" if wanted in users.describe(cluster) else "the user", "waiting for a user")
    users.delete(cluster, USER, mechanism)
    users.delete(cluster, USER, mechanism)
    cluster.wait_until(lambda: "the user" if wanted in users.describe(cluster) else "", "waiting for a user")


def test_quotas_are_set_read_and_unset(cluster: Cluster) -> None:
    wanted = {
        Owner(user=USER): {Limit.PRODUCE: 5e6, Limit.CONSUME: 1e6},
        Owner(user=USER, client_id=DEFAULT): {Limit.REQUEST: 50.0},
        Owner(client_id="wire-admin"): {Limit.MUTATION: 5.0},
    }
    for owner, limits in wanted.items():
        quotas.alter(cluster, owner, values=limits)
    cluster.wait_until(lambda: _differing(cluster, wanted), "waiting for quotas")
    for owner in wanted:
        quotas.alter(cluster, owner, unset=list(Limit))
    cluster.wait_until(lambda: _differing(cluster, {owner: {} for owner in wanted}), "waiting for quotas")


def _differing(cluster: Cluster, wanted: dict[Owner, dict[Limit, float]]) -> str:
    found = quotas.describe(cluster)
    return ", ".join(str(owner) for owner, limits in wanted.items() if found.get(owner, {}) != limits)


def test_the_quorum_has_a_leader_among_its_voters_and_its_features_are_told(cluster: Cluster) -> None:
    state = quorum.describe(cluster)
    assert state.leader_id in {voter.id for voter in state.voters}
    assert state.high_watermark > 0
    assert all(replica.lag_records >= 0 for replica in state.voters + state.observers)
    levels = quorum.features(cluster).levels
    assert levels[quorum.METADATA_VERSION] > 0
    assert levels[quorum.KRAFT_VERSION] == 1  # a dynamic quorum


def test_a_canary_is_written_at_the_end_of_its_partition(cluster: Cluster, topic: str) -> None:
    place = (topic, 1)
    for offset in range(3):
        assert canary.write(cluster, topic, 1, b"canary") == canary.Done(1, offset)
    assert offsets.end_offsets(cluster, [place, (topic, 0)]) == {place: 3, (topic, 0): 0}
    assert offsets.start_offsets(cluster, [place]) == {place: 0}


def test_a_canary_that_is_too_large_is_certainly_not_written(cluster: Cluster, topic: str) -> None:
    configs.alter(cluster, Kind.TOPIC, topic, values={"max.message.bytes": "1000"})
    cluster.wait_until(lambda: _accepted(cluster, topic), "waiting for a smaller limit")
    assert isinstance(canary.write(cluster, topic, 0, bytes(2000)), canary.NotDone)


def _accepted(cluster: Cluster, topic: str) -> str:
    outcome = canary.write(cluster, topic, 1, bytes(2000))
    return "it was still accepted" if isinstance(outcome, canary.Done) else ""


def test_a_canary_for_a_topic_that_is_not_there_is_not_done(cluster: Cluster) -> None:
    assert isinstance(canary.write(cluster, f"{TOPIC}-missing", 0, b""), canary.NotDone)


def test_log_directories_hold_every_copy_of_a_topic(cluster: Cluster, site: Site, topic: str) -> None:
    assert isinstance(canary.write(cluster, topic, 0, bytes(100)), canary.Done)
    found = logdirs.describe(cluster)
    copies = [directory for directory in found if (topic, 0) in directory.size_bytes]
    assert len(copies) == min(3, site.broker_count)
    assert all(directory.size_bytes[(topic, 0)] > 100 and not directory.problem for directory in copies)
    assert all(directory.total_bytes and directory.usable_bytes for directory in found)


def test_an_access_without_our_ca_does_not_get_in(site: Site) -> None:
    access = replace(site.access(None), ca_pem="")
    with (
        Cluster(access, patience=Patience(total_s=5.0)) as stranger,
        pytest.raises(ConnectionFailed, match="is not trusted") as caught,
    ):
        stranger.brokers()
    assert not caught.value.retriable


def test_an_access_without_credentials_does_not_get_in(site: Site) -> None:
    access = replace(site.access(None), cert_pem="", key_pem="")
    with Cluster(access, patience=Patience(total_s=2.0)) as stranger, pytest.raises(TwinlogError) as caught:
        stranger.brokers()
    assert caught.value.hint
