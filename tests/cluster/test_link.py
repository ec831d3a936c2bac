"""The link on real sites: every kind of topic, read at both sites by Kafka's own console consumer.

One bus of two small sites and one mirror serve all tests here; each test has topics of its own.
"""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.programs import Console, console, read_until
from twinlog.mirror import link, stretch
from twinlog.wire import offsets, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.topics import NewTopic

pytestmark = pytest.mark.cluster

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WAIT_S = 60.0
FIRST_MS = time.time_ns() // 1_000_000 - 3_600_000  # an hour ago: retention must not take them
FILE = """\
bus: twin
kafka:
  message.max.bytes: 15728640
  replica.fetch.max.bytes: 15728640
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 3
  log.cleaner.backoff.ms: 200
sites:
  a: {brokers: 1}
  b: {brokers: 1}
topics:
  plain: {partitions: 3}
  codecs: {partitions: 1}
  orders: {partitions: 1}
  transfers: {partitions: 1}
  hanging: {partitions: 1}
  stamped: {partitions: 1, config: {message.timestamp.type: LogAppendTime}}
  accounts: {partitions: 1, cleanup: compact, config: {segment.ms: 500, min.cleanable.dirty.ratio: 0.01}}
  large: {partitions: 1}
  paused: {partitions: 1}
  killed: {partitions: 2}
  second: {partitions: 1}
  scraped: {partitions: 1}
  rebuilt: {partitions: 1}
  unread: {partitions: 1}
users:
  app: {produce: ["*"], consume: ["*"], groups: ["*"], transactions: ["*"]}
link:
  include: [found-*]
  exclude: [found-not-*]
  metrics: 127.0.0.1:METRICS_PORT
"""


@pytest.fixture(scope="module")
def twin(make_bus: MakeBus) -> Iterator[Bus]:
    """A bus whose mirror runs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    bus = make_bus(FILE.replace("METRICS_PORT", str(port)))
    bus.done("link", "up")
    yield bus
    bus.done("link", "down")


@pytest.fixture(scope="module")
def tools() -> Console:
    return console()


def settings(bus: Bus, site: str, **more: Any) -> dict[str, Any]:
    return {**bus.home().user_access("app", site).librdkafka(), **more}


def write(
    bus: Bus, topic: str, count: int, more: Mapping[str, Any] | None = None, *, first_ms: int = FIRST_MS
) -> None:
    """So many records with keys, headers and times."""
    producer = Producer(settings(bus, "a", **(more or {})))
    for number in range(count):
        producer.produce(
            topic,
            key=f"key-{number % 7}",
            value=f"value-{number}" * 5,
            headers=[("number", str(number).encode()), ("none", None)],
            timestamp=first_ms + number,
        )
    assert producer.flush(WAIT_S) == 0


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {WAIT_S:g} s"
        pause.wait(0.1)


def partitions_of(bus: Bus, topic: str) -> list[tuple[str, int]]:
    with Cluster(bus.home().admin_access("a")) as active:
        (found,) = topics.describe(active, [topic])
    return [(topic, number) for number in range(len(found.partitions))]


def wait_for_twin(bus: Bus, topic: str) -> None:
    """Return when the standby's log ends where the active's does for readers."""
    keys = partitions_of(bus, topic)
    home = bus.home()
    with Cluster(home.admin_access("a")) as active, Cluster(home.admin_access("b")) as standby:
        wait_for(
            f"{topic} is copied",
            lambda: offsets.last_stable_offsets(active, keys) == offsets.log_ends(standby, keys),
        )


SHOW = [
    word
    for part in ("offset", "timestamp", "headers", "key")
    for word in ("--formatter-property", f"print.{part}=true")
]


def read_all(
    bus: Bus, tools: Console, site: str, topic: str, *, aborted: int | None = None
) -> dict[int, list[bytes]]:
    """Everything that the console consumer shows of each partition, with offsets, times and headers.

    Readers of committed records, unless it is said how many aborted ones of each partition are shown too.
    """
    isolation = "read_committed" if aborted is None else "read_uncommitted"
    file = bus.directory / f"reader-{site}.properties"
    file.write_text(bus.done("client", "app", "--site", site, "--format", "java"))
    shown: dict[int, list[bytes]] = {}
    for _, number in partitions_of(bus, topic):
        with Cluster(bus.home().admin_access(site)) as cluster:
            enough = partial(_has, _visible(bus, cluster, topic, number) + (aborted or 0))
        place = ["--partition", str(number), "--offset", "earliest", "--isolation-level", isolation]
        lines = [] if enough([]) else read_until([*tools._consumer(file, topic), *place, *SHOW], enough)
        # A twin keeps the times of a log that stamps records itself, and says that they were given to it.
        shown[number] = [line.replace(b"LogAppendTime:", b"CreateTime:", 1) for line in lines]
    return shown


def _has(count: int, lines: Sequence[bytes]) -> bool:
    return len(lines) >= count


def _visible(bus: Bus, cluster: Cluster, topic: str, number: int) -> int:
    ids = {topic: topics.describe(cluster, [topic])[0].id}
    first = offsets.start_offsets(cluster, [(topic, number)])[(topic, number)]
    end = offsets.last_stable_offsets(cluster, [(topic, number)])[(topic, number)]
    return len(stretch.records(cluster, ids, topic, number, first, end))


def assert_twins(bus: Bus, tools: Console, topic: str) -> list[bytes]:
    """Both sites show the same; gives the lines of all partitions."""
    wait_for_twin(bus, topic)
    here = read_all(bus, tools, "a", topic)
    there = read_all(bus, tools, "b", topic)
    assert here == there
    return [line for lines in here.values() for line in lines]


def test_plain_and_keyed_records_stand_at_the_same_offsets(twin: Bus, tools: Console) -> None:
    write(twin, "plain", 5000, {"enable.idempotence": True})
    write(twin, "plain", 1000)
    assert len(assert_twins(twin, tools, "plain")) == 6000


def test_every_codec_passes_untouched(twin: Bus, tools: Console) -> None:
    for codec in CODECS:
        write(twin, "codecs", 500, {"compression.type": codec, "linger.ms": 20})
    assert len(assert_twins(twin, tools, "codecs")) == 500 * len(CODECS)


def test_interleaved_transactions_committed_and_aborted_leave_the_same_log(twin: Bus, tools: Console) -> None:
    writers = [Producer(settings(twin, "a", **{"transactional.id": f"t-{number}"})) for number in range(3)]
    for writer in writers:
        writer.init_transactions(WAIT_S)
    kept = left_out = 0
    for turn in range(12):
        for writer in writers:
            writer.begin_transaction()
        for number in range(30):
            for name, writer in enumerate(writers):
                writer.produce("transfers", key=str(name), value=f"{turn}-{name}-{number}")
        for name, writer in enumerate(writers):
            writer.flush(WAIT_S)
            if (turn + name) % 3 == 0:
                writer.abort_transaction(WAIT_S)
                left_out += 30
            else:
                writer.commit_transaction(WAIT_S)
                kept += 30
    committed = assert_twins(twin, tools, "transfers")
    assert len(committed) == kept
    # A reader of uncommitted records sees aborted ones at the active only, and all others where they are.
    here, there = (
        read_all(twin, tools, site, "transfers", aborted=aborted)[0]
        for site, aborted in (("a", left_out), ("b", 0))
    )
    assert there == committed
    assert len(here) == kept + left_out
    seen_there = set(there)
    assert [line for line in here if line in seen_there] == there


def test_readers_of_uncommitted_records_see_the_same_where_nothing_was_aborted(
    twin: Bus, tools: Console
) -> None:
    write(twin, "unread", 300, {"enable.idempotence": True, "compression.type": "lz4"})
    wait_for_twin(twin, "unread")
    here, there = (read_all(twin, tools, site, "unread", aborted=0) for site in "ab")
    assert here == there
    assert sum(map(len, here.values())) == 300


def test_times_of_the_log_are_kept(twin: Bus, tools: Console) -> None:
    write(twin, "stamped", 300, {"compression.type": "zstd", "enable.idempotence": True})
    lines = assert_twins(twin, tools, "stamped")
    assert len(lines) == 300
    times = [int(line.split(b"\t")[0].removeprefix(b"CreateTime:")) for line in lines]
    assert min(times) > FIRST_MS + 3_600_000 - 1  # the log's, not the producer's of an hour before


def test_a_compacted_topic_has_its_gaps_where_the_active_has_them(twin: Bus, tools: Console) -> None:
    twin.done("link", "pause")
    wait_for("the link is paused", lambda: _state(twin) == "paused")
    for turn in range(4):  # segments are rolled by the time in the records, and the last is not cleaned
        write(twin, "accounts", 500, first_ms=FIRST_MS + turn * 60_000)
    with Cluster(twin.home().admin_access("a")) as active:
        wait_for("the cleaner has run", lambda: _visible(twin, active, "accounts", 0) < 1000)
    twin.done("link", "resume")
    wait_for_twin(twin, "accounts")
    here, there = (_by_offset(read_all(twin, tools, site, "accounts")) for site in "ab")
    # Both sites clean on their own: what both have is the same, and the newest of each key is at both.
    assert all(here[offset] == there[offset] for offset in here.keys() & there.keys())
    newest = {line.split(b"\t")[-2]: offset for offset, line in sorted(here.items())}
    assert set(newest.values()) <= here.keys() & there.keys()
    assert len(there) < 2000


def _by_offset(shown: dict[int, list[bytes]]) -> dict[int, bytes]:
    return {_offset(line): line for lines in shown.values() for line in lines}


def _offset(line: bytes) -> int:
    return next(int(part.split(b":")[1]) for part in line.split(b"\t") if part.startswith(b"Offset:"))


def test_messages_of_fifteen_megabytes_pass(twin: Bus) -> None:
    producer = Producer(settings(twin, "a", **{"message.max.bytes": 15_728_640}))
    for number in range(3):
        producer.produce("large", value=bytes([number]) * (15_728_640 - 200))
        producer.flush(WAIT_S)
    wait_for_twin(twin, "large")
    home = twin.home()
    with Cluster(home.admin_access("a")) as active, Cluster(home.admin_access("b")) as standby:
        ids = [{"large": topics.describe(cluster, ["large"])[0].id} for cluster in (active, standby)]
        here, there = (
            stretch.records(cluster, known, "large", 0, 0, 3)
            for cluster, known in zip((active, standby), ids, strict=True)
        )
    assert len(here) == 3
    assert here == there


def test_paused_link_copies_nothing_until_it_is_resumed(twin: Bus) -> None:
    twin.done("link", "pause")
    wait_for("the link is paused", lambda: _state(twin) == "paused")
    write(twin, "paused", 10)
    status = twin.json("link", "status")
    (paused,) = [topic for topic in status["topics"] if topic["topic"] == "paused"]
    assert paused["lag_records"] == 10
    twin.done("link", "resume")
    wait_for_twin(twin, "paused")


def _state(bus: Bus) -> str:
    ended = bus.run("link", "status", "-o", "json")
    return str(json.loads(ended.stdout)["link"]["state"])


def test_a_hanging_transaction_is_named_with_its_producer(twin: Bus) -> None:
    writer = Producer(settings(twin, "a", **{"transactional.id": "hangs", "transaction.timeout.ms": 60_000}))
    writer.init_transactions(WAIT_S)
    writer.begin_transaction()
    writer.produce("hanging", value="held")
    writer.flush(WAIT_S)
    wait_for(
        "the transaction is named",
        lambda: "a transaction of producer" in twin.run("link", "status").stdout,
    )
    writer.commit_transaction(WAIT_S)
    wait_for_twin(twin, "hanging")


def test_topics_that_patterns_mean_are_copied_and_excluded_ones_are_not(twin: Bus, tools: Console) -> None:
    home = twin.home()
    with Cluster(home.admin_access("a")) as active, Cluster(home.admin_access("b")) as standby:
        for name in ("found-one", "found-not-this", "lost"):
            topics.create(active, NewTopic(name, 2, 1))
            write(twin, name, 100)
        wait_for("the topic is there", lambda: len(topics.describe(standby, ["found-one"])) == 1)
        assert len(assert_twins(twin, tools, "found-one")) == 100
        topics.add_partitions(active, "found-one", 3)
        wait_for("it is as wide", lambda: len(topics.describe(standby, ["found-one"])[0].partitions) == 3)
        write(twin, "found-one", 100)
        assert len(assert_twins(twin, tools, "found-one")) == 200
        there = {topic.name for topic in topics.describe(standby)}
    assert not there & {"found-not-this", "lost"}
    looked_at = {topic["topic"]: topic["partitions"] for topic in twin.json("link", "status")["topics"]}
    assert looked_at["found-one"] == 3 and not looked_at.keys() & {"found-not-this", "lost"}


def is_served(bus: Bus) -> bool:
    """True when the page for Prometheus is there, a moment after the link."""
    try:
        return bool(scraped(bus))
    except urllib.error.URLError:
        return False


def scraped(bus: Bus) -> dict[tuple[str, str, str], float]:
    """What the page for Prometheus says, by name, topic and partition."""
    with urllib.request.urlopen(f"http://{bus.home().bus.link.metrics}/metrics", timeout=WAIT_S) as page:
        text = page.read().decode()
    return {
        (sample.name, sample.labels.get("topic", ""), sample.labels.get("partition", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels["bus"] == "twin"
    }


def test_page_for_prometheus_shows_counts_lag_and_age(twin: Bus) -> None:
    wait_for("the page is served", lambda: is_served(twin))
    before = scraped(twin)
    # Their times count up from here, a millisecond each: none may lie ahead of the clock.
    write(twin, "scraped", 250, first_ms=time.time_ns() // 1_000_000 - 250)
    wait_for_twin(twin, "scraped")
    total, place = ("twinlog_link_records_total", "", ""), ("scraped", "0")
    wait_for("the records are counted", lambda: scraped(twin)[total] >= before[total] + 250)
    wait_for("nothing is behind", lambda: scraped(twin)["twinlog_link_lag_records", *place] == 0)
    now = scraped(twin)
    assert now["twinlog_link_running", "", ""] == 1
    assert now["twinlog_link_lag_seconds", *place] == 0
    assert now["twinlog_link_stopped", *place] == 0
    assert 0 <= now["twinlog_link_record_age_seconds", *place] < WAIT_S
    twin.done("link", "pause")
    wait_for("the link is paused", lambda: _state(twin) == "paused")
    write(twin, "scraped", 10)
    wait_for("the lag is shown", lambda: scraped(twin)["twinlog_link_lag_records", *place] == 10)
    assert scraped(twin)["twinlog_link_running", "", ""] == 0
    twin.done("link", "resume")
    wait_for_twin(twin, "scraped")


def test_a_topic_that_differs_is_named_and_rebuilt(twin: Bus, tools: Console) -> None:
    write(twin, "rebuilt", 100)
    wait_for_twin(twin, "rebuilt")
    stranger = Producer(twin.home().admin_access("b").librdkafka())
    stranger.produce("rebuilt", b"nobody wrote this at the active")
    assert stranger.flush(WAIT_S) == 0
    write(twin, "rebuilt", 50)
    wait_for("it is said to differ", lambda: "rebuilt-0" in twin.run("link", "status").stderr)
    compared = twin.json("link", "verify", "rebuilt", "--again", exit_code=3)
    assert [one["equal"] for one in compared] == [False]
    twin.done("link", "rebuild", "rebuilt", exit_code=2)  # not without being asked twice
    twin.done("link", "rebuild", "rebuilt", "--yes")
    assert len(assert_twins(twin, tools, "rebuilt")) == 150
    twin.done("link", "verify", "rebuilt")
    wait_for("nothing is wrong any more", lambda: "rebuilt-0" not in twin.run("link", "status").stderr)


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "pyspark.daemon" in " ".join(process.cmdline()) and not process.children()
    except psutil.Error:  # it ended meanwhile
        return False


def test_a_killed_worker_loses_and_repeats_nothing(twin: Bus, tools: Console) -> None:
    written = threading.Thread(target=write, args=(twin, "killed", 20_000))
    written.start()
    driver = link.background(twin.home()).find()
    assert driver is not None
    workers = [child for child in driver.children(recursive=True) if _is_worker(child)]
    assert workers
    for worker in workers:
        worker.send_signal(signal.SIGKILL)
    written.join()
    assert len(assert_twins(twin, tools, "killed")) == 20_000
    assert twin.json("link", "status")["link"]["tasks_lost"] > 0


def test_a_second_mirror_does_no_harm_and_a_killed_one_is_replaced(twin: Bus, tools: Console) -> None:
    refused = twin.run("link", "up", "--foreground")
    assert refused.returncode == 2
    assert "runs already" in refused.stderr
    driver = link.background(twin.home()).find()
    assert driver is not None
    family = [driver, *driver.children(recursive=True)]
    driver.send_signal(signal.SIGKILL)
    psutil.wait_procs(family, WAIT_S)
    write(twin, "second", 1000)
    twin.done("link", "up")
    assert len(assert_twins(twin, tools, "second")) == 1000
