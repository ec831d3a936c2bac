"""Real client programs, each with the file that `twinlog client` printed for it, unchanged.

Every test writes records of its own mark to `orders` at both sites and reads all of them back. The
sites go side by side: what takes the time is the start of a JVM.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer

from tests.cluster import programs
from tests.cluster.programs import (
    Console,
    Enough,
    Kcat,
    Printer,
    at_both_sites,
    lines_of,
    newer_librdkafka,
    read_until,
    run,
    spark_options,
    succeeded,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster

TOPIC = "orders"
RECORDS = 20
# What kafka-python calls the settings of librdkafka that it has under another name; dots become underscores.
KAFKA_PYTHON_NAMES = {
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "message.max.bytes": "max_request_size",
    "socket.timeout.ms": "request_timeout_ms",
}


@pytest.fixture(scope="session")
def console_2_3_0() -> Console:
    return programs.console_2_3_0()


@pytest.fixture(scope="session")
def kcat() -> str:
    return programs.kcat()


class Batch:
    """Records that no other test writes."""

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex[:12]
        self.records = [f"{self.mark}-{number}-é".encode() for number in range(RECORDS)]

    def group(self, user: str) -> str:
        """A group that the user may read in and nobody has read in."""
        return f"{user}-{self.mark}"

    def of(self, read: Sequence[bytes]) -> list[bytes]:
        """Which of the records that were read are of this batch."""
        return [record for record in read if record.startswith(self.mark.encode())]

    @property
    def enough(self) -> Enough:
        """True once all of it was read."""
        return lambda read: len(self.of(read)) >= RECORDS

    def is_whole(self, read: Sequence[bytes]) -> bool:
        """True when each record was read once, in whatever order partitions came."""
        return sorted(self.of(read)) == sorted(self.records)


def write_and_read(tools: Console, file: Path, user: str) -> None:
    """Through one client file, with the console tools."""
    batch = Batch()
    succeeded(tools.produce(file, TOPIC, batch.records))
    assert batch.is_whole(tools.consume(file, TOPIC, batch.group(user), batch.enough))


@pytest.mark.parametrize(
    ("user", "store"), [("app", "pem"), ("app", "pkcs12"), ("app", "jks"), ("ledger", "pem")]
)
def test_console_tools_write_and_read_at_both_sites(
    console: Console, printed: Printer, user: str, store: str
) -> None:
    at_both_sites(lambda site: write_and_read(console, printed(user, site, "java", store), user))


@pytest.mark.parametrize(("user", "store"), [("app", "jks"), ("ledger", "pkcs12")])
def test_console_tools_of_2_3_0_write_and_read_at_both_sites(
    console_2_3_0: Console, printed: Printer, user: str, store: str
) -> None:
    at_both_sites(lambda site: write_and_read(console_2_3_0, printed(user, site, "java", store), user))


def test_a_file_with_certificates_inside_says_that_it_is_not_for_2_3_0_and_gives_it_no_trust(
    console_2_3_0: Console, printed: Printer
) -> None:
    file = printed("app", "a", "java", "pem")
    assert "since 2.7 (older ones: --store pkcs12)" in file.read_text().splitlines()[0]
    ended = console_2_3_0.produce(file, TOPIC, [b"never sent"])
    assert b"SSL handshake failed" in ended.stderr


def test_kcat_of_the_machine_writes_and_reads_with_a_certificate_at_both_sites(
    kcat: str, printed: Printer
) -> None:
    at_both_sites(lambda site: kcat_writes_and_reads(Kcat(kcat), printed("ledger", site, "kcat"), "ledger"))


@pytest.mark.parametrize("user", ["app", "old"])
def test_kcat_on_the_library_that_its_file_asks_for_writes_and_reads_with_a_password_at_both_sites(
    kcat: str, printed: Printer, user: str
) -> None:
    newer = Kcat(kcat, newer_librdkafka())
    assert "librdkafka since 2.6.1" in printed(user, "a", "kcat").read_text().splitlines()[0]
    at_both_sites(lambda site: kcat_writes_and_reads(newer, printed(user, site, "kcat"), user))


def kcat_writes_and_reads(kcat: Kcat, file: Path, user: str) -> None:
    """Through one client file, reading by partitions and in a group."""
    batch = Batch()
    kcat.run(file, "-P", "-t", TOPIC, text=b"\n".join(batch.records))
    to_the_end = ["-q", "-C", "-t", TOPIC, "-o", "beginning", "-e"]
    assert batch.is_whole(kcat.run(file, *to_the_end).splitlines())
    in_a_group = ["-q", "-u", "-X", "auto.offset.reset=earliest", "-G", batch.group(user), TOPIC]
    assert batch.is_whole(kcat.read_until(batch.enough, file, *in_a_group))


@pytest.mark.parametrize("user", ["app", "old", "ledger"])
def test_the_printed_python_program_writes_and_reads_at_both_sites(printed: Printer, user: str) -> None:
    def check(site: str) -> None:
        batch, program = Batch(), [sys.executable, str(printed(user, site, "python"))]
        succeeded(run([*program, "produce", TOPIC], b"\n".join(batch.records)))
        assert batch.is_whole(read_until([*program, "consume", TOPIC, batch.group(user)], batch.enough))

    at_both_sites(check)


@pytest.mark.parametrize("user", ["app", "ledger"])
def test_confluent_kafka_with_the_lines_of_a_file_writes_and_reads_at_both_sites(
    printed: Printer, user: str
) -> None:
    def check(site: str) -> None:
        batch, settings = Batch(), lines_of(printed(user, site, "librdkafka"))
        failures: list[object] = []
        producer = Producer(settings)
        for record in batch.records:
            producer.produce(TOPIC, record, on_delivery=lambda error, _: failures.append(error))
        assert producer.flush(programs.RUN_TIMEOUT_S) == 0
        assert failures == [None] * RECORDS
        consumer = Consumer(
            settings | {"group.id": batch.group(user), "auto.offset.reset": "earliest"}, logger=None
        )
        consumer.subscribe([TOPIC])
        read: list[bytes] = []
        while not batch.enough(read):
            message = consumer.poll(programs.RUN_TIMEOUT_S)
            assert message is not None, "nothing more came"
            if message.error():
                raise KafkaException(message.error())
            read.append(message.value())
        consumer.close()
        assert batch.is_whole(read)

    at_both_sites(check)


@pytest.mark.parametrize("user", ["app", "old", "ledger"])
def test_kafka_python_with_the_lines_of_a_file_writes_and_reads_at_both_sites(
    printed: Printer, user: str
) -> None:
    def check(site: str) -> None:
        batch, settings = Batch(), lines_of(printed(user, site, "librdkafka"))
        producer = KafkaProducer(**kafka_python_settings(settings, KafkaProducer.DEFAULT_CONFIG))
        sent = [producer.send(TOPIC, record) for record in batch.records]
        for one in sent:
            one.get(timeout=programs.RUN_TIMEOUT_S)
        producer.close()
        consumer = KafkaConsumer(
            TOPIC,
            group_id=batch.group(user),
            auto_offset_reset="earliest",
            consumer_timeout_ms=programs.RUN_TIMEOUT_S * 1000,
            **kafka_python_settings(settings, KafkaConsumer.DEFAULT_CONFIG),
        )
        read: list[bytes] = []
        for record in consumer:
            read.append(record.value)
            if batch.enough(read):
                break
        consumer.close()
        assert batch.is_whole(read)

    at_both_sites(check)


@pytest.mark.parametrize(("user", "store"), [("app", "pem"), ("ledger", "pkcs12")])
def test_spark_writes_and_reads_at_both_sites(
    spark: SparkSession, printed: Printer, user: str, store: str
) -> None:
    def check(site: str) -> None:
        batch, options = Batch(), spark_options(printed(user, site, "spark", store))
        frame = spark.createDataFrame([(record,) for record in batch.records], "value binary")
        frame.write.format("kafka").options(**options).option("topic", TOPIC).save()
        table = spark.read.format("kafka").options(**options).option("subscribe", TOPIC).load()
        assert batch.is_whole([bytes(row.value) for row in table.select("value").collect()])

    at_both_sites(check)


def test_spark_reads_a_stream_with_the_printed_options(
    spark: SparkSession, printed: Printer, tmp_path: Path
) -> None:
    batch, options = Batch(), spark_options(printed("app", "a", "spark"))
    frame = spark.createDataFrame([(record,) for record in batch.records], "value binary")
    frame.write.format("kafka").options(**options).option("topic", TOPIC).save()
    stream = spark.readStream.format("kafka").options(**options).option("subscribe", TOPIC)
    query = (
        stream.option("startingOffsets", "earliest")
        .load()
        .select("value")
        .writeStream.format("memory")
        .queryName("orders_of_a_stream")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(programs.RUN_TIMEOUT_S)
    assert batch.is_whole([bytes(row.value) for row in spark.table("orders_of_a_stream").collect()])


def kafka_python_settings(settings: dict[str, str], known: Collection[str]) -> dict[str, object]:
    """The same for kafka-python: what it has, by its names, numbers as numbers."""
    found = {KAFKA_PYTHON_NAMES.get(key, key.replace(".", "_")): value for key, value in settings.items()}
    numbers = {key: int(value) for key, value in found.items() if value.isdigit()}
    return {key: value for key, value in (found | numbers).items() if key in known} | {
        "bootstrap_servers": settings["bootstrap.servers"].split(",")
    }
