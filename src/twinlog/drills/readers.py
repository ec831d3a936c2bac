"""The readers of a drill's load that are not Java: a group on librdkafka, and the library with read=twin.

Each runs in a process of its own (`performer`) and writes down every record that it is handed and every
commit. It commits by itself, after what it has handed out, and never when it stops.
"""

from __future__ import annotations

import time

from twinlog.client.consumer import Consumer, RolesChanged
from twinlog.drills.cast import USER
from twinlog.drills.history import Commit, Happening, Outcome, Read
from twinlog.drills.reach import gate_access, tuning_of
from twinlog.drills.writers import Stage
from twinlog.errors import KafkaError, TwinlogError
from twinlog.sites.state import BusState
from twinlog.wire.driver import Settings
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.receiver import Received, Receiver

COMMIT_EVERY_S = 0.5
TAKE_S = 0.2
MOST_AT_ONCE = 500
# As the readers in Java have it: without a wait for more there would be a fetch for every record or two.
FETCHING: Settings = {"fetch.min.bytes": 10_000, "fetch.wait.max.ms": 200}
# What Kafka says of a commit that came while the group shared its partitions out anew: no error of the bus.
HANDED_ON = frozenset(
    {
        "ILLEGAL_GENERATION",
        "REBALANCE_IN_PROGRESS",
        "STALE_MEMBER_EPOCH",
        "UNKNOWN_MEMBER_ID",
        "ASSIGNMENT_LOST",
    }
)
# librdkafka has lost its coordinator, or the answer, and looks for it; the next commit makes it good.
PASSING = frozenset({"TRANSPORT", "WAIT_COORD", "TIMED_OUT", "ALL_BROKERS_DOWN"})


class Handed:
    """What a reader was handed and has not committed."""

    def __init__(self, stage: Stage, site: str | None = None) -> None:
        self._stage = stage
        self._site = site  # None: behind the gate nobody can say
        self._next_s = time.monotonic() + COMMIT_EVERY_S
        self.positions: dict[TopicPartition, int] = {}

    def take(self, record: Received) -> None:
        """Write a record down; one from a site that is known was read with read=twin."""
        client, recorder = self._stage.part.client, self._stage.recorder
        value = self._stage.part.names.value(record.value)
        place = (record.topic, record.partition, record.offset)
        twin = self._site is not None
        recorder.add(Read(client.name, client.group, *place, value, recorder.now_s(), self._site, twin))
        self.positions[record.topic, record.partition] = record.offset + 1

    def lose(self, places: list[TopicPartition]) -> None:
        """Others go on with these."""
        for place in places:
            self.positions.pop(place, None)

    @property
    def are_due(self) -> bool:
        """True if it is time to commit."""
        return bool(self.positions) and time.monotonic() >= self._next_s

    def committed(self, outcome: Outcome, failed: TwinlogError | None = None) -> None:
        """Write down how a commit ended."""
        error = _error(failed)
        client, recorder = self._stage.part.client, self._stage.recorder
        for (topic, partition), offset in self.positions.items():
            now_s = recorder.now_s()
            recorder.add(Commit(client.name, client.group, topic, partition, offset, now_s, outcome, error))
        self.positions.clear()
        self._next_s = time.monotonic() + COMMIT_EVERY_S


def read_in_group(stage: Stage) -> None:
    """librdkafka's consumer as a member of a group."""
    client, handed = stage.part.client, Handed(stage)
    receiver = Receiver(
        gate_access(stage.home),
        group=client.group,
        start="earliest",
        tuning=tuning_of(stage.home),
        settings={"client.id": client.name, **FETCHING},
    )
    receiver.subscribe(client.topics, handed.lose)
    while not stage.stop.is_set():
        try:
            for record in receiver.take(MOST_AT_ONCE, TAKE_S):
                handed.take(record)
        except TwinlogError as error:
            # A program would write this to its log and go on; whether it does go on is what counts.
            said = f"{client.name} was told: {error.what}"
            stage.recorder.event(Happening.ERROR, said, client=client.name)
            stage.stop.wait(TAKE_S)
        if handed.are_due:
            try:
                receiver.commit(handed.positions)
                handed.committed(Outcome.OK)
            except TwinlogError as error:
                handed.committed(Outcome.UNKNOWN, error)
    receiver.close()


def read_from_twin(stage: Stage) -> None:
    """The library's consumer with read=twin, opened anew when the sites change roles."""
    client = stage.part.client
    while not stage.stop.is_set():
        state = stage.home.state()
        try:
            with Consumer.of_bus(
                stage.home.file, USER, client.group, client.topics, settings=FETCHING, read="twin"
            ) as consumer:
                _read(stage, consumer, state)
        except TwinlogError:
            stage.stop.wait(TAKE_S)


def _read(stage: Stage, consumer: Consumer, state: BusState) -> None:
    # It knows the brokers of one site: those of the active in this term, unless that ended meanwhile.
    handed = Handed(stage, state.active)
    while not stage.stop.is_set() and stage.home.state().term == state.term:
        for record in consumer.poll_many(TAKE_S, MOST_AT_ONCE):
            handed.take(record)
        if handed.are_due:
            try:
                consumer.commit()
                handed.committed(Outcome.OK)
            except RolesChanged:
                raise
            except TwinlogError as error:
                handed.committed(Outcome.UNKNOWN, error)


def _error(failed: TwinlogError | None) -> str:
    """What a reader was told of a commit; nothing if it may commit again, or others go on instead."""
    if not isinstance(failed, KafkaError):
        return "" if failed is None else failed.what
    return "" if failed.retriable or failed.code in HANDED_ON | PASSING else failed.what
