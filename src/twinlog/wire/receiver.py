"""librdkafka's consumer behind a few typed calls, for the client library and for drills.

A Receiver belongs to one thread. It reads as a member of a group, or partitions that it was given
(`assign`), and commits only when told to. What it returns is always of partitions that it has when it
returns: librdkafka serves rebalances in the middle of a batch, and a record of a partition that was
taken away meanwhile would be committed over the head of its new owner.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import confluent_kafka as confluent

from twinlog.errors import KafkaError
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Role, Tuning
from twinlog.wire.driver import LOG, Settings, explained, usual
from twinlog.wire.errands import Errands
from twinlog.wire.messages import is_one_place, place_of, to_records, without_errors, without_stale
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.received import Habit, Received
from twinlog.wire.seeking import Seeking

__all__ = ["COMMIT_S", "Begin", "Lost", "Received", "Receiver"]

ASK_S = 10.0  # for questions about offsets
COMMIT_S = 10.0
SEEK_S = 10.0  # until a partition that was just assigned can be moved in
_SEEK_AGAIN_S = 0.02
# librdkafka tells of them and goes on by itself.
_PASSING = frozenset(
    [
        confluent.KafkaError._ALL_BROKERS_DOWN,
        confluent.KafkaError._TRANSPORT,
        confluent.KafkaError._RESOLVE,
        confluent.KafkaError._TIMED_OUT,
        confluent.KafkaError._PARTITION_EOF,
        confluent.KafkaError.UNKNOWN_TOPIC_OR_PART,
    ]
)

_NO_RIGHT_TO_GROUP = confluent.KafkaError.GROUP_AUTHORIZATION_FAILED

Lost = Callable[[list[TopicPartition]], None]
Begin = Callable[[list[TopicPartition]], Mapping[TopicPartition, int]]


class Receiver:
    """A consumer that commits only when told to."""

    def __init__(
        self,
        access: Access,
        *,
        group: str,
        start: str,
        tuning: Tuning,
        settings: Settings | None = None,
        habit: Habit | None = None,
    ) -> None:
        used = {
            **usual(access, tuning, Role.CONSUMER),
            "group.id": group,
            "auto.offset.reset": start,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            **(settings or {}),
        }
        self.where = ",".join(access.bootstrap)
        self._is_incremental = _is_incremental(used)
        self._gone: set[TopicPartition] = set()  # within the current `take`
        self._kept: list[Received] = []  # what came along with an error
        self._seeking = Seeking()
        self._habit = habit if habit is not None else Habit()
        self._only_topic: str | None = None
        self.took_one_place = True  # all that `take` returned last is of one partition
        self._is_member = True
        self.ended: set[TopicPartition] = set()  # read to their ends, where enable.partition.eof says so
        self._consumer: Any = confluent.Consumer(used, logger=LOG)
        self._commits = Errands()

    def subscribe(self, topics: Sequence[str], lost: Lost, begin: Begin | None = None) -> None:
        """Read topics as a member of the group from now on.

        From within `take` and `close`, `lost` is told which partitions others have got, and `begin` is
        asked where to begin in partitions that were given to us; where it does not say, the group does.
        """

        def gone(_: Any, partitions: Any) -> None:
            places = [(one.topic, one.partition) for one in partitions]
            self._gone.update(places)
            self.ended.difference_update(places)
            self._seeking.forget(places)
            lost(places)

        def came(consumer: Any, partitions: Any) -> None:
            assert begin is not None
            found = begin([(one.topic, one.partition) for one in partitions])
            for one in partitions:
                one.offset = found.get((one.topic, one.partition), one.offset)
            if self._is_incremental:
                consumer.incremental_assign(partitions)
            else:
                consumer.assign(partitions)

        self._only_topic = _only(topics)
        handlers = {} if begin is None else {"on_assign": came}
        self._consumer.subscribe(list(topics), on_revoke=gone, on_lost=gone, **handlers)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets, without the group's say."""
        self._is_member = False
        self._only_topic = _only([topic for topic, _ in positions])
        self._consumer.assign(_placed(positions))

    @property
    def assigned(self) -> list[TopicPartition]:
        """The partitions that it reads now."""
        return sorted((one.topic, one.partition) for one in self._consumer.assignment())

    def take(self, most: int, timeout_s: float) -> list[Received]:
        """Up to so many records, none if none came in time."""
        if self._kept:
            kept, self._kept = self._kept, []
            return kept
        if self._seeking:
            self._move(self._seeking.due(time.monotonic()))
        # `consume` alone would wait for all of them.
        try:
            first = self._consumer.poll(timeout_s)
            if first is None:
                return []
            self._gone.clear()  # what went before the first record came may be here again
            messages = [first, *self._consumer.consume(most - 1, 0.0)] if most > 1 else [first]
        except confluent.KafkaException as refusal:
            raise explained(refusal.args[0], "reading", self.where) from refusal
        left = without_errors(messages)
        if self._gone:
            left = without_stale(left, self._gone, self.assigned)
        if self._seeking:
            left = self._reached(left)
        self.took_one_place = is_one_place(left, self._only_topic)
        got = to_records(left, self._habit, is_one_place=self.took_one_place)
        if len(got) < len(messages):
            self._kept = got  # librdkafka goes on behind them
            self._insist(messages)
            self._kept = []
        return got

    def pause(self, places: Iterable[TopicPartition]) -> None:
        """Take nothing of these partitions until they are resumed."""
        self._consumer.pause([confluent.TopicPartition(*place) for place in places])

    def resume(self, places: Iterable[TopicPartition]) -> None:
        """Take them again, from where they were."""
        self._consumer.resume([confluent.TopicPartition(*place) for place in places])

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Go on at these offsets, in partitions that it reads."""
        deadline, pause = time.monotonic() + SEEK_S, threading.Event()
        left = dict(positions)
        while left := self._move(left):
            if time.monotonic() > deadline:
                raise KafkaError(
                    f"moving to other offsets: {len(left)} partitions are not read yet",
                    code="STATE",
                    where=self.where,
                    hint="are they assigned? they are when the first record was handed out",
                )
            pause.wait(_SEEK_AGAIN_S)
        self._seeking.note(positions, time.monotonic())

    def offsets_at(self, timestamp_ms: int, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition with this time or a later one, its end if there is none."""
        asked = _placed(dict.fromkeys(places, timestamp_ms))
        found = self._ask("asking for offsets by time", lambda it: it.offsets_for_times(asked, ASK_S))
        return {place: offset if offset >= 0 else self.bounds(place)[1] for place, offset in found.items()}

    def bounds(self, place: TopicPartition) -> tuple[int, int]:
        """Where a partition begins and ends now."""
        try:
            first, end = self._consumer.get_watermark_offsets(confluent.TopicPartition(*place), ASK_S)
        except confluent.KafkaException as error:
            what = f"asking for the bounds of {place[0]}-{place[1]}"
            raise explained(error.args[0], what, self.where) from error
        return int(first), int(end)

    def committed(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where the group would go on; without partitions of which it has committed nothing."""
        asked = [confluent.TopicPartition(*place) for place in places]
        found = self._ask("asking for committed offsets", lambda it: it.committed(asked, ASK_S))
        return {place: offset for place, offset in found.items() if offset >= 0}

    def commit(self, positions: Mapping[TopicPartition, int], timeout_s: float = COMMIT_S) -> None:
        """Let the group go on at these offsets the next time; returns when that is written.

        With the code TIMED_OUT nobody knows whether it is, or will be.
        """
        wanted, what = _placed(positions), "committing offsets"
        try:
            done = self._commits.run(
                lambda: self._consumer.commit(offsets=wanted, asynchronous=False), timeout_s
            )
        except confluent.KafkaException as error:
            raise explained(error.args[0], what, self.where) from error
        except TimeoutError:
            raise KafkaError(
                f"{what}: no answer after {timeout_s:g} s",
                code="TIMED_OUT",
                retriable=True,
                where=self.where,
                hint="is the site up? twinlog status",
            ) from None
        for one in done:
            if one.error is not None:
                raise explained(one.error, f"committing {one.topic}-{one.partition}", self.where)

    @property
    def membership(self) -> object:
        """Who it is in its group, for a transaction that commits its offsets."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leave the group; behind a commit that hangs, when it has ended."""
        self._commits.last(self._consumer.close)

    def _ask(self, what: str, how: Callable[[Any], Any]) -> dict[TopicPartition, int]:
        try:
            answers = how(self._consumer)
        except confluent.KafkaException as error:
            raise explained(error.args[0], what, self.where) from error
        for one in answers:
            if one.error is not None:
                raise explained(one.error, f"{what} of {one.topic}-{one.partition}", self.where)
        return {(one.topic, one.partition): one.offset for one in answers}

    def _move(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Ask librdkafka for moves; returns those that it cannot do yet, because it does not read there."""
        left = {}
        for one in _placed(positions):
            try:
                self._consumer.seek(one)
            except confluent.KafkaException as error:
                if error.args[0].code() != confluent.KafkaError._STATE:
                    what = f"moving to offset {one.offset} of {one.topic}-{one.partition}"
                    raise explained(error.args[0], what, self.where) from error
                left[one.topic, one.partition] = one.offset
        return left

    def _reached(self, got: list[Any]) -> list[Any]:
        """Without messages of partitions whose last move was undone; it is done again."""
        firsts = {place_of(message): message.offset() for message in reversed(got)}
        missed = self._seeking.judge(firsts)
        self._move(missed)
        return [message for message in got if place_of(message) not in missed] if missed else got

    def _insist(self, messages: Iterable[Any]) -> None:
        """Raise what librdkafka does not get over by itself."""
        for message in messages:
            error = message.error()
            if error is not None and error.code() == confluent.KafkaError._PARTITION_EOF:
                self.ended.add((message.topic(), message.partition()))
            elif error is not None and not self._is_member and error.code() == _NO_RIGHT_TO_GROUP:
                continue  # librdkafka looks for a coordinator even where no group is joined
            elif error is not None and not error.retriable() and error.code() not in _PASSING:
                raise explained(error, "reading", self.where)


def _is_incremental(settings: Mapping[str, Any]) -> bool:
    """True if partitions come and go one by one in a rebalance, not all at once."""
    return settings.get("group.protocol") == "consumer" or "cooperative" in str(
        settings.get("partition.assignment.strategy", "")
    )


def _only(topics: Iterable[str]) -> str | None:
    """The topic, if there is one and it is no pattern."""
    named = set(topics)
    return named.pop() if len(named) == 1 and not any(one.startswith("^") for one in named) else None


def _placed(positions: Mapping[TopicPartition, int]) -> list[Any]:
    return [confluent.TopicPartition(*place, offset) for place, offset in positions.items()]
