"""Salvage without Kafka: what became of each batch of a tail, and how a record lies in salvage."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import KafkaError, UnknownOutcome
from twinlog.ops.plan import plan
from twinlog.ops.rights import EVERYBODY
from twinlog.ops.steps import Revoke
from twinlog.ops.world import World
from twinlog.spec.model import Bus, Role, Site
from twinlog.traffic.fates import Fate, Identity, Tail, Tally, identity_of
from twinlog.traffic.salvage import Collected
from twinlog.traffic.salvaged import Note, Salvaged, Word, decode, salvage_topic
from twinlog.traffic.shelf import SALVAGE_ID, Item, again_until_settled, make_batch
from twinlog.traffic.stock import Stock, applied_places
from twinlog.wire.access import Access, Protocol
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.batches import (
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
    Batch,
    ControlType,
    UnreadableBatch,
    checksum_is_right,
    read,
)
from twinlog.wire.cluster import Cluster
from twinlog.wire.recode import entries
from twinlog.wire.record_headers import headers, with_headers, without_headers
from twinlog.wire.records import Record, encode_batch

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=300)), max_size=4).map(tuple)
FIELDS = st.none() | st.binary(max_size=200)
COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT


def rest_of(record: Record) -> bytes:
    """Key, value and headers of a record as a batch holds them."""
    (entry,) = entries(read(memoryview(bytearray(encode_batch([record])))))
    return bytes(entry.rest)


def at(offset: int, made: bytes, bits: int = 0) -> Batch:
    """A batch as it lies in a log at an offset."""
    batch = bytearray(made)
    struct.pack_into(">q", batch, 0, offset)
    batch[22] |= bits
    return read(memoryview(batch))


def data(offset: int, count: int = 1, producer: int = -1, sequence: int = -1, *, bits: int = 0) -> Batch:
    records = [Record(f"{offset + n}".encode(), 1000) for n in range(count)]
    epoch = -1 if producer < 0 else 0
    made = encode_batch(records, producer_id=producer, producer_epoch=epoch, first_sequence=sequence)
    return at(offset, made, bits)


def transactional(offset: int, producer: int) -> Batch:
    return data(offset, 1, producer, 0, bits=TRANSACTIONAL_BIT)


def marker(offset: int, producer: int, kind: ControlType) -> Batch:
    record = Record(struct.pack(">hi", 0, 0), 1000, key=struct.pack(">hh", 0, kind))
    made = encode_batch([record], producer_id=producer, producer_epoch=0)
    return at(offset, made, TRANSACTIONAL_BIT | CONTROL_BIT)


def tail_of(*batches: Batch) -> Tail:
    tail = Tail()
    for batch in batches:
        tail.note(batch)
    return tail


@given(FIELDS, FIELDS, HEADERS, HEADERS)
def test_headers_that_are_put_on_and_taken_off_leave_the_record_as_it_was(
    key: bytes | None,
    value: bytes | None,
    own: tuple[tuple[str, bytes | None], ...],
    more: tuple[tuple[str, bytes | None], ...],
) -> None:
    rest = rest_of(Record(value, 0, key, own))
    assert headers(rest) == list(own)
    changed = with_headers(rest, more)
    assert changed == rest_of(Record(value, 0, key, (*more, *own)))
    assert without_headers(changed, len(more)) == rest


@given(st.binary(max_size=20))
def test_bytes_that_are_no_record_are_refused_or_read(rest: bytes) -> None:
    try:
        headers(rest)
        assert without_headers(with_headers(rest, [("name", b"x")]), 1)
    except UnreadableBatch as error:
        assert "are not key, value and headers" in str(error)


@given(FIELDS, FIELDS, HEADERS, st.sampled_from([Fate.PLAIN, Fate.OPEN, Fate.COMMITTED]))
def test_a_salvaged_record_comes_out_of_salvage_as_it_went_in(
    key: bytes | None, value: bytes | None, own: tuple[tuple[str, bytes | None], ...], fate: Fate
) -> None:
    rest = rest_of(Record(value, 0, key, own))
    record = Salvaged("orders", 3, 1234, -5, 7, rest, fate, (2**40, 1, 99), place=8)
    found = decode(record.encoded(), 8)
    assert found == record
    assert isinstance(found, Salvaged)
    assert (found.key, found.value, found.headers) == (key, value, list(own))
    assert found.is_open == (fate is Fate.OPEN)


def test_the_headers_of_a_salvaged_record_say_where_it_was() -> None:
    rest = rest_of(Record(b"value", 0, b"key", (("own", b"1"),)))
    record = Salvaged("orders", 3, 1234, 1700, 7, rest, Fate.COMMITTED, (2**40, 1, 99))
    assert headers(record.encoded()) == [
        ("twinlog.topic", b"orders"),
        ("twinlog.partition", b"3"),
        ("twinlog.offset", b"1234"),
        ("twinlog.timestamp", b"1700"),
        ("twinlog.term", b"7"),
        ("twinlog.producer", b"1099511627776/1/99"),
        ("twinlog.transaction", b"committed"),
        ("own", b"1"),
    ]
    assert headers(record.again()) == [("twinlog.salvaged", b"7/3/1234"), ("own", b"1")]


def test_a_note_comes_out_of_salvage_as_it_went_in() -> None:
    note = Note(Word.APPLYING, (3, 4, 9), 17, 2**31 - 1)
    assert decode(note.encoded(), 5) == note


def test_a_record_of_somebody_else_is_no_salvage() -> None:
    assert decode(rest_of(Record(b"value", 0)), 0) is None
    assert decode(rest_of(Record(b"value", 0, None, (("twinlog.topic", b"orders"),))), 0) is None


def test_a_record_with_our_headers_and_other_values_is_refused() -> None:
    right = Salvaged("orders", 3, 1234, 1700, 7, rest_of(Record(b"v", 0)))
    wrong = [(name, b"x") for name, _ in headers(right.encoded())]
    with pytest.raises(UnreadableBatch, match="offset 12"):
        decode(with_headers(right.rest, wrong), 12)


def test_a_transaction_ends_with_the_first_marker_of_its_producer_behind_it() -> None:
    first, second, third = transactional(10, 1), transactional(13, 1), transactional(20, 1)
    other = transactional(11, 2)
    tail = tail_of(
        first, other, marker(12, 1, ABORT), second, marker(14, 2, COMMIT), marker(15, 1, COMMIT), third
    )
    assert tail.fate(first.header) is Fate.ABORTED
    assert tail.fate(other.header) is Fate.COMMITTED
    assert tail.fate(second.header) is Fate.COMMITTED
    assert tail.fate(third.header) is Fate.OPEN


def test_plain_batches_and_markers_have_fates_of_their_own() -> None:
    tail = tail_of()
    assert tail.fate(data(5, 2).header) is Fate.PLAIN
    assert tail.fate(data(5, 2, 1, 0).header) is Fate.PLAIN
    assert tail.fate(marker(7, 1, COMMIT).header) is Fate.CONTROL


def test_only_idempotent_batches_outside_transactions_can_be_recognised() -> None:
    assert identity_of(data(5, 3, 9, 40).header) == Identity(9, 0, 40, 2)
    assert identity_of(data(5, 3).header) is None
    assert identity_of(transactional(5, 9).header) is None
    assert identity_of(marker(5, 9, COMMIT).header) is None


@given(st.lists(st.tuples(st.sampled_from(Fate), st.booleans(), st.integers(0, 5), st.integers(0, 5))))
def test_a_tally_adds_up_whatever_is_counted(batches: list[tuple[Fate, bool, int, int]]) -> None:
    tally = Tally("orders", 0, 100, 100 + sum(taken + left for _, _, taken, left in batches))
    for fate, is_present, taken, left in batches:
        tally.count(fate, is_present, taken, taken + left)
    assert tally.adds_up
    tally.end += 1
    assert not tally.adds_up


def test_a_report_lists_partitions_that_had_a_tail_and_no_contents() -> None:
    rest = rest_of(Record(b"secret", 0))
    record = Salvaged("orders", 1, 7, 1700, 2, rest, Fate.OPEN)
    tallies = (Tally("orders", 0, 5, 5), Tally("orders", 1, 7, 9, salvaged=1, control=1, open=1, new=1))
    told = Collected(tallies, (record,)).as_json()
    assert told["records"] == 1
    assert [one["partition"] for one in told["partitions"]] == [1]
    assert told["partitions"][0]["adds_up"]
    assert told["first"] == [
        {"topic": "orders", "partition": 1, "offset": 7, "timestamp_ms": 1700, "transaction": "open"}
    ]
    assert "secret" not in str(told)


def test_a_batch_for_salvage_is_one_that_a_broker_takes() -> None:
    contents = [rest_of(Record(b"x" * 100, 0, b"key")), rest_of(Record(None, 0))]
    made = read(memoryview(make_batch([Item(50, contents[0]), Item(40, contents[1])], SALVAGE_ID, 9)))
    header = made.header
    assert checksum_is_right(made)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (SALVAGE_ID, 0, 9)
    assert (header.record_count, header.last_offset_delta, header.max_timestamp_ms) == (2, 1, 50)
    assert [(entry.offset, entry.timestamp_ms, bytes(entry.rest)) for entry in entries(made)] == [
        (0, 50, contents[0]),
        (1, 40, contents[1]),
    ]


def test_applied_are_the_records_that_a_note_says_so_of() -> None:
    notes = [
        Note(Word.APPLYING, (1, 2), 0, 0),
        Note(Word.APPLIED, (1, 2), 0, 0),
        Note(Word.APPLYING, (3,), 0, 2),
    ]
    assert applied_places(iter(notes)) == {1, 2}


def test_a_stock_counts_records_and_their_times() -> None:
    stock = Stock("orders", 3)
    rest = rest_of(Record(b"v", 0))
    for time, fate in ((30, Fate.PLAIN), (10, Fate.OPEN), (20, Fate.PLAIN)):
        stock.count(Salvaged("orders", 0, time, time, 3, rest, fate), is_applied=time == 20)
    assert (stock.records, stock.open, stock.applied) == (3, 1, 1)
    assert (stock.oldest_ms, stock.newest_ms) == (10, 30)
    assert salvage_topic("orders") == "orders.salvage"


def nowhere() -> Cluster:
    return Cluster(Access(("127.0.0.1:1",), Protocol.PLAINTEXT))


def test_work_that_was_stopped_by_something_passing_is_begun_again() -> None:
    tried = []

    def attempt() -> int:
        tried.append(1)
        if len(tried) == 1:
            raise UnknownOutcome("nobody answered")
        return len(tried)

    assert again_until_settled([nowhere()], attempt) == 2


def test_work_that_was_refused_for_good_is_not_begun_again() -> None:
    tried = []

    def attempt() -> None:
        tried.append(1)
        raise KafkaError("no", code="TOPIC_AUTHORIZATION_FAILED")

    with pytest.raises(KafkaError, match="no"):
        again_until_settled([nowhere()], attempt)
    assert len(tried) == 1


def test_the_rule_that_keeps_users_from_salvage_is_no_difference_and_others_against_all_are() -> None:
    kept = Acl(Resource.TOPIC, salvage_topic("orders"), EVERYBODY, Operation.ALL, allow=False)
    other = Acl(Resource.TOPIC, "orders", EVERYBODY, Operation.ALL, allow=False)
    bus = Bus(bus="b", sites={"a": Site(brokers=1)})
    world = World("a", brokers=1, rules=frozenset({kept, other}))
    taken = [step for step in plan(bus, Role.ACTIVE, world, {}, term=1) if isinstance(step, Revoke)]
    assert [step.rules for step in taken] == [frozenset({other})]
