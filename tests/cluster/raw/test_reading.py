"""What a mirror reads: fetch sessions, ends, transactions and offsets of groups, against a live site."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer

from tests.cluster.conftest import MakeBus, Site
from tests.cluster.raw.talk import WAIT_S, a_batch, append, fetch, soon, values_in
from twinlog.sites import processes
from twinlog.wire import codes, fetch_bytes, groups, offsets, producers, topics
from twinlog.wire.appending import LEADER_ONLY, Appender
from twinlog.wire.cluster import Cluster
from twinlog.wire.connection import Connection, RawRequest
from twinlog.wire.fetching import FetchLimits, FetchSession
from twinlog.wire.groups import Committed
from twinlog.wire.topic_keys import TopicKeys

pytestmark = pytest.mark.cluster

# A broker that is stopped for a moment must not be taken for dead: then the high watermark would go on.
FILE_OF_TWO = """\
bus: two
kafka: {broker.session.timeout.ms: 60000, replica.lag.time.max.ms: 60000}
sites:
  a: {brokers: 2, controllers: 1}
"""


def test_later_fetches_bring_only_what_changed(topic: str, leader: Connection) -> None:
    appender = Appender(leader)
    session = FetchSession(leader, FetchLimits(max_wait_ms=100))
    for index in range(3):
        session.want((topic, index), 0)
    assert set(fetch(session)) == {0, 1, 2}
    assert fetch(session) == {}
    append(appender, topic, a_batch(0, b"value"), partition=1)
    found = fetch(session)
    assert {index: values_in(one.records) for index, one in found.items()} == {1: [(0, b"value")]}
    session.want((topic, 1), 1)
    assert fetch(session) == {}


def test_a_forgotten_partition_comes_no_more_until_it_is_wanted_again(topic: str, leader: Connection) -> None:
    appender = Appender(leader)
    session = FetchSession(leader, FetchLimits(max_wait_ms=100))
    for index in range(2):
        append(appender, topic, a_batch(0, b"value"), partition=index)
        session.want((topic, index), 0)
    assert set(fetch(session)) == {0, 1}
    session.forget((topic, 0))
    assert set(fetch(session)) == {1}
    session.want((topic, 0), 0)
    session.forget((topic, 1))
    assert set(fetch(session)) == {0}


def test_a_session_that_the_broker_has_forgotten_begins_anew(topic: str, leader: Connection) -> None:
    session = FetchSession(leader, FetchLimits(max_wait_ms=100))
    session.want((topic, 0), 0)
    session.want((topic, 1), 0)
    assert set(fetch(session)) == {0, 1}
    end_session_from_outside(leader, session)
    assert fetch(session) == {}
    assert set(fetch(session)) == {0, 1}
    session.end(soon())
    assert set(fetch(session)) == {0, 1}


def end_session_from_outside(leader: Connection, session: FetchSession) -> None:
    """What a broker does by itself when it has no room for more sessions."""
    keys = TopicKeys()
    last = (session._session_id, fetch_bytes.LAST_EPOCH)
    body = fetch_bytes.encode(12, keys, FetchLimits(), last, {})
    request = RawRequest(
        fetch_bytes.NAME, fetch_bytes.API_KEY, 12, [body], lambda frame: fetch_bytes.decode(frame, keys)
    )
    assert leader.receive(leader.send_raw(request, soon()), soon()).code == codes.NONE


def test_a_record_that_is_larger_than_all_limits_comes_through(topic: str, leader: Connection) -> None:
    appender = Appender(leader)
    large = bytes(range(256)) * 8192
    for index in range(2):
        assert append(appender, topic, a_batch(0, large), partition=index) == ("NONE", 0)
    session = FetchSession(leader, FetchLimits(max_bytes=1000, partition_max_bytes=1000))
    wanted = {0, 1}
    for index in wanted:
        session.want((topic, index), 0)
    deadline = soon()
    while wanted and not deadline.passed:
        for index, one in fetch(session).items():
            if one.records:
                assert values_in(one.records) == [(0, large)]
                session.want((topic, index), 1)
                wanted.discard(index)
    assert wanted == set()


def test_positions_outside_the_log_and_partitions_that_are_not_there_are_told_by_code(
    topic: str, leader: Connection
) -> None:
    session = FetchSession(leader)
    session.want((topic, 0), 100)
    session.want((topic, 9), 0)
    session.want((topic, 1), 0)
    told = {index: codes.name_of(one.code) for index, one in fetch(session).items()}
    assert told == {0: "OFFSET_OUT_OF_RANGE", 9: "UNKNOWN_TOPIC_OR_PARTITION", 1: "NONE"}


def transactional(raw_site: Site, name: str) -> Producer:
    producer = Producer({**raw_site.access().librdkafka(), "transactional.id": name})
    producer.init_transactions(WAIT_S)
    return producer


def test_an_open_transaction_holds_the_last_stable_offset_and_is_told_of_its_producer(
    raw_site: Site, cluster: Cluster, topic: str, leader: Connection
) -> None:
    place = (topic, 0)
    append(Appender(leader), topic, a_batch(0, b"before"))
    producer = transactional(raw_site, topic)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(WAIT_S) == 0
    try:
        assert offsets.log_ends(cluster, [place]) == offsets.end_offsets(cluster, [place]) == {place: 2}
        assert offsets.last_stable_offsets(cluster, [place]) == {place: 1}
        states = producers.describe(cluster, [place])[place]
        assert [state.current_txn_start_offset for state in states.values()].count(1) == 1
        committed, uncommitted = (
            FetchSession(leader, FetchLimits(read_committed=read_committed))
            for read_committed in (True, False)
        )
        for session, expected in ((committed, [b"before"]), (uncommitted, [b"before", b"open"])):
            session.want(place, 0)
            found = fetch(session)[0]
            assert [value for _, value in values_in(found.records)] == expected
            assert (found.high_watermark, found.last_stable_offset) == (2, 1)
    finally:
        producer.abort_transaction(WAIT_S)


def test_aborted_transactions_are_listed_with_their_first_offset_and_producer(
    raw_site: Site, cluster: Cluster, topic: str, leader: Connection
) -> None:
    producer = transactional(raw_site, topic)
    for value, end in ((b"kept", producer.commit_transaction), (b"lost", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        assert producer.flush(WAIT_S) == 0
        end(WAIT_S)
    place = (topic, 0)
    all_ended = {place: 4}  # two records and two markers
    cluster.wait_until(
        lambda: "" if offsets.last_stable_offsets(cluster, [place]) == all_ended else "a marker",
        "waiting for the end of transactions",
    )
    session = FetchSession(leader)
    session.want(place, 0)
    found = fetch(session)[0]
    (producer_id,) = producers.describe(cluster, [place])[place]
    assert found.aborted == ((2, producer_id),)
    assert values_in(found.records) == [(0, b"kept"), (2, b"lost")]


def test_the_log_end_runs_ahead_of_the_high_watermark_while_a_follower_is_silent(make_bus: MakeBus) -> None:
    site = Site(make_bus(FILE_OF_TWO), "a")
    first, second = site.bus.home().layout("a").brokers
    follower = processes.find([second])[second.id]
    place = ("led-by-first", 0)
    with Cluster(site.access()) as cluster:
        topics.create(cluster, topics.NewTopic(place[0], assignment=((first.id, second.id),)))
        offsets.log_ends(cluster, [place])
        appender = Appender(cluster.broker(first.id), acks=LEADER_ONLY)
        follower.suspend()
        try:
            assert append(appender, place[0], a_batch(0, b"one", b"two")) == ("NONE", 0)
            assert offsets.log_ends(cluster, [place]) == {place: 2}
            assert offsets.end_offsets(cluster, [place]) == {place: 0}
        finally:
            follower.resume()
        everywhere = {place: 2}
        cluster.wait_until(
            lambda: "" if offsets.end_offsets(cluster, [place]) == everywhere else "a copy",
            "waiting for the follower",
        )
    site.bus.done("down")


def test_offsets_of_groups_are_copied_verbatim(cluster: Cluster, topic: str) -> None:
    first, second = f"{topic}-1", f"{topic}-2"
    wanted = {
        first: {(topic, 0): Committed(5, "some words"), (topic, 2): Committed(0)},
        second: {(topic, 1): Committed(2**40)},
    }
    told = groups.commit(cluster, wanted)
    assert told == {name: dict.fromkeys(places, codes.NONE) for name, places in wanted.items()}
    assert groups.committed(cluster, [first, second, "nobody"]) == {**wanted, "nobody": {}}
    listed = {group.name: group for group in groups.list_groups(cluster)}
    assert not listed[first].has_members
    assert (listed[first].state, listed[first].type) == (groups.EMPTY, "classic")
    assert "nobody" not in listed


def test_an_offset_for_a_topic_that_is_not_there_is_told_by_code(cluster: Cluster, topic: str) -> None:
    told = groups.commit(cluster, {topic: {(topic, 0): Committed(1), ("missing", 0): Committed(1)}})
    assert {codes.name_of(code) for code in told[topic].values()} == {"NONE", "UNKNOWN_TOPIC_OR_PARTITION"}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_names_them_and_takes_no_offsets_from_outside(
    raw_site: Site, cluster: Cluster, topic: str, protocol: str
) -> None:
    name = f"{topic}-{protocol}"
    settings = {"group.id": name, "client.id": "reader", "group.protocol": protocol}
    consumer = Consumer({**raw_site.access().librdkafka(), **settings})
    try:
        consumer.subscribe([topic])
        deadline = soon()
        while not consumer.assignment() and not deadline.passed:
            consumer.poll(0.1)
        (listed,) = [group for group in groups.list_groups(cluster) if group.name == name]
        assert listed.has_members
        assert listed.type == protocol
        membership = groups.describe(cluster, [listed.name, "nobody"])
        told = groups.commit(cluster, {name: {(topic, 0): Committed(1)}})
    finally:
        consumer.close()
    assert {codes.name_of(code) for code in told[name].values()} == {"UNKNOWN_MEMBER_ID"}
    assert set(membership) == {name}
    assert [member.client_id for member in membership[name].members] == ["reader"]
    topics.delete(cluster, topic)
