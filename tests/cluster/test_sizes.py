"""The biggest batch that the sites take, through printed client files, and one byte more.

A batch of one uncompressed record: 61 bytes of its own, and for a record of this size 13 around the
value. Its size is read from the segments of every copy on disk, not taken from what a client says.
"""

from __future__ import annotations

import struct
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.cluster.conftest import Bus, Site
from tests.cluster.programs import (
    RUN_TIMEOUT_S,
    Console,
    Printer,
    at_both_sites,
    lines_of,
    run,
    spark_options,
)
from twinlog import Done, NotDone, Outgoing
from twinlog import Producer as TwinlogProducer
from twinlog.wire import canary, offsets
from twinlog.wire.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster

TOPIC = "big"
USER = "app"
BIGGEST_BATCH = 15_728_640
TOO_LARGE = "message.max.bytes of the site, or max.message.bytes of the topic, is smaller"
BIGGEST_VALUE = BIGGEST_BATCH - 61 - 13
COPIES = 3
COPIES_TIMEOUT_S = 60  # acknowledged by all in-sync copies; one that fell behind comes back within this
BATCH_START = struct.Struct(">qi")  # base offset, and the length of what follows


def test_java_writes_and_reads_the_biggest_batch_and_is_refused_one_byte_more(
    bus: Bus, console: Console, printed: Printer
) -> None:
    def check(site: str) -> None:
        file, value, offset = printed(USER, site, "java"), biggest_value(), end_of(bus, site)
        ended = console.produce(file, TOPIC, [value, value + b"x"])
        assert b"max.request.size" in ended.stderr + ended.stdout, ended.stderr[-2000:]
        assert end_of(bus, site) == offset + 1
        assert console.read_one(file, TOPIC, offset) == value
        assert_batch_on_disk(bus, site, offset)

    at_both_sites(check)


def test_librdkafka_writes_and_reads_the_biggest_batch_and_is_refused_one_byte_more(
    bus: Bus, printed: Printer
) -> None:
    def check(site: str) -> None:
        settings, value, offset = (
            lines_of(printed(USER, site, "librdkafka")),
            biggest_value(),
            end_of(bus, site),
        )
        errors: list[KafkaError | None] = []
        producer = Producer(settings)
        for one in (value, value + b"x"):
            producer.produce(TOPIC, one, on_delivery=lambda error, _: errors.append(error))
            assert producer.flush(RUN_TIMEOUT_S) == 0
        assert [error and error.code() for error in errors] == [None, KafkaError.MSG_SIZE_TOO_LARGE]
        (said,) = [error.str() for error in errors if error is not None]
        assert said_beside(printed(USER, site, "librdkafka"), said)
        assert end_of(bus, site) == offset + 1
        consumer = Consumer(settings | {"group.id": f"{USER}-sizes"})
        consumer.assign([TopicPartition(TOPIC, 0, offset)])
        message = consumer.poll(RUN_TIMEOUT_S)
        assert message is not None and message.error() is None and message.value() == value
        consumer.close()
        assert_batch_on_disk(bus, site, offset)

    at_both_sites(check)


def said_beside(file: Path, said: str) -> bool:
    """True if a printed file explains what librdkafka says of a record that is too large."""
    text = said.rsplit(":", maxsplit=1)[-1].strip()
    (explained,) = [line for line in file.read_text().splitlines() if text in line]
    return all(
        name in explained for name in ("max.message.bytes of the topic", "message.max.bytes of the site")
    )


def test_the_library_and_produce_name_the_settings_that_refuse_one_byte_more(
    bus: Bus, tmp_path: Path
) -> None:
    value, active = biggest_value(), bus.home().state().active
    offset = end_of(bus, active)
    with TwinlogProducer.of_bus(bus.file, USER, timeout_s=RUN_TIMEOUT_S) as producer:
        done, refused = producer.send_many([Outgoing(TOPIC, value), Outgoing(TOPIC, value + b"x")])
    assert done == Done(0, offset)
    assert isinstance(refused, NotDone) and refused.hint == TOO_LARGE
    file = tmp_path / "value"
    file.write_bytes(value + b"x")
    ended = bus.run("produce", TOPIC, "--user", USER, "--whole-file", str(file))
    assert ended.returncode == 1 and f"hint: {TOO_LARGE}" in ended.stderr, ended.stderr
    assert end_of(bus, active) == offset + 1


def test_the_printed_python_program_names_the_setting_that_refuses_one_byte_more(
    bus: Bus, printed: Printer
) -> None:
    def check(site: str) -> None:
        program, value, offset = printed(USER, site, "python"), biggest_value(), end_of(bus, site)
        ended = run([sys.executable, str(program), "produce", TOPIC], value + b"\n" + value + b"x\n")
        assert ended.returncode == 1
        assert b"message.max.bytes of the site, max.message.bytes of the topic" in ended.stderr
        assert end_of(bus, site) == offset + 1
        assert_batch_on_disk(bus, site, offset)

    at_both_sites(check)


def test_spark_writes_and_reads_the_biggest_batch_and_is_refused_one_byte_more(
    bus: Bus, spark: SparkSession, printed: Printer
) -> None:
    def check(site: str) -> None:
        options, value, offset = (
            spark_options(printed(USER, site, "spark")),
            biggest_value(),
            end_of(bus, site),
        )
        write(spark, options, value)
        with pytest.raises(Exception, match=r"max\.request\.size"):
            write(spark, options, value + b"x")
        assert end_of(bus, site) == offset + 1
        table = spark.read.format("kafka").options(**options).option("subscribe", TOPIC)
        place = f'{{"{TOPIC}": {{"0": %d}}}}'
        frame = table.option("startingOffsets", place % offset).option("endingOffsets", place % (offset + 1))
        assert [bytes(row.value) for row in frame.load().select("value").collect()] == [value]
        assert_batch_on_disk(bus, site, offset)

    at_both_sites(check)


def write(spark: SparkSession, options: dict[str, str], value: bytes) -> None:
    """One record through Spark's sink."""
    frame = spark.createDataFrame([(value,)], "value binary").coalesce(1)
    frame.write.format("kafka").options(**options).option("topic", TOPIC).save()


def test_a_site_itself_takes_the_biggest_batch_and_refuses_one_byte_more(bus: Bus) -> None:
    def check(site: str) -> None:
        with Cluster(Site(bus, site).access(USER)) as cluster:
            done = canary.write(cluster, TOPIC, 0, bytes(BIGGEST_VALUE))
            assert isinstance(done, canary.Done), done
            refused = canary.write(cluster, TOPIC, 0, bytes(BIGGEST_VALUE + 1))
            assert isinstance(refused, canary.NotDone), refused
            assert "max.message.bytes" in refused.hint
        assert_batch_on_disk(bus, site, done.offset)

    at_both_sites(check)


def biggest_value() -> bytes:
    """A value that fills the biggest batch and that no other test writes."""
    return uuid.uuid4().hex.encode().ljust(BIGGEST_VALUE, b"x")


def end_of(bus: Bus, site: str) -> int:
    """Where the next record of the topic will stand."""
    with Cluster(Site(bus, site).access()) as cluster:
        return offsets.end_offsets(cluster, [(TOPIC, 0)])[TOPIC, 0]


def assert_batch_on_disk(bus: Bus, site: str, offset: int) -> None:
    """Every copy holds a batch of exactly the biggest size at the offset."""
    wanted = [BIGGEST_BATCH] * COPIES
    deadline = time.monotonic() + COPIES_TIMEOUT_S
    while (found := batch_sizes(bus, site, offset)) != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    assert found == wanted


def batch_sizes(bus: Bus, site: str, offset: int) -> list[int]:
    """The size of the batch at an offset, in each copy that has it."""
    logs = [log for node in bus.home().layout(site).brokers for data in node.data for log in segments(data)]
    return [size for log in logs for start, size in batches(log) if start == offset]


def segments(data: Path) -> list[Path]:
    """The segments of the topic's one partition in a data directory."""
    return sorted(data.glob(f"{TOPIC}-0/*.log"))


def batches(log: Path) -> Iterator[tuple[int, int]]:
    """First offset and whole size of each batch in a segment."""
    with log.open("rb") as file:
        while len(start := file.read(BATCH_START.size)) == BATCH_START.size:
            offset, length = BATCH_START.unpack(start)
            yield offset, BATCH_START.size + length
            file.seek(length, 1)
