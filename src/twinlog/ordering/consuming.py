"""The state machine between a channel's log and its blocks. Pure: an event in, actions out.

`chain` gives it every record of the partition in the order of offsets and carries out what it says before
the next one. Orderers do not talk to each other: they agree because each runs this over the same records,
so nothing but records and the channel's configuration may decide what goes into a block. What is local
(the timer, the ingress gate, sending again) changes only what is written to the log. Begun at any
block's position it gives the blocks that follow, byte by byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from google.protobuf.message import DecodeError

from twinlog.ordering import records
from twinlog.ordering.blocks import Position
from twinlog.ordering.cutter import Batch, Cutter
from twinlog.ordering.proto import common_pb2, orderer_pb2
from twinlog.ordering.support import Refused, Rules

_CONFIG_TYPES = (common_pb2.CONFIG, common_pb2.ORDERER_TRANSACTION)


@dataclass(frozen=True, slots=True)
class WriteBlock:
    """Write the block of this number; one with a config is to be applied first."""

    number: int
    batch: Batch
    position: Position
    is_config: bool = False


@dataclass(frozen=True, slots=True)
class StartTimer:
    """Call `timer_fired` when the batch timeout, as it is now, has passed."""


@dataclass(frozen=True, slots=True)
class StopTimer:
    """Do not call it any more."""


@dataclass(frozen=True, slots=True)
class PostTimeToCut:
    """Write TIMETOCUT for this block; tell `cut_not_posted` if that fails."""

    number: int


@dataclass(frozen=True, slots=True)
class Resubmit:
    """Write a record in the place of one that was checked against an older configuration."""

    value: bytes


@dataclass(frozen=True, slots=True)
class SetGate:
    """Let messages in, or let them wait until a config that was sent again is through."""

    is_open: bool


@dataclass(frozen=True, slots=True)
class Drop:
    """A record gives nothing, and why; for the log file."""

    why: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The channel cannot go on behind this record."""

    why: str


Action = WriteBlock | StartTimer | StopTimer | PostTimeToCut | Resubmit | SetGate | Drop | Stop
Actions = Sequence[Action]
_NOTHING: Actions = ()
_Regular = orderer_pb2.KafkaMessageRegular


class Consuming:
    """One channel's way through its log, from a position on."""

    def __init__(self, rules: Rules, height: int, position: Position) -> None:
        self._rules = rules
        self._last_cut = height - 1
        self._last_original = position.last_original_offset
        self._last_resubmitted_config = position.last_resubmitted_config_offset
        self._cutter = Cutter()
        self._has_timer = False
        self._begun_behind = position.last_offset
        # The config that was sent again and keeps the gate shut, by the offset it had before.
        self._awaited: int | None = None
        if self._last_resubmitted_config > self._last_original:
            self._awaited = self._last_resubmitted_config

    @property
    def is_gate_open(self) -> bool:
        """False while a config that was sent again is not through."""
        return self._awaited is None

    def record(self, offset: int, value: bytes | None) -> Actions:
        """What the next record of the log leads to."""
        try:
            message = orderer_pb2.KafkaMessage.FromString(value or b"")
        except DecodeError:
            return [Drop(f"the record at offset {offset} cannot be read")]
        match message.WhichOneof("Type"):
            case "regular":
                return self._regular(offset, message.regular)
            case "time_to_cut":
                return self._time_to_cut(offset, message.time_to_cut.block_number)
            case _:
                return _NOTHING  # CONNECT, or nothing that anybody knows

    def timer_fired(self) -> Actions:
        """The batch timeout has passed: have the log say so to everybody."""
        self._has_timer = False
        return [PostTimeToCut(self._last_cut + 1)]

    def cut_not_posted(self, number: int) -> Actions:
        """Nobody can say that TIMETOCUT is in the log; wait again, or what is pending might stay so."""
        if number != self._last_cut + 1 or self._has_timer or not self._cutter.is_pending:
            return _NOTHING
        self._has_timer = True
        return [StartTimer()]

    def caught_up(self) -> Actions:
        """All that was in the log when this orderer started is dealt with.

        A gate that was found shut is opened: the config it waited for was sent before, so it is through,
        also if it was refused, which leaves no trace in blocks.
        """
        return self._through(self._begun_behind)

    def _time_to_cut(self, offset: int, number: int) -> Actions:
        due = self._last_cut + 1
        if number < due:
            return _NOTHING  # every orderer writes its own; the first one counted
        if number > due:
            return [Stop(f"TIMETOCUT at offset {offset} is for block {number}, and {due} is not cut yet")]
        stopped = self._stop_timer()
        if not self._cutter.is_pending:
            return [*stopped, Stop(f"TIMETOCUT at offset {offset} is for block {number}, which is empty")]
        # Without the last resubmitted config, as every other orderer writes it on this path.
        position = Position(offset, self._last_original)
        return [*stopped, self._block(self._cutter.cut(), position)]

    def _regular(self, offset: int, regular: _Regular) -> Actions:
        try:
            envelope = common_pb2.Envelope.FromString(regular.payload)
        except DecodeError:
            return [Drop(f"the envelope at offset {offset} cannot be read")]
        if regular.message_class == records.UNKNOWN or not self._rules.resubmits:
            return self._unclassified(offset, envelope)
        if regular.message_class == records.NORMAL:
            return self._normal(offset, regular, envelope)
        if regular.message_class == records.CONFIG:
            return self._config(offset, regular, envelope)
        return [Drop(f"the record at offset {offset} is of unknown class {regular.message_class}")]

    def _normal(self, offset: int, regular: _Regular, envelope: common_pb2.Envelope) -> Actions:
        original = regular.original_offset
        if original and original <= self._last_original:
            return [Drop(f"the record at offset {offset} repeats that of offset {original}")]
        if regular.config_seq < self._rules.sequence:
            try:
                sequence = self._rules.revalidate(regular.payload)
            except Refused as refused:
                return [Drop(f"the message at offset {offset} is no longer valid: {refused}")]
            return [Resubmit(records.normal(envelope.SerializeToString(), sequence, offset))]
        return self._commit_normal(offset, envelope, original or self._last_original)

    def _config(self, offset: int, regular: _Regular, envelope: common_pb2.Envelope) -> Actions:
        original = regular.original_offset
        if original:
            if original <= self._last_original:
                # It may also have been overtaken by one behind it, and will never be taken then.
                repeated = Drop(f"the record at offset {offset} repeats that of offset {original}")
                return [repeated, *self._through(original)]
            # Another orderer may have sent one again that this one judged invalid.
            self._last_resubmitted_config = max(self._last_resubmitted_config, original)
        if regular.config_seq >= self._rules.sequence:
            committed = self._commit_config(offset, envelope, original or self._last_original)
            return [*self._through(original), *committed]
        try:
            renewed, renewed_at = self._rules.reprocess_config(regular.payload)
        except Refused as refused:
            # It will not come again, so nobody waits for it any more.
            why = f"the config at offset {offset} is no longer valid: {refused}"
            return [Drop(why), *self._through(original)]
        self._last_resubmitted_config = self._awaited = offset
        # Shut first: nothing that is checked against the old configuration should follow it.
        return [SetGate(False), Resubmit(records.config(renewed, renewed_at, offset))]

    def _unclassified(self, offset: int, envelope: common_pb2.Envelope) -> Actions:
        """A message of a time when orderers neither classified messages nor sent them again."""
        encoded = envelope.SerializeToString()
        try:
            kind = _type_of(envelope)
            if kind == common_pb2.CONFIG_UPDATE:
                return [Drop(f"the message at offset {offset} is a config update, not a config")]
            if kind in _CONFIG_TYPES:
                self._rules.reprocess_config(encoded)
                return self._commit_config(offset, envelope, self._last_original)
            self._rules.revalidate(encoded)
        except (Refused, DecodeError) as error:
            return [Drop(f"the message at offset {offset} is not valid: {error}")]
        return self._commit_normal(offset, envelope, self._last_original)

    def _commit_normal(self, offset: int, envelope: common_pb2.Envelope, original: int) -> Actions:
        size_bytes = len(envelope.payload) + len(envelope.signature)
        # Encoded anew, as every orderer does, so that all have the same bytes whoever wrote the record.
        cut = self._cutter.ordered(envelope.SerializeToString(), size_bytes, self._rules.batch_size)
        if not cut.batches and self._has_timer:
            self._last_original = original
            return _NOTHING
        actions: list[Action] = []
        if cut.pending != self._has_timer:
            self._has_timer = cut.pending
            actions.append(StartTimer() if cut.pending else StopTimer())
        for batch in cut.batches:
            holds_message = batch is cut.batches[-1] and not cut.pending
            if holds_message:
                self._last_original = original
            position = self._position(offset if holds_message else offset - 1)
            actions.append(self._block(batch, position))
        self._last_original = original
        return actions

    def _commit_config(self, offset: int, envelope: common_pb2.Envelope, original: int) -> Actions:
        actions: list[Action] = []
        if self._cutter.is_pending:
            actions.append(self._block(self._cutter.cut(), self._position(offset - 1)))
        self._last_original = original
        block = self._block([envelope.SerializeToString()], self._position(offset))
        return [*actions, *self._stop_timer(), replace(block, is_config=True)]

    def _position(self, offset: int) -> Position:
        return Position(offset, self._last_original, self._last_resubmitted_config)

    def _block(self, batch: Batch, position: Position) -> WriteBlock:
        self._last_cut += 1
        return WriteBlock(self._last_cut, batch, position)

    def _stop_timer(self) -> list[Action]:
        was_running, self._has_timer = self._has_timer, False
        return [StopTimer()] if was_running else []

    def _through(self, original: int) -> list[Action]:
        """A config that was at this offset before has had its turn: open the gate if it waits for that."""
        if self._awaited is None or original < self._awaited:
            return []
        self._awaited = None
        return [SetGate(True)]


def _type_of(envelope: common_pb2.Envelope) -> int:
    payload = common_pb2.Payload.FromString(envelope.payload)
    return common_pb2.ChannelHeader.FromString(payload.header.channel_header).type
