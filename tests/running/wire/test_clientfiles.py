"""Client files at work: librdkafka with the printed settings, and the printed program."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from twinlog.wire.access import Access, Mechanism, Protocol
from twinlog.wire.clientfiles.tuning import Role, Tuning, librdkafka_tuning
from twinlog.wire.clientfiles.write import Client, Format, render
from twinlog.wire.stores import StoreType

CA = (Path(__file__).parents[2] / "unit" / "wire" / "data" / "ca.crt").read_text()
LARGE = Tuning(message_max_bytes=15_728_640)


@pytest.mark.parametrize("limit", [0, 1_048_588, 52_428_800, 99_000_000, 1_000_000_000, 2**31 - 1])
def test_librdkafka_takes_the_settings(limit: int) -> None:
    tuned = librdkafka_tuning(Tuning(limit))
    quiet = {"log_level": "0"}
    Producer({s.key: s.value for s in tuned if s.role is not Role.CONSUMER} | quiet)
    consumer = {s.key: s.value for s in tuned if s.role is not Role.PRODUCER}
    Consumer(consumer | quiet | {"group.id": "g"}).close()


def test_biggest_batch_passes_through_librdkafka_with_the_printed_settings() -> None:
    tuned = librdkafka_tuning(LARGE)
    quiet = {"log_level": "0"}
    producer = Producer(
        {s.key: s.value for s in tuned if s.role is not Role.CONSUMER}
        | quiet
        | {"test.mock.num.brokers": "1"}
    )
    addresses = [
        f"{broker.host}:{broker.port}" for broker in producer.list_topics(timeout=10).brokers.values()
    ]
    errors: list[object] = []
    value = b"x" * (15_728_640 - 74)  # 61 bytes for the batch, 13 for the record
    producer.produce("orders", value, on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    assert errors == [None]
    consumer = Consumer(
        {s.key: s.value for s in tuned if s.role is not Role.PRODUCER}
        | quiet
        | {"bootstrap.servers": ",".join(addresses), "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(30)
    assert message is not None and message.error() is None and message.value() == value
    consumer.close()


def test_python_program_says_how_it_is_called(tmp_path: Path) -> None:
    access = Access(
        ("kafka.example:9092",),
        Protocol.SASL_SSL,
        CA,
        mechanism=Mechanism.SCRAM_SHA_512,
        username="shop",
        password="not-a-secret",
    )
    written = render(Client("shop", access, LARGE, StoreType.PEM, tmp_path), Format.PYTHON)
    written.write(tmp_path)
    program = tmp_path / written.main.name
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    assert "produce TOPIC" in ended.stderr
    assert runpy.run_path(str(program))["PRODUCER"]["ssl.ca.pem"] == CA
