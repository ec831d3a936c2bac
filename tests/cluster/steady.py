"""A steady load of ordinary clients, and the comparison of every record when it is over.

For tests that restart, replace, add and remove brokers, and move partitions. Idempotent producers write
with acks=all; a group of consumers reads along; somebody looks all the time how many copies are in sync.
At the end the whole topic is read: what was acknowledged must stand there once, where the broker said.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

import confluent_kafka

from twinlog.errors import TwinlogError
from twinlog.wire import topics
from twinlog.wire.access import Access
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.deadlines import Deadline

PAUSE_S = 0.02  # between records of one producer
LOOK_S = 0.1
LEAST_LOOKS_A_SECOND = 2  # of ten that are tried: brokers are restarted, and the machine is busy
BLIND_S = 5.0  # without an answer; as long as a broker's session in these tests, so a lost one is seen
COMMIT_EVERY = 25  # records
END_TIMEOUT_S = 120.0
Place = tuple[int, int]  # partition, offset


@dataclass
class Steady:
    """Clients at work on one topic."""

    user: Access
    admin: Access
    topic: str
    minimum: int
    producers: int = 2
    consumers: int = 2
    acknowledged: dict[str, Place] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    consumed: Counter[str] = field(default_factory=Counter)
    below_minimum: list[str] = field(default_factory=list)
    looked_s: list[float] = field(default_factory=list)  # with the beginning and the end
    _stop: threading.Event = field(default_factory=threading.Event)
    _read_on: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.looked_s.append(time.monotonic())
        work: list[tuple[Callable[[int], None], int]]
        work = [(self._write, number) for number in range(self.producers)]
        work += [(self._read, number) for number in range(self.consumers)]
        work.append((self._watch, 0))
        for task, number in work:
            thread = threading.Thread(
                target=task, args=(number,), name=f"{task.__name__}-{number}", daemon=True
            )
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        ended_s = time.monotonic()
        for thread in self._threads:
            if not thread.name.startswith("_read"):
                thread.join(END_TIMEOUT_S)
        self.looked_s.append(ended_s)
        deadline, pause = Deadline(END_TIMEOUT_S), threading.Event()
        while len(self.consumed) < len(self.acknowledged) and not deadline.passed:
            pause.wait(LOOK_S)
        self._read_on.set()
        for thread in self._threads:
            thread.join(END_TIMEOUT_S)

    def wait_for_more(self, count: int) -> None:
        """Wait until so many further writes were acknowledged and as many records read."""
        written, read = len(self.acknowledged) + count, len(self.consumed) + count
        deadline, pause = Deadline(END_TIMEOUT_S), threading.Event()
        while len(self.acknowledged) < written or len(self.consumed) < read:
            assert not deadline.passed, (
                f"{len(self.acknowledged)} written, {len(self.consumed)} read, refused: {self.refused[:3]}"
            )
            pause.wait(LOOK_S)

    def _write(self, number: int) -> None:
        settings = {"acks": "all", "enable.idempotence": True, "linger.ms": 5}
        settings |= {"delivery.timeout.ms": int(END_TIMEOUT_S * 1000)}
        producer = confluent_kafka.Producer(self.user.librdkafka() | settings)
        count = 0
        while not self._stop.wait(PAUSE_S):
            name = f"{number}-{count}"
            producer.produce(self.topic, name.encode(), key=name.encode(), on_delivery=self._note)
            producer.poll(0)
            count += 1
        producer.flush(END_TIMEOUT_S)

    def _note(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.refused.append(str(error))
            return
        name, partition, offset = message.value(), message.partition(), message.offset()
        assert name is not None and partition is not None and offset is not None
        self.acknowledged[name.decode()] = (partition, offset)

    def _read(self, _: int) -> None:
        settings = {"group.id": f"app-{self.topic}", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer(self.user.librdkafka() | settings | {"enable.auto.commit": False})
        consumer.subscribe([self.topic])
        uncommitted = 0
        try:
            while not self._read_on.is_set():
                message = consumer.poll(0.1)
                value = message.value() if message is not None and message.error() is None else None
                if value is not None:
                    self.consumed[value.decode()] += 1
                    uncommitted += 1
                if uncommitted >= COMMIT_EVERY:
                    uncommitted = 0
                    with suppress(
                        confluent_kafka.KafkaException
                    ):  # in a rebalance: who gets it reads it again
                        consumer.commit(asynchronous=True)
        finally:
            consumer.close()

    def _watch(self, _: int) -> None:
        # Short: while one broker is waited for that does not answer, nobody looks.
        patience = Patience(connect_s=0.5, request_s=1.0, total_s=1.0)
        with Cluster(self.admin, patience=patience) as cluster:
            while not self._stop.wait(LOOK_S):
                with suppress(TwinlogError):  # the broker that was asked is the one that is restarted
                    (found,) = topics.describe(cluster, [self.topic])
                    self.looked_s.append(time.monotonic())
                    self.below_minimum += [
                        f"{self.topic}-{part.index}: {part.isr}"
                        for part in found.partitions
                        if len(part.isr) < self.minimum
                    ]

    def in_the_log(self) -> dict[str, list[Place]]:
        """Every record of the topic with all places where it stands, read from its beginning to its end."""
        settings = {"group.id": "app-last-read", "enable.auto.commit": False}
        consumer = confluent_kafka.Consumer(self.user.librdkafka() | settings)
        found: dict[str, list[Place]] = {}
        try:
            partitions = consumer.list_topics(self.topic, timeout=END_TIMEOUT_S).topics[self.topic].partitions
            ends = {}
            for index in partitions:
                place = confluent_kafka.TopicPartition(self.topic, index)
                ends[index] = consumer.get_watermark_offsets(place, timeout=END_TIMEOUT_S)[1]
            consumer.assign([confluent_kafka.TopicPartition(self.topic, index, 0) for index in ends])
            left = {index for index, end in ends.items() if end > 0}
            deadline = Deadline(END_TIMEOUT_S)
            while left:
                assert not deadline.passed, f"partitions {sorted(left)} were not read to their ends"
                message = consumer.poll(0.5)
                if message is None or message.error() is not None:
                    continue
                partition, offset, value = message.partition(), message.offset(), message.value()
                assert partition is not None and offset is not None and value is not None
                found.setdefault(value.decode(), []).append((partition, offset))
                if offset >= ends[partition] - 1:
                    left.discard(partition)
        finally:
            consumer.close()
        return found

    def check(self) -> None:
        """Nothing lost, nothing repeated, nothing refused, never below the minimum, everything read."""
        assert self.refused == []
        assert self.below_minimum == []
        self._check_watch()
        log = self.in_the_log()
        lost = sorted(set(self.acknowledged) - set(log))
        assert lost == [], f"{len(lost)} of {len(self.acknowledged)} are lost: {lost[:5]}"
        repeated = {name: places for name, places in log.items() if len(places) > 1}
        assert repeated == {}
        elsewhere = {name: place for name, place in self.acknowledged.items() if log[name] != [place]}
        assert elsewhere == {}
        unread = sorted(set(self.acknowledged) - set(self.consumed))
        assert unread == [], f"{len(unread)} records were never handed to the group: {unread[:5]}"

    def _check_watch(self) -> None:
        """Somebody looked all the time: nothing can have been below the minimum for long and not be seen."""
        watched_s = self.looked_s[-1] - self.looked_s[0]
        looks = len(self.looked_s) - 2
        gap_s = max(later - earlier for earlier, later in pairwise(self.looked_s))
        assert gap_s <= BLIND_S, f"nobody looked for {gap_s:.1f} of {watched_s:.1f} s"
        assert looks >= watched_s * LEAST_LOOKS_A_SECOND, f"{looks} looks in {watched_s:.1f} s"
