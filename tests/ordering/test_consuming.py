"""The state machine: each row of its tables, a run that was seen on Fabric, and replay from every block."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st

from tests.ordering.single_channel import envelope, name_of
from twinlog.ordering import records
from twinlog.ordering.blocks import Position
from twinlog.ordering.consuming import (
    Action,
    Consuming,
    Drop,
    PostTimeToCut,
    Resubmit,
    SetGate,
    StartTimer,
    Stop,
    StopTimer,
    WriteBlock,
)
from twinlog.ordering.proto import common_pb2, orderer_pb2
from twinlog.ordering.support import BatchSize, Refused

_START = Position(-1)
_CONNECT = records.connect()
_LIMITS = BatchSize(3, 10_000, 10_000)


@dataclass
class Channel:
    """Rules whose sequence rises with each config block, and the blocks that were written."""

    sequence: int = 0
    batch_size: BatchSize = _LIMITS
    resubmits: bool = True
    refused: set[str] = field(default_factory=set)
    blocks: list[WriteBlock] = field(default_factory=list)
    others: list[Action] = field(default_factory=list)

    def revalidate(self, encoded: bytes) -> int:
        self._judge(encoded)
        return self.sequence

    def reprocess_config(self, encoded: bytes) -> tuple[bytes, int]:
        return envelope(f"{self._judge(encoded)}+", common_pb2.CONFIG), self.sequence

    def _judge(self, encoded: bytes) -> str:
        """The name in an envelope that is wanted; one that cannot be read never is."""
        try:
            name = name_of(encoded)
        except DecodeError as error:
            raise Refused("cannot be read") from error
        if name in self.refused:
            raise Refused("no longer wanted")
        return name

    def carry_out(self, actions: object) -> None:
        assert isinstance(actions, list | tuple)
        for action in actions:
            if isinstance(action, WriteBlock):
                self.blocks.append(action)
                self.sequence += action.is_config
            else:
                self.others.append(action)

    def run(self, log: list[bytes], height: int = 1, position: Position = _START) -> Consuming:
        """Work a log off from behind a position."""
        machine = Consuming(self, height, position)
        for offset in range(position.last_offset + 1, len(log)):
            self.carry_out(machine.record(offset, log[offset]))
        return machine

    @property
    def contents(self) -> list[tuple[list[str], int]]:
        """Of each block its messages and last offset."""
        return [([name_of(one) for one in block.batch], block.position.last_offset) for block in self.blocks]

    @property
    def has_timer(self) -> bool:
        timers = [action for action in self.others if isinstance(action, StartTimer | StopTimer)]
        return bool(timers) and isinstance(timers[-1], StartTimer)

    @property
    def drops(self) -> list[str]:
        return [action.why for action in self.others if isinstance(action, Drop)]


def _normal(name: str, sequence: int = 0, original: int = 0) -> bytes:
    return records.normal(envelope(name), sequence, original)


def _config(name: str, sequence: int = 0, original: int = 0) -> bytes:
    return records.config(envelope(name, common_pb2.CONFIG), sequence, original)


def test_records_have_the_bytes_that_were_seen_in_a_real_partition() -> None:
    assert _CONNECT.hex() == "1a00"
    assert records.time_to_cut(3).hex() == "12020803"
    assert records.normal(b"e", 0).hex() == "0a05" + "0a0165" + "1801"
    assert records.normal(b"e", 1, 5).hex().endswith("10011801" + "2005")
    assert records.config(b"e", 0).hex().endswith("1802")


def test_run_that_fabric_made_gives_its_blocks() -> None:
    channel = Channel()
    log = [
        _CONNECT,
        _CONNECT,
        _normal("a"),
        _normal("b"),
        _config("batch size"),
        _normal("late"),  # at the sequence before
        _normal("late", 1, 5),  # as one orderer sends it again
        _normal("late", 1, 5),  # and another
        records.time_to_cut(3),
    ]
    channel.run(log)
    assert channel.contents == [(["a", "b"], 3), (["batch size"], 4), (["late"], 8)]
    assert [block.number for block in channel.blocks] == [1, 2, 3]
    assert [block.is_config for block in channel.blocks] == [False, True, False]
    assert channel.blocks[2].position == Position(8, 5)
    assert [one.value for one in channel.others if isinstance(one, Resubmit)] == [_normal("late", 1, 5)]
    assert channel.drops == ["the record at offset 7 repeats that of offset 5"]


@pytest.mark.parametrize("value", [b"\xff", b"", None, b"\x0a\x03\x0a\x01\xff", bytes.fromhex("7a00")])
def test_record_without_meaning_is_skipped(value: bytes | None) -> None:
    channel = Channel()
    machine = channel.run([_CONNECT, _normal("a")])
    channel.carry_out(machine.record(2, value))
    channel.carry_out(machine.record(3, records.time_to_cut(1)))
    assert channel.contents == [(["a"], 3)]


def test_record_of_unknown_class_is_dropped() -> None:
    regular = orderer_pb2.KafkaMessageRegular(payload=envelope("a"))
    regular.message_class = 9  # type: ignore[assignment]
    channel = Channel()
    channel.run([_CONNECT, orderer_pb2.KafkaMessage(regular=regular).SerializeToString()])
    assert channel.drops == ["the record at offset 1 is of unknown class 9"]


def test_envelope_with_fields_in_another_order_is_encoded_anew() -> None:
    channel = Channel(batch_size=BatchSize(1, 100, 100))
    # Signature before payload, and a field 15 that nobody knows.
    channel.run([_CONNECT, records.normal(bytes.fromhex("120173" + "7a0178" + "0a0170"), 0)])
    assert channel.blocks[0].batch == [bytes.fromhex("0a0170" + "120173" + "7a0178")]


def test_time_to_cut_is_stale_changes_nothing() -> None:
    channel = Channel()
    log = [_CONNECT, _normal("a"), records.time_to_cut(1), records.time_to_cut(1), _normal("b")]
    channel.run([*log, records.time_to_cut(0), records.time_to_cut(2)])
    assert channel.contents == [(["a"], 2), (["b"], 6)]


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ([_CONNECT, records.time_to_cut(1)], "is for block 1, which is empty"),
        ([_CONNECT, _normal("a"), records.time_to_cut(2)], "is for block 2, and 1 is not cut yet"),
    ],
)
def test_time_to_cut_cannot_be_right_stops_the_channel(log: list[bytes], why: str) -> None:
    channel = Channel()
    channel.run(log)
    (stop,) = [action for action in channel.others if isinstance(action, Stop)]
    assert why in stop.why
    assert channel.blocks == []


def test_time_to_cut_leaves_the_resubmitted_config_out() -> None:
    channel = Channel()
    log = [_CONNECT, _config("c", 0, 7), _normal("a", 1), records.time_to_cut(2)]
    channel.run(log)
    assert [block.position for block in channel.blocks] == [Position(1, 7, 7), Position(3, 7, 0)]


def test_timer_starts_with_the_first_message_and_stops_with_the_block() -> None:
    channel = Channel()
    machine = channel.run([_CONNECT, _normal("a")])
    assert channel.others == [StartTimer()]
    channel.carry_out(machine.record(2, _normal("b")))
    channel.carry_out(machine.record(3, _normal("c")))
    assert channel.others == [StartTimer(), StopTimer()]


def test_block_is_cut_by_size_and_the_message_waits_leaves_the_timer_running() -> None:
    channel = Channel(batch_size=BatchSize(10, 100, 30))
    channel.run([_CONNECT, *(_normal("x" * 10) for _ in range(4))])
    assert [offset for _, offset in channel.contents] == [1, 2, 3]
    assert channel.others == [StartTimer()]


def test_time_to_cut_and_config_stop_the_timer() -> None:
    for value in (records.time_to_cut(1), _config("c")):
        channel = Channel()
        channel.run([_CONNECT, _normal("a"), value])
        assert channel.others == [StartTimer(), StopTimer()]


def test_timer_fires_posts_the_next_number_and_does_not_cut() -> None:
    channel = Channel()
    machine = channel.run([_CONNECT, _normal("a")])
    assert machine.timer_fired() == [PostTimeToCut(1)]
    assert channel.blocks == []
    # Only the next message starts it again.
    assert machine.record(2, _normal("b")) == [StartTimer()]


def test_time_to_cut_cannot_be_written_starts_the_timer_again() -> None:
    channel = Channel()
    machine = channel.run([_CONNECT, _normal("a")])
    machine.timer_fired()
    assert machine.cut_not_posted(1) == [StartTimer()]
    assert machine.cut_not_posted(1) == ()  # it runs already
    machine.timer_fired()
    channel.carry_out(machine.record(2, records.time_to_cut(1)))  # another orderer's
    assert machine.cut_not_posted(1) == ()


def test_message_does_not_fit_leaves_the_offset_before_it_in_the_block() -> None:
    channel = Channel(batch_size=BatchSize(10, 100, 30))
    log = [_CONNECT, _normal("x"), _normal("y" * 20), _normal("z" * 90, 0, 2), _normal("w")]
    channel.run(log)
    assert channel.contents == [(["x"], 1), (["y" * 20], 2), (["z" * 90], 3)]
    assert [block.position.last_original_offset for block in channel.blocks] == [0, 0, 2]


def test_config_comes_behind_messages_is_alone_in_its_block() -> None:
    channel = Channel()
    channel.run([_CONNECT, _normal("a"), _config("c")])
    assert channel.contents == [(["a"], 1), (["c"], 2)]


def test_message_of_an_old_sequence_is_invalid_is_dropped() -> None:
    channel = Channel(sequence=4, refused={"a"})
    channel.run([_CONNECT, _normal("a", 3), _normal("b", 5)])
    assert [type(action) for action in channel.others] == [Drop, StartTimer]
    assert "no longer wanted" in channel.drops[0]


def test_message_of_a_later_sequence_is_taken() -> None:
    channel = Channel(batch_size=BatchSize(1, 100, 100))
    channel.run([_CONNECT, _normal("a", 9), _config("c", 9)])
    assert channel.contents == [(["a"], 1), (["c"], 2)]


def test_config_of_an_old_sequence_is_made_anew_and_shuts_the_gate_until_it_is_through() -> None:
    channel = Channel()
    machine = channel.run([_CONNECT, _config("c"), _config("d")])
    renewed = _config("d+", 1, 2)
    assert channel.others == [SetGate(False), Resubmit(renewed)]
    assert not machine.is_gate_open
    channel.others.clear()
    channel.carry_out(machine.record(3, renewed))
    assert channel.others == [SetGate(True)]
    assert machine.is_gate_open
    assert channel.contents == [(["c"], 1), (["d+"], 3)]
    assert channel.blocks[1].position == Position(3, 2, 2)
    channel.carry_out(machine.record(4, renewed))  # another orderer's
    assert channel.drops == ["the record at offset 4 repeats that of offset 2"]


def test_config_that_was_sent_again_is_refused_opens_the_gate() -> None:
    channel = Channel()
    machine = channel.run([_CONNECT, _config("c"), _config("d"), _config("e", 1)])
    channel.refused = {"d+"}
    channel.carry_out(machine.record(4, _config("d+", 1, 2)))
    assert channel.others[-1] == SetGate(True)
    assert [names for names, _ in channel.contents] == [["c"], ["e"]]


def test_config_that_was_sent_again_is_overtaken_opens_the_gate() -> None:
    channel = Channel()
    log = [_CONNECT, _config("c"), _config("d"), _normal("a")]  # both behind c at the sequence before
    machine = channel.run(log)
    assert not machine.is_gate_open
    # Another orderer did not take d any more, and sends only the message again.
    channel.carry_out(machine.record(4, _normal("a", 1, 3)))
    channel.carry_out(machine.record(5, _config("d+", 1, 2)))
    assert machine.is_gate_open
    assert channel.contents == [(["c"], 1)]


def test_config_that_another_orderer_sent_again_is_remembered() -> None:
    channel = Channel(refused={"d"})
    machine = channel.run([_CONNECT, _config("c"), _config("d"), _config("d+", 1, 2)])
    assert channel.blocks[-1].position == Position(3, 2, 2)
    assert machine.is_gate_open


@pytest.mark.parametrize(
    ("position", "is_open"),
    [
        (Position(9), True),
        (Position(9, 5, 5), True),
        (Position(9, 6, 5), True),
        (Position(9, 5, 6), False),
    ],
)
def test_gate_at_the_start_is_open_unless_a_config_is_under_way(position: Position, is_open: bool) -> None:
    assert Consuming(Channel(), 3, position).is_gate_open == is_open


def test_gate_is_found_shut_opens_when_the_log_is_caught_up_with() -> None:
    machine = Consuming(Channel(), 3, Position(9, 5, 6))
    assert machine.caught_up() == [SetGate(True)]
    assert machine.caught_up() == []


def test_gate_was_shut_since_the_start_stays_so_when_the_log_is_caught_up_with() -> None:
    machine = Consuming(Channel(sequence=1), 3, Position(9, 5, 6))
    machine.record(10, _config("d"))
    assert machine.caught_up() == []
    assert not machine.is_gate_open


def test_channel_without_resubmission_checks_every_message() -> None:
    channel = Channel(sequence=3, resubmits=False, refused={"bad", "wrong"})
    update = records.normal(envelope("update", common_pb2.CONFIG_UPDATE), 0)
    log = [_CONNECT, _normal("a"), _normal("bad"), _config("wrong"), update, _config("c")]
    channel.run([*log, records.normal(common_pb2.Envelope(payload=b"\xff").SerializeToString(), 0)])
    assert channel.contents == [(["a"], 4), (["c"], 5)]
    assert len(channel.drops) == 4


def _outline(block: WriteBlock) -> tuple[object, ...]:
    """All of a block but the last resubmitted config, which a block cut by time does not tell."""
    position = block.position
    return block.number, block.batch, block.is_config, position.last_offset, position.last_original_offset


_SIZES = st.integers(1, 40).map(lambda size: "m" * size)
_ENTRIES = st.one_of(
    st.builds(lambda name: ("normal", name), _SIZES),
    st.builds(lambda name: ("config", name), _SIZES),
    st.builds(lambda name: ("stale", name), _SIZES),
    st.just(("connect", "")),
    st.just(("garbage", "")),
    st.just(("cut", "")),
)


def _log(entries: list[tuple[str, str]], limits: BatchSize) -> list[bytes]:
    """A log such as orderers write, with what one of them sends again and cuts."""
    channel = Channel(batch_size=limits)
    machine, log = Consuming(channel, 1, _START), []

    def put(value: bytes) -> None:
        log.append(value)
        actions = machine.record(len(log) - 1, value)
        channel.carry_out(actions)
        for action in actions:
            if isinstance(action, Resubmit):
                put(action.value)
                put(action.value)  # as by a second orderer

    put(_CONNECT)
    for kind, name in entries:
        match kind:
            case "normal":
                put(_normal(name, channel.sequence))
            case "config":
                put(_config(name, channel.sequence))
            case "stale":
                put(_normal(name, max(0, channel.sequence - 1)))
                put(_config(name, max(0, channel.sequence - 1)))
            case "connect":
                put(_CONNECT)
            case "garbage":
                put(b"\xff\xff")
            case "cut":
                # As timers do it: only while something waits, and more than one orderer's.
                next_number = len(channel.blocks) + 1
                if channel.has_timer:
                    put(records.time_to_cut(next_number))
                    put(records.time_to_cut(next_number))
    return log


@given(
    st.lists(_ENTRIES, max_size=25),
    st.builds(BatchSize, st.integers(1, 4), st.just(1000), st.integers(20, 120)),
)
def test_replay_from_any_block_gives_the_same_blocks(
    entries: list[tuple[str, str]], limits: BatchSize
) -> None:
    log = _log(entries, limits)
    whole = Channel(batch_size=limits)
    whole.run(log)
    assert not [action for action in whole.others if isinstance(action, Stop)]
    for done in range(1, len(whole.blocks) + 1):
        before = whole.blocks[:done]
        again = Channel(sequence=sum(block.is_config for block in before), batch_size=limits)
        again.run(log, height=done + 1, position=before[-1].position)
        assert list(map(_outline, again.blocks)) == list(map(_outline, whole.blocks[done:]))


@given(st.lists(_ENTRIES, max_size=25))
def test_every_message_of_the_log_is_in_one_block_or_waits(entries: list[tuple[str, str]]) -> None:
    limits = BatchSize(3, 1000, 60)
    numbered = [(kind, f"{place}.{name}") for place, (kind, name) in enumerate(entries)]
    log = _log([one for one in numbered if one[0] in ("normal", "connect", "cut", "garbage")], limits)
    channel = Channel(batch_size=limits)
    machine = channel.run(log)
    machine.timer_fired()
    rest = machine.record(len(log), records.time_to_cut(len(channel.blocks) + 1))
    channel.carry_out(rest)
    ordered = [name for names, _ in channel.contents for name in names]
    assert ordered == [name for kind, name in numbered if kind == "normal"]


_VALID = [
    _CONNECT,
    records.time_to_cut(1),
    _normal("a"),
    _normal("a", 9, 3),
    _config("c"),
    _config("c", 0, 2),
]


@st.composite
def _mangled(draw: st.DrawFn) -> bytes:
    """A record with some bytes changed, taken out or put in."""
    value = bytearray(draw(st.sampled_from(_VALID)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(value)))
        value[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(value)


@example(
    log=[
        b"\n\x12\n\x0e\x08\x00\t\x00\x00\x00\x00\x00\x00\x00\x00\n\x01\x00\x18\x02",
        b"\n\x10\n\x0c\t\x00\x00\x00\x00\x00\x00\x00\x00\n\x01\x00\x18\x01",
    ],
    resubmits=True,
)
@given(st.lists(st.one_of(st.binary(max_size=40), _mangled()), max_size=30), st.booleans())
def test_any_bytes_in_the_log_are_skipped_or_stop_the_channel_alike_everywhere(
    log: list[bytes], resubmits: bool
) -> None:
    one, two = Channel(resubmits=resubmits), Channel(resubmits=resubmits)
    for channel in (one, two):
        channel.run(log)
    assert one.blocks == two.blocks
    assert one.others == two.others
