"""What goes along with mirrored records, and the proof that both logs are one, on two sites of one broker.

A holder of the link copies the file's mirrored topics for as long as the file's tests run; each test
uses topics and groups of its own. The last one takes the active site away.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.passage import Gate
from tests.cluster.programs import Printer, bootstrap, console
from twinlog.errors import KafkaError
from twinlog.mirror import rights
from twinlog.mirror.checkpoint import VerifyState
from twinlog.mirror.following import Case, Selection, Wanted, selection
from twinlog.mirror.groups import GroupCopier, publish_positions
from twinlog.mirror.holder import Holder, Terms
from twinlog.mirror.log_starts import follow_log_starts
from twinlog.mirror.memory import TopicMemory
from twinlog.mirror.permits import copy_quotas, copy_rules
from twinlog.mirror.topic_copies import create, follow_settings, widen
from twinlog.mirror.track import TopicPartition, Track
from twinlog.mirror.verify import verify
from twinlog.spec.roles import AT_STANDBY
from twinlog.wire import acls, configs, deletion, groups, offsets, quotas, share_offsets, topics
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.cluster import Cluster
from twinlog.wire.configs import Kind
from twinlog.wire.deadlines import Deadline
from twinlog.wire.groups import Committed
from twinlog.wire.quotas import Limit, Owner
from twinlog.wire.topics import NewTopic

pytestmark = pytest.mark.cluster

SOON_S = 60.0  # what takes a second or two; the rest is a busy machine
LINK_ID = 1 << 62
FILE = """\
bus: along
kafka:
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 2
  log.cleaner.backoff.ms: 200
sites:
  a: {brokers: 1}
  b: {brokers: 1}
topics:
  plain: {partitions: 2}
  more: {}
  bought: {}
  table:
    cleanup: compact
    config: {segment.ms: 500, min.cleanable.dirty.ratio: 0.01, max.compaction.lag.ms: 500}
  trimmed: {}
  moved: {}
  apart: {mirror: false}
users:
  app:
    produce: [plain, moved]
    consume: [plain, moved]
    groups: [app-*]
"""
MIRRORED = [
    ("plain", 0),
    ("plain", 1),
    ("more", 0),
    ("bought", 0),
    ("table", 0),
    ("trimmed", 0),
    ("moved", 0),
]


class Along:
    """Both sites, as their administrator reaches them."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        home = bus.home()
        self.active = Cluster(home.admin_access("a"))
        self.standby = Cluster(home.admin_access("b"))
        self.of_groups = self.standby  # until a generation has taken over
        self._holder: Holder | None = None
        self._thread: threading.Thread | None = None

    def begin_mirroring(self) -> None:
        """Copy the mirrored topics from now on."""
        generation = time.time_ns() // 1000
        claim = rights.Claim(generation, 1)
        rights.take_over(self.active, self.standby, generation)
        rights.grant(self.active, self.standby, claim, sorted({topic for topic, _ in MIRRORED}))
        home = self.bus.home()
        self.of_groups = Cluster(home.link_access(rights.Claim(generation).name, "b"))
        terms = Terms(home.link_access(claim.name, "a"), home.link_access(claim.name, "b"), LINK_ID)
        self._holder = Holder(terms, [Track(*place, compacted=place[0] == "table") for place in MIRRORED])
        self._thread = threading.Thread(target=self._holder.run, daemon=True)
        self._thread.start()

    def end_mirroring(self) -> None:
        """Copy no more; harmless if that has ended already."""
        if self._holder is not None and self._thread is not None:
            self._holder.end()
            self._thread.join(SOON_S)

    def producer(self, site: str = "a", settings: Mapping[str, Any] | None = None) -> Producer:
        """A producer with an administrator's rights."""
        return Producer({**self.bus.home().admin_access(site).librdkafka(), **(settings or {})})

    def copier(self) -> GroupCopier:
        """A copier that remembers nothing yet, with the rights that the mirror's has."""
        return GroupCopier(self.active, self.of_groups)

    def commit(
        self, group: str, offset: int, metadata: str = "", place: TopicPartition = ("plain", 0)
    ) -> None:
        """Let a group commit at the active."""
        told = groups.commit(self.active, {group: {place: Committed(offset, metadata)}})
        assert told == {group: {place: 0}}

    def committed(self, group: str) -> dict[TopicPartition, Committed]:
        """What a group has committed at the standby."""
        return groups.committed(self.standby, [group])[group]

    def types(self, cluster: Cluster) -> dict[str, tuple[str, str]]:
        """The type and state of every group."""
        return {one.name: (one.type, one.state) for one in groups.list_groups(cluster)}

    def catch_up(self, *places: TopicPartition) -> None:
        """Wait until the standby's logs end where the active's readers are."""
        until(
            lambda: (
                offsets.log_ends(self.standby, places) == offsets.last_stable_offsets(self.active, places)
            ),
            "the standby did not catch up",
        )


@pytest.fixture(scope="module")
def along(make_bus: MakeBus) -> Iterator[Along]:
    """A bus of two sites, with the link at work."""
    along = Along(make_bus(FILE))
    along.begin_mirroring()
    yield along
    along.end_mirroring()


def until(condition: Callable[[], bool], what: str, timeout_s: float = SOON_S) -> None:
    """Wait for a condition."""
    deadline, pause = Deadline(timeout_s), threading.Event()
    while not condition():
        assert not deadline.passed, what
        pause.wait(0.1)


def send(producer: Producer, topic: str, values: Sequence[bytes | None], **more: Any) -> None:
    """Send records and wait until all were taken."""
    refused: list[str] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            refused.append(str(error))

    for number, value in enumerate(values):
        settings = {"key": str(number % 7), "headers": [("n", str(number).encode())], **more}
        producer.produce(topic, value, on_delivery=delivered, **settings)
        producer.poll(0)
    assert producer.flush(SOON_S) == 0
    assert refused == []


@pytest.fixture(scope="module")
def printer(along: Along, tmp_path_factory: pytest.TempPathFactory) -> Printer:
    """Prints client files."""
    return Printer(along.bus, tmp_path_factory.mktemp("files"))


@contextmanager
def consumer(file: Path, topic: str, group: str, protocol: str, servers: str = "") -> Iterator[list[bytes]]:
    """Kafka's own console consumer at work; gives the lines that it has printed so far."""
    tool = console()
    command = [*tool.java, tool.names.consumer, "--bootstrap-server", servers or bootstrap(file)]
    command += ["--topic", topic, "--group", group, "--from-beginning", tool.names.consumer_file, str(file)]
    for setting in (f"group.protocol={protocol}", "auto.commit.interval.ms=200"):
        command += ["--command-property", setting]
    lines: list[bytes] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        reader = threading.Thread(
            target=lambda: lines.extend(line.strip() for line in program.stdout or ()), daemon=True
        )
        reader.start()
        try:
            yield lines
        finally:
            program.terminate()
            program.wait(SOON_S)
            reader.join(SOON_S)


def read(lines: Sequence[bytes]) -> list[bytes]:
    """The records among the lines of a consumer that also says what went wrong."""
    return [line for line in lines if line.startswith((b"first-", b"second-"))]


# The proof


def test_plain_records_of_every_codec_are_found_equal(along: Along) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = along.producer(settings={"compression.type": codec, "enable.idempotence": codec == "lz4"})
        send(producer, "plain", [b"%d" % number * 50 for number in range(300)])
    places = [("plain", 0), ("plain", 1)]
    along.catch_up(*places)
    report = verify(along.active, along.standby, places)
    assert report.is_equal
    assert sum(one.records for one in report.partitions) == 1500
    assert all(one.offsets == one.records == one.end for one in report.partitions)


def test_committed_and_aborted_transactions_are_found_equal(along: Along) -> None:
    producer = along.producer(settings={"transactional.id": "along"})
    producer.init_transactions(SOON_S)
    for number in range(9):
        producer.begin_transaction()
        for part in range(10):
            producer.produce("bought", b"%d-%d" % (number, part))
        producer.flush(SOON_S)
        end = producer.abort_transaction if number % 3 == 1 else producer.commit_transaction
        end(SOON_S)
    along.catch_up(("bought", 0))
    report = verify(along.active, along.standby, [("bought", 0)])
    assert report.is_equal
    (found,) = report.partitions
    assert (found.records, found.offsets) == (60, 99)


def test_comparison_goes_on_where_it_ended(along: Along, tmp_path: Path) -> None:
    path, place = tmp_path / "verify.json", ("more", 0)
    for count in (100, 30):
        send(along.producer(), "more", [b"value"] * count)
        along.catch_up(place)
        report = verify(along.active, along.standby, [place], state=VerifyState(path))
        assert report.is_equal
        assert report.partitions[0].offsets == count


def test_compacted_logs_are_found_equal_although_both_were_cleaned(along: Along) -> None:
    producer, place = along.producer(), ("table", 0)
    pause = threading.Event()

    def standby_was_cleaned() -> bool:
        send(producer, "table", [b"v"] * 20 + [None])
        along.catch_up(place)
        report = verify(along.active, along.standby, [place])
        assert report.is_equal, report
        (found,) = report.partitions
        pause.wait(0.5)  # so long a segment lasts
        return found.records < found.offsets

    until(standby_was_cleaned, "no record was ever cleaned")


def test_what_differs_is_found_with_its_offset(along: Along) -> None:
    same = {"partition": 0, "timestamp": time.time_ns() // 1_000_000}
    for site in ("a", "b"):
        producer = along.producer(site)
        send(producer, "apart", [b"one", b"two"], **same)
        send(producer, "apart", [b"three" if site == "a" else b"THREE"], **same)
        send(producer, "apart", [b"four"], **same)
    send(along.producer("b"), "apart", [b"only here"])
    report = verify(along.active, along.standby, [("apart", 0)])
    assert not report.is_equal
    ends, changed = report.partitions[0].differences
    assert (changed.offset, changed.what) == (2, "key, value or headers differ")
    assert changed.active != changed.standby
    assert (ends.offset, ends.what) == (4, "the standby goes on to offset 5, the active ends here")


def test_partition_that_one_site_lacks_is_not_called_equal(along: Along) -> None:
    report = verify(along.active, along.standby, [("plain", 7), ("nowhere", 0)])
    assert [one.skipped for one in report.partitions] == ["it does not exist at the active"] * 2
    assert not report.is_equal


# Groups


def test_offsets_are_copied_as_they_are_and_go_back_too(along: Along) -> None:
    copier = along.copier()
    send(along.producer(), "plain", [b"v"] * 20, partition=0)
    along.catch_up(("plain", 0))
    for offset, metadata in ((10, "ten"), (3, "back")):
        along.commit("follower", offset, metadata)
        assert copier.turn(MIRRORED).copied >= 1
        assert along.committed("follower") == {("plain", 0): Committed(offset, metadata)}
    assert copier.turn(MIRRORED).copied == 0


def test_offset_behind_the_standbys_log_waits_at_its_end(along: Along) -> None:
    copier, place = along.copier(), ("plain", 1)
    (end,) = offsets.log_ends(along.standby, [place]).values()
    along.commit("ahead", end + 5, place=place)
    assert copier.turn(MIRRORED).waiting == 1
    assert along.committed("ahead") == {place: Committed(end)}
    send(along.producer(), "plain", [b"v"] * 5, partition=1)
    along.catch_up(place)
    copier.turn(MIRRORED)
    assert along.committed("ahead") == {place: Committed(end + 5)}


def test_groups_of_the_standby_and_of_the_link_are_not_copied(along: Along) -> None:
    publish_positions(along.active, "along", {("plain", 0): 1})
    along.commit("standby.reader", 1)
    along.commit("wanted", 1)
    along.copier().turn(MIRRORED)
    there = along.types(along.standby)
    assert "wanted" in there
    assert not {"twinlog-link-along", "standby.reader"} & there.keys()
    assert groups.committed(along.active, ["twinlog-link-along"])["twinlog-link-along"] == {
        ("plain", 0): Committed(1)
    }


def test_group_that_is_gone_at_the_active_is_named_and_kept(along: Along) -> None:
    groups.commit(along.standby, {"left-behind": {("plain", 0): Committed(1)}})
    assert "left-behind" in along.copier().turn(MIRRORED).gone
    assert along.committed("left-behind") == {("plain", 0): Committed(1)}


def test_share_groups_begin_where_they_begin_at_the_active(along: Along) -> None:
    place = ("plain", 0)
    copier = along.copier()
    for offset in (4, 2):
        assert share_offsets.alter(along.active, {"shared": {place: offset}}) == {"shared": {place: 0}}
        copier.turn(MIRRORED)
        assert share_offsets.describe(along.standby, ["shared"]) == {"shared": {place: offset}}
    assert along.types(along.standby)["shared"] == ("share", "Empty")


def test_group_with_members_at_the_standby_is_left_alone(along: Along, printer: Printer) -> None:
    along.commit("app-busy", 1)
    along.copier().turn(MIRRORED)
    rule = Acl(Resource.GROUP, "app-busy", "User:app", Operation.READ)
    acls.add(along.standby, [rule])
    with consumer(printer("app", "b", "java"), "plain", "app-busy", "classic"):
        until(lambda: along.types(along.standby)["app-busy"][1] == "Stable", "nobody joined")
        along.commit("app-busy", 2)
        turn = along.copier().turn(MIRRORED)
    assert turn.occupied == ("app-busy",)
    acls.remove(along.standby, [rule])


# Topics


def test_topic_is_made_widened_and_set_as_at_the_active(along: Along, tmp_path: Path) -> None:
    memory = TopicMemory(tmp_path / "topics.json", along.active.cluster_id, along.standby.cluster_id)
    wanted = Wanted(include=("found-*",))

    def look() -> Selection:
        active, standby = (topics.describe(cluster) for cluster in (along.active, along.standby))
        found = selection(active, standby, wanted, memory.topics())
        memory.learn(found.twins)
        return found

    # A broker tells of a change when it has heard of it from its controller, a moment after it was taken.
    def seen(case: Case) -> None:
        until(lambda: look().names(case) == ("found-one",), f"it was never found {case}")

    configured = {"segment.bytes": "20000000", "retention.ms": "5000", "min.insync.replicas": "1"}
    topics.create(along.active, NewTopic("found-one", 2, 1, configs=configured))
    seen(Case.MISSING)
    create(along.active, along.standby, ["found-one"], len(along.standby.brokers()))
    until(lambda: look().partitions == (("found-one", 0), ("found-one", 1)), "it was never made")
    wanted_values = {"segment.bytes": "20000000", "min.insync.replicas": "1", **AT_STANDBY}
    made = partial(configs.describe, along.standby, Kind.TOPIC, "found-one")
    until(lambda: wanted_values.items() <= {k: v.value for k, v in made().items()}.items(), "it is otherwise")

    topics.add_partitions(along.active, "found-one", 3)
    seen(Case.NARROW)
    widen(along.active, along.standby, ["found-one"])
    until(lambda: len(look().partitions) == 3, "it was never widened")

    assert follow_settings(along.active, along.standby, ["found-one"]) == ()
    configs.alter(
        along.active, Kind.TOPIC, "found-one", values={"max.message.bytes": "70000"}, unset=["segment.bytes"]
    )
    pair = along.active, along.standby
    until(lambda: follow_settings(*pair, ["found-one"]) == ("found-one",), "the change was never seen")
    until(lambda: made()["max.message.bytes"].value == "70000", "the change was never made")
    assert made()["segment.bytes"].source is not configs.Source.TOPIC

    topics.delete(along.active, "found-one")
    seen(Case.DELETED)
    topics.create(along.active, NewTopic("found-one", 1, 1))
    seen(Case.REMADE)
    topics.delete(along.standby, "found-one")
    seen(Case.MISSING)


def test_log_starts_follow_the_active(along: Along) -> None:
    place = ("trimmed", 0)
    send(along.producer(), "trimmed", [b"v"] * 50)
    along.catch_up(place)
    deletion.delete_records(along.active, {place: 20})
    assert follow_log_starts(along.active, along.standby, [place, ("table", 0)]) == {place: 20}
    assert offsets.start_offsets(along.standby, [place]) == {place: 20}
    assert follow_log_starts(along.active, along.standby, [place]) == {}
    report = verify(along.active, along.standby, [place])
    assert report.is_equal
    assert report.partitions[0].first == 20


def test_rights_and_quotas_go_along_without_writing(along: Along) -> None:
    given = [
        Acl(Resource.TOPIC, "plain", "User:guest", operation)
        for operation in (Operation.READ, Operation.WRITE)
    ]
    guest, limit = Owner("guest"), {Limit.CONSUME: 1e6}
    acls.add(along.active, given)
    acls.wait_until_everywhere(along.active, present=given)
    quotas.alter(along.active, guest, values=limit)
    until(lambda: guest in quotas.describe(along.active), "the active forgot the quota")
    copy_rules(along.active, along.standby, ["plain"])
    assert guest in copy_quotas(along.active, along.standby)
    assert acls.describe(along.standby, principal="User:guest") == {given[0]}
    until(lambda: quotas.describe(along.standby).get(guest) == limit, "the standby forgot the quota")
    assert copy_quotas(along.active, along.standby) == ()


def test_generation_that_was_replaced_gets_no_rights_any_more(along: Along) -> None:
    replaced = rights.Claim(1, 1)  # of long ago: it was stopped, and goes on
    with pytest.raises(rights.Deposed, match="another mirror has claimed the link"):
        rights.grant(along.active, along.standby, replaced, ["plain"])
    assert acls.describe(along.standby, principal=replaced.principal) == frozenset()
    acls.wait_until_everywhere(along.active, absent=rights.at_active(replaced, ["plain"]))  # a moment later


def test_copier_of_a_link_that_was_claimed_sets_no_offsets_any_more(along: Along) -> None:
    """A move copies offsets itself when nobody else can: an older copy must not arrive behind its own."""
    place, copier = ("plain", 0), along.copier()
    along.commit("fenced", 1)
    copier.turn(MIRRORED)
    assert along.committed("fenced") == {place: Committed(1)}
    rights.claim(along.standby, time.time_ns() // 1000)
    along.commit("fenced", 0)
    with pytest.raises(KafkaError) as refusal:
        copier.turn(MIRRORED)
    assert "AUTHORIZATION_FAILED" in refusal.value.code
    assert along.committed("fenced") == {place: Committed(1)}
    along.end_mirroring()
    along.begin_mirroring()


# A consumer of the newer protocol moves; nothing can come after this


def test_consumer_of_the_newer_protocol_moves_to_the_standby_when_the_active_dies(
    along: Along, printer: Printer
) -> None:
    place, group, copier = ("moved", 0), "app-moving", along.copier()
    at_a, at_b = (printer("app", site, "java") for site in ("a", "b"))
    send(along.producer(), "moved", [b"first-%d" % number for number in range(10)])
    with (
        Gate(bootstrap(at_a)) as gate,
        consumer(at_a, "moved", group, "consumer", servers=gate.address) as lines,
    ):
        until(lambda: len(read(lines)) == 10, "the consumer did not read at the active")
        until(
            lambda: groups.committed(along.active, [group])[group].get(place) == Committed(10),
            "the consumer did not commit",
        )
        along.catch_up(place)
        assert copier.turn(MIRRORED).primed == (group,)
        assert along.types(along.standby)[group] == ("consumer", "Empty")
        assert along.committed(group) == {place: Committed(10)}
        # As at a promotion: the user's groups are let in.
        acls.add(along.standby, [Acl(Resource.GROUP, "app-", "User:app", Operation.READ, prefixed=True)])
        along.end_mirroring()
        along.bus.done("down", "--site", "a")
        gate.leads_to = bootstrap(at_b)
        new = [b"second-%d" % number for number in range(5)]
        send(along.producer("b"), "moved", new)
        until(lambda: along.committed(group) == {place: Committed(15)}, "the consumer did not move")
        # Before it has a group again it may read on without committing; then it begins at the copied offset.
        assert read(lines)[-5:] == new
        assert set(read(lines)[10:]) == set(new)
