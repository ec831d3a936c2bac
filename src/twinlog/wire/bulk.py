"""librdkafka at full speed, for measurements: many records in one call, little in Python for each.

`perf` builds on it. Records go to the driver in pieces that are made before; of each record that is
answered only its latency is kept, which librdkafka takes itself, from the call that queued it. What
it has to wait before there is room is added by the caller: `late_s`. Each belongs to one thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import confluent_kafka as confluent

from twinlog.errors import KafkaError, UsageError
from twinlog.wire import codes
from twinlog.wire.deadlines import Deadline
from twinlog.wire.driver import LOG, Settings, explained

Piece = list[dict[str, bytes]]  # as produce_batch takes records: {"value": …}
_FAILED = "_error"  # what produce_batch adds to records that it did not queue
_STATISTICS_MS = 1000
_LISTEN_S = 0.1
_PURGE_S = 1.0  # what was purged is told at once
_FIRST_LOOK_S = 1.0
_REFUSED = {confluent.KafkaError._AUTHENTICATION}
_SILENT = {confluent.KafkaError._TRANSPORT, confluent.KafkaError._TIMED_OUT}
_COUNTED = (int, float)


class BulkSender:
    """A producer that is told records in pieces."""

    def __init__(
        self, settings: Settings, *, with_statistics: bool = False, with_sizes: bool = False
    ) -> None:
        self._where = str(settings.get("bootstrap.servers", ""))
        self.latencies_s: list[float] = []  # of answered records, until `taken`
        self.size_bytes = 0  # of their values, if `with_sizes`
        self.failed = 0
        self.reason = ""
        self.hint = ""
        self._with_sizes = with_sizes
        self.statistics: dict[str, Any] = {}
        self._with_statistics = with_statistics
        extra = _statistics(self.statistics) if with_statistics else {}
        self._inquiry = _Inquiry(self._where)
        used = {**settings, **extra, "error_cb": self._inquiry.heard}
        self._producer = _made(confluent.Producer, used, self._where)

    def check(self, topic: str, timeout_s: float, *, all_led: bool = False) -> int:
        """How many partitions a topic has; raises unless it is there and this user may see it.

        One of them must have a leader, or all.
        """
        return self._inquiry.partitions(self._producer, topic, timeout_s, all_led=all_led)

    def queue(self, topic: str, piece: Piece, late_s: float) -> Piece:
        """Queue records that have waited so long already; gives those that found no room."""
        heard = self._heard(late_s)
        queued = self._insist(lambda: self._producer.produce_batch(topic, piece, on_delivery=heard))
        if queued == len(piece):
            return []
        left = [record for record in piece if _FAILED in record]
        for record in left:
            error: Any = record.pop(_FAILED)
            if error.code() != confluent.KafkaError._QUEUE_FULL:
                self.serve(0)  # why it cannot go on is told there, once
                raise explained(error, f"writing to '{topic}'", self._where)
        return left

    def taken(self) -> list[float]:
        """The latencies of records that were answered since the last time."""
        heard = self.latencies_s[:]
        self.latencies_s.clear()  # the same list: callbacks under way hold its `append`
        return heard

    def serve(self, timeout_s: float) -> None:
        """Wait for answers."""
        self._insist(lambda: self._producer.poll(timeout_s))

    def flush(self, timeout_s: float) -> int:
        """Send what is queued; gives how many records are left unanswered."""
        return int(self._insist(lambda: self._producer.flush(timeout_s)))

    def settle(self, timeout_s: float) -> int:
        """Wait until all is answered, with nothing to linger for; gives how many records are left.

        Heard in turns: `flush` may lose why the driver gives up, to an answer that comes along.
        """
        deadline = Deadline(timeout_s)
        while len(self._producer) and not deadline.passed:
            self.serve(min(_LISTEN_S, deadline.remaining_s()))
        return len(self._producer)

    def counted(self) -> dict[str, Any]:
        """What the driver counted, which it tells every second; a shorter run waits for it."""
        deadline = Deadline(5 * _STATISTICS_MS / 1000)
        while self._with_statistics and not self.statistics and not deadline.passed:
            self.serve(_LISTEN_S)
        return dict(self.statistics)

    def begin_transactions(self, timeout_s: float) -> None:
        """Become the only producer of the transactional id."""
        self._insist(lambda: self._producer.init_transactions(timeout_s))

    def begin(self) -> None:
        """Begin a transaction."""
        self._insist(self._producer.begin_transaction)

    def commit(self, timeout_s: float) -> None:
        """Commit what was sent since `begin`."""
        self._insist(lambda: self._producer.commit_transaction(timeout_s))

    def close(self) -> None:
        """End it; what was not answered is given up."""
        self._producer.purge()
        with suppress(confluent.KafkaException):  # that it cannot go on was told before
            self._producer.flush(_PURGE_S)

    def _heard(self, late_s: float) -> Callable[[Any, Any], None]:
        note = self.latencies_s.append

        def heard(error: Any, message: Any) -> None:
            if error is None:
                note(message.latency() + late_s)
            else:
                self._refused(error, message)

        def heard_with_size(error: Any, message: Any) -> None:
            if error is None:
                self.size_bytes += len(message)
            heard(error, message)

        return heard_with_size if self._with_sizes else heard

    def _refused(self, error: Any, message: Any) -> None:
        self.failed += 1
        if not self.reason:
            said = explained(error, f"writing to '{message.topic()}'", self._where)
            self.reason, self.hint = str(said), said.hint

    def _insist(self, call: Callable[[], Any]) -> Any:
        try:
            try:
                return call()
            except SystemError:  # it has given up, and lost the reason to an answer, which has it too
                return call()
        except confluent.KafkaException as error:
            raise explained(error.args[0], "writing", self._where) from error


class BulkReader:
    """A consumer whose records are only counted."""

    def __init__(self, settings: Settings, *, with_statistics: bool = False) -> None:
        self._where = str(settings.get("bootstrap.servers", ""))
        self.statistics: dict[str, Any] = {}
        extra = _statistics(self.statistics) if with_statistics else {}
        self._inquiry = _Inquiry(self._where)
        used = {**settings, **extra, "error_cb": self._inquiry.heard}
        self._consumer = _made(confluent.Consumer, used, self._where)
        self._in_group = False

    def check(self, topics: Sequence[str], timeout_s: float) -> None:
        """Raise unless the cluster answers, and has every topic that is named and no regular expression."""
        for topic in topics:
            if topic.startswith("^"):
                self._inquiry.asked(self._consumer, None, "looking for topics", timeout_s)
            else:
                self._inquiry.partitions(self._consumer, topic, timeout_s)

    def check_leaders(self, topics: Sequence[str], timeout_s: float) -> None:
        """Raise unless every partition of the topics that `check` looks for has a leader that answers."""
        self.check(topics, timeout_s)
        for topic in topics:
            if not topic.startswith("^"):
                count = self._inquiry.partitions(self._consumer, topic, timeout_s, all_led=True)
                self._ends(topic, count, timeout_s)

    def subscribe(self, topics: Sequence[str], came: Callable[[], None], went: Callable[[], None]) -> None:
        """Read topics as a member of the group; a name that begins with ^ is a regular expression."""
        self._in_group = True
        self._consumer.subscribe(
            list(topics), on_assign=lambda *_: came(), on_revoke=lambda *_: went(), on_lost=lambda *_: went()
        )

    def assign_ends(self, topic: str, partitions: int, timeout_s: float) -> None:
        """Read a topic from where it ends now, without a group's say."""
        # Asked, not left to the first fetch: a record written meanwhile would never be seen.
        self._consumer.assign(self._ends(topic, partitions, timeout_s))

    def _ends(self, topic: str, partitions: int, timeout_s: float) -> list[confluent.TopicPartition]:
        places = [confluent.TopicPartition(topic, index) for index in range(partitions)]
        try:
            for place in places:
                place.offset = self._consumer.get_watermark_offsets(place, timeout_s)[1]
        except confluent.KafkaException as error:
            raise explained(error.args[0], f"asking where '{topic}' ends", self._where) from error
        return places

    def take(self, most: int, timeout_s: float) -> tuple[int, int]:
        """How many records came within the time, and how many bytes their keys and values have."""
        records, size_bytes = 0, 0
        for message in self._messages(most, timeout_s):
            key = message.key()
            records += 1
            size_bytes += len(message) + (len(key) if key else 0)
        return records, size_bytes

    def next_value(self, timeout_s: float) -> bytes | None:
        """The value of the next record; None if none came in time."""
        deadline = Deadline(timeout_s)
        while not deadline.passed:  # what came may be a remark, not a record
            for message in self._messages(1, deadline.remaining_s()):
                value: bytes = message.value()
                return value
        return None

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _messages(self, most: int, timeout_s: float) -> list[Any]:
        try:
            got = self._consumer.consume(most, timeout_s)
        except confluent.KafkaException as refusal:
            raise explained(refusal.args[0], "reading", self._where) from refusal
        whole = [message for message in got if message.error() is None]
        for message in got if len(whole) < len(got) else ():
            error = message.error()
            if not self._in_group and error.code() == confluent.KafkaError.GROUP_AUTHORIZATION_FAILED:
                continue  # librdkafka looks for the group's coordinator, whether it is needed or not
            if error is not None and (error.fatal() or (error.code() > 0 and not error.retriable())):
                raise explained(error, "reading", self._where)
        return whole


class _Inquiry:
    """Asks for topics, and says why there was no answer: what librdkafka itself gives is only that."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._told: Any = None  # what was last said of a connection

    def heard(self, error: Any) -> None:
        """Hear of a connection's trouble; that all have some says nothing more."""
        if error.code() != confluent.KafkaError._ALL_BROKERS_DOWN:
            self._told = error

    def partitions(self, client: Any, topic: str, timeout_s: float, *, all_led: bool = False) -> int:
        """How many partitions a topic has; one of them must have a leader, or all, within the time."""
        what = f"looking for topic '{topic}'"
        deadline, without = Deadline(timeout_s), list[int]()
        while not without or not deadline.passed:
            try:
                answer = self.asked(client, topic, what, max(_LISTEN_S, deadline.remaining_s()))
            except KafkaError:
                if without:
                    break  # there was too little time for another answer, and the one before said more
                raise
            found = answer.topics[topic]
            if found.error is not None:
                raise explained(found.error, what, self._where)
            without = [index for index, one in found.partitions.items() if one.leader < 0]
            if not without or (not all_led and len(without) < len(found.partitions)):
                return len(found.partitions)
            client.poll(_LISTEN_S)  # a topic that was just made has none for a moment
        said = f"partition {min(without)} has no leader"
        raise codes.error_for(codes.LEADER_NOT_AVAILABLE, said, what, self._where)

    def asked(self, client: Any, topic: str | None, what: str, timeout_s: float) -> Any:
        """What the cluster says of a topic, or of all."""
        deadline, turn_s = Deadline(timeout_s), _FIRST_LOOK_S
        while True:
            try:
                return client.list_topics(topic, min(turn_s, max(_LISTEN_S, deadline.remaining_s())))
            except confluent.KafkaException as error:
                client.poll(0)  # troubles are only told from there
                # librdkafka would try a password that was refused again and again.
                is_refused = self._told is not None and self._told.code() in _REFUSED
                if is_refused or deadline.passed:
                    raise self._failure(error.args[0], what, timeout_s) from error
            turn_s *= 2  # the answer itself may take long

    def _failure(self, error: Any, what: str, timeout_s: float) -> KafkaError:
        """Why there was no answer; if no connection had trouble, the cluster said nothing at all."""
        if self._told is None and error.code() in _SILENT:
            return KafkaError(
                f"{what}: no answer within {timeout_s:g} s",
                code=error.name().lstrip("_"),
                retriable=True,
                where=self._where,
                hint="is the site up? twinlog status",
            )
        return explained(self._told or error, what, self._where)


def _made(kind: Callable[..., Any], settings: Mapping[str, Any], where: str) -> Any:
    try:
        return kind(dict(settings), logger=LOG)
    except confluent.KafkaException as error:
        raise UsageError(
            f"librdkafka does not take these settings: {error.args[0].str()}",
            where=where,
            hint="is the property spelled as Kafka's clients spell it?",
        ) from error


def _statistics(kept: dict[str, Any]) -> dict[str, Any]:
    def told(text: str) -> None:
        kept.clear()
        kept.update(_flat(json.loads(text), ""))

    return {"statistics.interval.ms": _STATISTICS_MS, "stats_cb": told}


def _flat(told: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in told.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}:")
        elif isinstance(value, _COUNTED) and not isinstance(value, bool):
            found[f"{prefix}{name}"] = value
    return found
