"""The client library on two small sites with a mirror that runs, pauses, and loses its standby.

One bus serves all tests; those that pause the link resume it, and the last one kills the standby's
broker and brings it back.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.cluster.conftest import Bus, MakeBus
from tests.conftest import REPOSITORY
from twinlog import (
    AsyncProducer,
    Consumer,
    Done,
    NotDone,
    Outcome,
    Producer,
    Received,
    RolesChanged,
    Sent,
    Unknown,
    UnknownAtTwin,
)
from twinlog.errors import UsageError
from twinlog.mirror.board import read_board
from twinlog.mirror.link import background
from twinlog.sites import processes
from twinlog.spec.model import Role
from twinlog.wire import offsets, roles
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

WAIT_S = 60.0
SHORT_S = 4.0  # the whole time of a write that is meant to run out of it
FILE = """\
bus: library
kafka:
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 3
sites:
  a: {brokers: 1}
  b: {brokers: 1}
topics:
  orders: {partitions: 3}
  held: {partitions: 1}
  kept: {partitions: 1}
  ahead: {partitions: 1}
  typed: {partitions: 1}
  local: {partitions: 1, mirror: false}
  invoices: {partitions: 1}
  parcels: {partitions: 1}
  parcels.retry: {partitions: 1}
  parcels.dead: {partitions: 1}
users:
  shop: {produce: [orders, held, kept, ahead, local, typed]}
  stock: {consume: [orders, held, kept, local], groups: [stock-*]}
  reader: {consume: [orders], produce: [local]}
  idle: {consume: [orders]}
  maker: {consume: [orders], produce: [invoices], groups: [maker-*], transactions: [maker-*]}
  packer:
    produce: [parcels, parcels.retry, parcels.dead]
    consume: [parcels, parcels.retry, parcels.dead]
    groups: [packer-*]
"""


@pytest.fixture(scope="module")
def twin(make_bus: MakeBus) -> Iterator[Bus]:
    """A bus whose mirror runs."""
    bus = make_bus(FILE)
    bus.done("link", "up")
    yield bus
    bus.done("link", "down")


@pytest.fixture
def producer(twin: Bus) -> Iterator[Producer]:
    """A producer that waits for the twin, for as long as a busy machine may take."""
    with Producer.of_bus(twin.file, "shop", acks="twin", timeout_s=WAIT_S) as made:
        yield made


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {WAIT_S:g} s"
        pause.wait(0.05)


@contextmanager
def paused(bus: Bus) -> Iterator[None]:
    """The link copies nothing."""
    report = background(bus.home()).report

    def is_quiet() -> bool:
        board = read_board(report)
        return board is not None and board.state == "paused"

    bus.done("link", "pause")
    try:
        wait_for("the link is paused", is_quiet)
        yield
    finally:
        bus.done("link", "resume")


def ended(future: Sent) -> Outcome:
    return future.result(timeout=2 * WAIT_S)


def test_a_twin_write_is_done_at_both_sites_and_says_where(twin: Bus, producer: Producer) -> None:
    sent = [producer.send("orders", b"%d" % number, key=b"%d" % number) for number in range(300)]
    outcomes = [ended(future) for future in sent]
    assert all(isinstance(outcome, Done) and outcome.twin for outcome in outcomes)
    places = {(one.partition, one.offset) for one in outcomes if isinstance(one, Done)}
    assert len(places) == 300
    with Consumer.of_bus(twin.file, "stock", "stock-all", ["orders"]) as consumer:
        read = take(consumer, 300)
    assert {(one.partition, one.offset) for one in read} == places


def test_lines_that_are_produced_with_acks_twin_are_at_the_standby_when_the_command_ends(
    twin: Bus, tmp_path: Path
) -> None:
    lines = tmp_path / "lines"
    lines.write_text("one\ntwo\nthree\n")
    told = twin.json("produce", "typed", "--user", "shop", "--acks", "twin", "--input", str(lines))
    with Cluster(twin.home().admin_access("b")) as standby:
        ends = offsets.end_offsets(standby, [("typed", 0)])
    assert (told["records"], told["refused"], told["unknown"]) == (3, 0, 0)
    assert ends == {("typed", 0): 3}
    copied = twin.done("consume", "typed", "--site", "b")
    assert copied.splitlines() == ["one", "two", "three"]


def test_headers_time_and_partition_are_those_that_were_given(twin: Bus, producer: Producer) -> None:
    headers = (("kind", b"late"), ("empty", None))
    outcome = ended(producer.send("kept", b"v", b"k", headers, partition=0, timestamp_ms=1_700_000_000_000))
    assert isinstance(outcome, Done)
    with Consumer.of_bus(twin.file, "stock", "stock-kept", ["kept"]) as consumer:
        (read,) = take(consumer, 1)
    assert read == Received("kept", 0, outcome.offset, b"k", b"v", headers, 1_700_000_000_000)


def test_a_paused_link_holds_twin_writes_back_and_no_others(twin: Bus, producer: Producer) -> None:
    with paused(twin), Producer.of_bus(twin.file, "shop", acks="twin", timeout_s=SHORT_S) as hasty:
        held, timed = producer.send("held", b"held"), hasty.send("held", b"timed")
        at_once = ended(producer.send("held", b"all", acks="all"))
        assert isinstance(at_once, Done) and not at_once.twin
        out_of_time = ended(timed)
        assert isinstance(out_of_time, UnknownAtTwin)
        assert "ended at offset" in out_of_time.reason
        assert not held.done()
    done = ended(held)
    assert isinstance(done, Done) and done.twin
    # The one that ran out of time was at the active all along, where it said.
    assert {done.offset, out_of_time.offset, at_once.offset} == {0, 1, 2}
    later = ended(producer.send("held", b"later"))
    assert isinstance(later, Done) and later.twin and later.offset == 3


def test_a_role_of_another_term_is_never_taken_for_the_twin(twin: Bus, producer: Producer) -> None:
    with Cluster(twin.home().admin_access("b")) as standby:
        before = roles.read(standby)
        assert before == roles.Standing("library", "b", Role.STANDBY, 1)
        with paused(twin):
            waiting = producer.send("orders", b"promoted meanwhile")
            assert isinstance(ended(producer.send("orders", b"x", acks="all")), Done)
            roles.write(standby, roles.Standing("library", "b", Role.STANDBY, 2))
        outcome = ended(waiting)
        assert isinstance(outcome, UnknownAtTwin) and "term 2" in outcome.reason
        # What is sent from now on belongs to the new term.
        assert isinstance(ended(producer.send("orders", b"of term 2")), Done)
        roles.write(standby, roles.Standing("library", "b", Role.ACTIVE, 3))
        assert isinstance(ended(producer.send("orders", b"promoted")), UnknownAtTwin | NotDone)
        refused = ended(producer.send("orders", b"promoted"))
        assert isinstance(refused, NotDone) and "not the standby" in refused.reason
        twin.done("apply")  # the bus's state knows better
        assert roles.read(standby) == before


def test_without_a_standby_a_twin_write_is_refused_unless_the_caller_lets_it_degrade(twin: Bus) -> None:
    access = twin.home().user_access("shop", "a")
    with Producer(access, acks="twin", timeout_s=WAIT_S) as strict:
        refused = ended(strict.send("orders", b"alone"))
        assert isinstance(refused, NotDone) and refused.hint
    with Producer(access, acks="twin", degrade=True, timeout_s=WAIT_S) as lax:
        outcome = ended(lax.send("orders", b"alone"))
        assert isinstance(outcome, Done) and not outcome.twin


@pytest.mark.parametrize(
    ("topic", "told"), [("local", "not mirrored"), ("nowhere", "not mirrored")], ids=["local", "unknown"]
)
def test_a_topic_without_a_twin_is_refused_for_twin_writes(producer: Producer, topic: str, told: str) -> None:
    outcome = ended(producer.send(topic, b"1"))
    assert isinstance(outcome, NotDone) and told in outcome.reason


def test_what_was_never_sent_is_not_done(twin: Bus, producer: Producer) -> None:
    unknown = ended(producer.send("nowhere", b"1", acks="all"))
    assert isinstance(unknown, NotDone) and unknown.hint
    large = ended(producer.send("orders", b"x" * 2_000_000, acks="all"))
    assert isinstance(large, NotDone)
    settings = {"message.max.bytes": 5_000_000}
    with Producer.of_bus(twin.file, "shop", timeout_s=WAIT_S, settings=settings) as generous:
        refused = ended(generous.send("orders", b"x" * 2_000_000))
    assert isinstance(refused, NotDone) and "MESSAGE_TOO_LARGE" in refused.reason


def test_a_refusal_that_may_have_come_after_an_append_is_unknown(twin: Bus) -> None:
    with Producer.of_bus(twin.file, "reader", timeout_s=WAIT_S) as producer:
        outcome = ended(producer.send("orders", b"1"))
    assert isinstance(outcome, Unknown) and "TOPIC_AUTHORIZATION_FAILED" in outcome.reason


def test_a_user_who_may_write_nowhere_has_sent_nothing_and_is_told_so(twin: Bus) -> None:
    with Producer.of_bus(twin.file, "idle", timeout_s=WAIT_S) as producer:
        for outcome in map(ended, [producer.send("orders", b"%d" % number) for number in range(3)]):
            assert isinstance(outcome, NotDone) and "CLUSTER_AUTHORIZATION_FAILED" in outcome.reason
            assert "twinlog user rights" in outcome.hint
        assert isinstance(ended(producer.send("orders", b"later")), NotDone)


def test_a_standby_that_is_ahead_of_the_active_is_no_twin(twin: Bus) -> None:
    access = twin.home().admin_access("b")
    with Producer(access, timeout_s=WAIT_S) as intruder:
        for future in [intruder.send("ahead", b"not mirrored") for _ in range(3)]:
            assert isinstance(ended(future), Done)
    with Producer.of_bus(twin.file, "shop", acks="twin", timeout_s=WAIT_S) as producer:
        outcome = ended(producer.send("ahead", b"1"))
    assert isinstance(outcome, UnknownAtTwin) and "no copy" in outcome.reason


def test_closing_leaves_no_thread_behind(twin: Bus) -> None:
    program = psutil.Process()
    threads, python_threads = program.num_threads(), threading.active_count()
    producer = Producer.of_bus(twin.file, "shop", acks="twin", timeout_s=WAIT_S)
    sent = [producer.send("orders", b"last words") for _ in range(50)]
    producer.close()
    assert all(isinstance(future.result(timeout=0), Done) for future in sent)
    with Consumer.of_bus(twin.file, "stock", "stock-closing", ["orders"], read="twin") as consumer:
        take(consumer, 1)
    assert threading.active_count() == python_threads
    wait_for("librdkafka's threads are gone", lambda: program.num_threads() <= threads)


def take(consumer: Consumer, count: int) -> list[Received]:
    """So many records, within the time of a busy machine."""
    end = time.monotonic() + WAIT_S
    got: list[Received] = []
    while len(got) < count:
        assert time.monotonic() < end, f"{len(got)} of {count} records"
        record = consumer.poll(1.0)
        if record is not None:
            got.append(record)
    return got


def test_a_twin_reader_gets_nothing_that_the_standby_lacks(twin: Bus, producer: Producer) -> None:
    before = ended(producer.send("held", b"before"))
    assert isinstance(before, Done)
    group = "stock-twin"
    with Consumer.of_bus(twin.file, "stock", group, ["held"], read="twin") as reader:
        assert take(reader, before.offset + 1)[-1].value == b"before"
        reader.commit()
        with paused(twin):
            for number in range(5):
                assert isinstance(ended(producer.send("held", b"%d" % number, acks="all")), Done)
            with Consumer.of_bus(twin.file, "stock", "stock-eager", ["held"]) as eager:
                assert take(eager, before.offset + 6)[-1].value == b"4"
            assert reader.poll(2.0) is None
        assert [record.value for record in take(reader, 5)] == [b"0", b"1", b"2", b"3", b"4"]
        # Not committed: the next member of the group gets these five again.
    with Consumer.of_bus(twin.file, "stock", group, ["held"], read="twin") as next_reader:
        assert [record.value for record in take(next_reader, 5)] == [b"0", b"1", b"2", b"3", b"4"]
        next_reader.commit()
        assert next_reader.poll(1.0) is None


def test_a_twin_reader_stops_when_the_sites_change_roles(twin: Bus, producer: Producer) -> None:
    with (
        Consumer.of_bus(twin.file, "stock", "stock-roles", ["held"], read="twin", start="latest") as reader,
        Cluster(twin.home().admin_access("b")) as standby,
    ):
        wait_for("it reads", lambda: _reads(reader, producer))
        roles.write(standby, roles.Standing("library", "b", Role.ACTIVE, 2))
        assert isinstance(ended(producer.send("held", b"1", acks="all")), Done)
        with pytest.raises(RolesChanged, match="term 2"):
            take(reader, 100)
        twin.done("apply")


def _reads(reader: Consumer, producer: Producer) -> bool:
    ended(producer.send("held", b"anything", acks="all"))
    return reader.poll(1.0) is not None


def test_a_twin_reader_of_a_topic_without_a_twin_is_refused(twin: Bus) -> None:
    with pytest.raises(UsageError, match="not mirrored"):
        Consumer.of_bus(twin.file, "stock", "stock-local", ["local"], read="twin")


def test_twin_writes_are_awaited_with_asyncio_like_others(twin: Bus) -> None:
    async def write() -> list[Outcome]:
        async with AsyncProducer(Producer.of_bus(twin.file, "shop", timeout_s=WAIT_S)) as producer:
            sends = (producer.send("orders", b"%d" % n, acks="twin" if n % 2 else None) for n in range(100))
            return await asyncio.gather(*sends)

    outcomes = asyncio.run(write())
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    assert [one.twin for one in outcomes if isinstance(one, Done)] == [False, True] * 50


def blocks() -> Iterator[tuple[str, str]]:
    """The programs in the pages about clients, each with its page."""
    for page in ("clients.md", "client-reference.md"):
        text = (REPOSITORY / "docs" / page).read_text()
        for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            yield page, block


def imported(text: str) -> str | None:
    """What a program takes from the library, which tells programs apart; nothing for a page's name."""
    found = re.search(r"^from twinlog import (.*)$", text, re.MULTILINE)
    return found and found[1]


@pytest.mark.parametrize(("page", "block"), list(blocks()), ids=imported)
def test_the_programs_of_the_pages_run_as_they_stand(
    page: str, block: str, twin: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(twin.directory)
    exec(compile(block, page, "exec"), {"__name__": "page"})


def test_the_example_runs_as_it_stands(twin: Bus) -> None:
    command = [
        sys.executable,
        str(REPOSITORY / "examples" / "twin_producer.py"),
        str(twin.file),
        "shop",
        "orders",
    ]
    done = subprocess.run(
        command, env=twin.environment(), capture_output=True, text=True, timeout=2 * WAIT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "both sites" in done.stdout


def test_a_lost_standby_makes_twin_writes_unknown_and_its_return_makes_them_done(twin: Bus) -> None:
    home = twin.home()
    patient = Producer.of_bus(twin.file, "shop", acks="twin", timeout_s=4 * WAIT_S)
    with patient, Producer.of_bus(twin.file, "shop", acks="twin", timeout_s=SHORT_S) as hasty:
        with paused(twin):
            survives, lost = patient.send("kept", b"survives"), hasty.send("kept", b"lost sight of")
            assert isinstance(ended(patient.send("kept", b"x", acks="all")), Done)
            for process in processes.find(home.layout("b").brokers).values():
                process.kill()
            outcome = ended(lost)
            assert isinstance(outcome, UnknownAtTwin) and "cannot be asked" in outcome.reason
            assert outcome.offset >= 0
            wait_for("the watch has noticed", lambda: isinstance(ended(hasty.send("kept", b"?")), NotDone))
            refused = ended(hasty.send("kept", b"refused"))
            assert isinstance(refused, NotDone) and refused.hint
            assert isinstance(ended(hasty.send("kept", b"all", acks="all")), Done)
            lax_options = {"acks": "twin", "degrade": True, "timeout_s": WAIT_S}
            with Producer.of_bus(twin.file, "shop", **lax_options) as lax:  # type: ignore[arg-type]
                degraded = ended(lax.send("kept", b"degraded"))
            assert isinstance(degraded, Done) and not degraded.twin
            twin.done("up")
        done = survives.result(timeout=4 * WAIT_S)
        assert isinstance(done, Done) and done.twin
        again = ended(patient.send("kept", b"again"))
        assert isinstance(again, Done) and again.twin
