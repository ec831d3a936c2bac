"""The load of a fault run: many producers side by side on one partition, and some on others.

librdkafka's run in threads here, Java's in one program (`Load.java`), and the client library writes with
acks=twin. Idempotent, plain and transactional producers are interleaved; some transactions are aborted,
and some batches are larger than the topic takes, so that a chain of sequences is broken off now and then.
What was acknowledged is remembered with its place. A producer that gives up is replaced by a new one.
"""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.faults.lines import value_of
from tests.faults.world import ACTIVE, CROWD, LARGEST_BYTES, PARTITIONS, PROMISED, SPREAD, USER, World
from twinlog import Done, Outcome
from twinlog import Producer as TwinProducer
from twinlog.durable import write_secret
from twinlog.errors import TwinlogError

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
REFUSED_EVERY = 40  # turns of a writer
ABORTED_EVERY = 4  # transactions
WAIT_S = 30.0
END_TIMEOUT_S = 180.0
TWIN_EVERY_S = 0.1
JAVA = Path(__file__).parent / "Load.java"
LOG = logging.getLogger("tests.faults.clients")
LOG.setLevel(logging.CRITICAL)  # librdkafka tells of every connection that is closed

Acknowledged = dict[str, tuple[str, int, int]]  # by value: topic, partition, offset


class Load:
    """All writers of one slice."""

    def __init__(self, world: World, name: str, seed: int) -> None:
        self.acknowledged: Acknowledged = {}  # at the active
        self.promised: Acknowledged = {}  # with acks=twin
        self.replaced = 0  # producers that gave up
        self._world = world
        self._name = name
        self._seed = seed
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._java: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begin to write."""
        work: list[Callable[[], None]] = [
            partial(self._write, "rd-1", 1, True),
            partial(self._write, "rd-2", 2, True),
            partial(self._write, "rd-plain", 3, False),
            partial(self._transact, "rd-t1", 4),
            partial(self._transact, "rd-t2", 5),
            self._write_to_twin,
            self._listen,
        ]
        self._java = self._start_java()
        self._threads = [threading.Thread(target=one, daemon=True) for one in work]
        for thread in self._threads:
            thread.start()

    @property
    def has_begun(self) -> bool:
        """True when writers of every kind have succeeded."""
        who = {value.rpartition(":")[0].rpartition("-")[2] for value in list(self.acknowledged)}
        return bool(self.promised) and who >= {"1", "2", "plain", "t", "t1", "t2"}

    def stop(self) -> None:
        """Write no more; what was sent is waited for."""
        self._stop.set()
        if self._java is not None and self._java.stdin is not None:
            self._java.stdin.close()
        for thread in self._threads:
            thread.join(END_TIMEOUT_S)
        if any(thread.is_alive() for thread in self._threads):
            raise TimeoutError(f"the load does not end within {END_TIMEOUT_S:g} s")

    def kill(self) -> None:
        """End what would outlive this process."""
        self._stop.set()
        if self._java is not None:
            self._java.kill()

    # librdkafka

    def _producer(self, number: int, **more: Any) -> Producer:
        settings = {
            **self._world.home.user_access(USER, ACTIVE).librdkafka(),
            "acks": "all",
            "linger.ms": 5,
            "compression.type": CODECS[number % len(CODECS)],
            "socket.timeout.ms": 10_000,
            "message.timeout.ms": int(WAIT_S * 4000),
            **more,
        }
        return Producer(settings, logger=LOG)

    def _write(self, who: str, number: int, idempotent: bool) -> None:
        random, name, numbers = Random(self._seed + number), self._name + who, count()
        producer = self._producer(number, **{"enable.idempotence": idempotent})
        told = partial(_delivered, self.acknowledged)
        for turn in count():
            if self._stop.wait(random.uniform(0.05, 0.4)):
                break
            try:
                for _ in range(random.randint(1, 6)):
                    _send(producer, name, next(numbers), random, told)
                if turn % REFUSED_EVERY == REFUSED_EVERY - 1:
                    producer.produce(CROWD, bytes(LARGEST_BYTES + random.randint(1000, 2000)))
                producer.poll(0)
            except BufferError:
                producer.poll(1.0)
            except KafkaException:
                self.replaced += 1
                producer = self._producer(number, **{"enable.idempotence": idempotent})
        producer.flush(WAIT_S * 2)

    def _transact(self, who: str, number: int) -> None:
        random, name, numbers = Random(self._seed + number), self._name + who, count()
        producer: Producer | None = None
        for turn in count():
            if self._stop.wait(random.uniform(0.05, 0.5)):
                break
            try:
                producer = producer if producer is not None else self._prepared(name, number)
                producer.begin_transaction()
                sent: Acknowledged = {}
                for _ in range(random.randint(1, 5)):
                    _send(producer, name, next(numbers), random, partial(_delivered, sent))
                if turn % ABORTED_EVERY == ABORTED_EVERY - 1:
                    producer.flush(WAIT_S)  # else what is still queued would never be sent
                    producer.abort_transaction(WAIT_S)
                else:
                    producer.commit_transaction(WAIT_S)
                    self.acknowledged.update(sent)
            except (KafkaException, BufferError):
                # What it left open is aborted when the next one takes its name over.
                self.replaced += 1
                producer = None
        for _ in range(3):
            try:
                producer = producer if producer is not None else self._prepared(name, number)
                return
            except KafkaException:
                continue

    def _prepared(self, name: str, number: int) -> Producer:
        producer = self._producer(
            number, **{"transactional.id": name, "message.timeout.ms": int(WAIT_S * 1000)}
        )
        producer.init_transactions(WAIT_S)
        return producer

    # The library

    def _write_to_twin(self) -> None:
        name, numbers = f"{self._name}twin", count()
        with TwinProducer.of_bus(self._world.home.file, USER, acks="twin", timeout_s=WAIT_S * 2) as producer:
            while not self._stop.wait(TWIN_EVERY_S):
                number = next(numbers)
                value = value_of(PROMISED, f"{name}:{number}")
                try:
                    future = producer.send(
                        PROMISED, value.encode(), b"k", partition=number % PARTITIONS[PROMISED]
                    )
                except TwinlogError:
                    continue
                future.add_done_callback(partial(self._promise_ended, value))

    def _promise_ended(self, value: str, ended: Future[Outcome]) -> None:
        match ended.result():
            case Done(partition, offset, twin=True):
                self.promised[value] = (PROMISED, partition, offset)
            case _:
                pass  # nothing was promised

    # Java

    def _start_java(self) -> subprocess.Popen[str]:
        file = self._world.directory / "load.properties"
        write_secret(file, self._world.run("client", USER, "--site", ACTIVE, "--format", "java"))
        # JVMs with an archive cannot compile: without it.
        class_path = ":".join(map(str, self._world.kafka.class_path))
        java = [str(self._world.kafka.java.binary), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        with (self._world.directory / "load-java.log").open("a") as log:
            return subprocess.Popen(
                [
                    *java,
                    "-cp",
                    class_path,
                    str(JAVA),
                    str(file),
                    self._name,
                    str(LARGEST_BYTES),
                    CROWD,
                    SPREAD,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def _listen(self) -> None:
        assert self._java is not None
        assert self._java.stdout is not None
        for line in self._java.stdout:
            value, topic, partition, offset = line.rstrip("\n").split("\t")
            self.acknowledged[value] = (topic, int(partition), int(offset))
        self._java.wait()


class Gap:
    """Makes long gaps: a transaction of many records in the crowded partition, aborted."""

    def __init__(self, world: World) -> None:
        self._world = world

    def make(self, length: int) -> tuple[int, int]:
        """Leave so many offsets without a record; gives the first and the last of them."""
        settings = self._world.home.user_access(USER, ACTIVE).librdkafka()
        more = {"transactional.id": "gap", "linger.ms": 20, "batch.size": LARGEST_BYTES // 2}
        producer = Producer({**settings, **more}, logger=LOG)
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        sent: Acknowledged = {}
        for number in range(length):
            producer.produce(CROWD, value_of(CROWD, f"gap:{number}"), on_delivery=partial(_delivered, sent))
            if number % 1000 == 0:
                producer.poll(0)
        producer.flush(WAIT_S)
        producer.abort_transaction(WAIT_S)
        places = [offset for _, _, offset in sent.values()]
        if len(places) < length:
            raise TimeoutError(f"{len(places)} of {length} records of a gap were written")
        return min(places), max(places)


def _send(producer: Producer, name: str, number: int, random: Random, told: Callable[..., None]) -> None:
    """One record, two times of three in the crowded partition."""
    topic = CROWD if random.randrange(3) else SPREAD
    producer.produce(
        topic,
        value_of(topic, f"{name}:{number}"),
        key=f"k{number % 7}",
        headers=[("pad", b"x" * random.randrange(300)), ("none", None)],
        on_delivery=told,
    )


def _delivered(acknowledged: Acknowledged, error: KafkaError | None, message: Message) -> None:
    value, topic, partition, offset = message.value(), message.topic(), message.partition(), message.offset()
    if error is not None or value is None or topic is None or partition is None or offset is None:
        return
    if offset >= 0:  # of a duplicate that the broker has long forgotten nobody knows the place
        acknowledged[value.decode()] = (topic, partition, offset)
