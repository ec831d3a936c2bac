"""`twinlog produce` and `consume` on real brokers; what they print beside what kcat prints."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import programs
from tests.cluster.conftest import UP_TIMEOUT_S, Bus, Site
from tests.cluster.programs import Kcat, Printer
from tests.unit.ops.test_formats import SEED
from twinlog.traffic.shelf import batches
from twinlog.wire import offsets
from twinlog.wire.batches import Codec
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

RECORDS: list[dict[str, Any]] = [
    {"key": "k", "value": "v", "headers": [{"name": "a", "value": "1"}, {"name": "b", "value": None}]},
    {"key": None, "value": None},
    {"key": "", "value": "", "headers": [{"name": "c", "value": ""}]},
    {"key_base64": "AP8=", "value_base64": "AAEC/w=="},
    {"key": "é", "value": "ü\nzwei", "timestamp_ms": 1_700_000_000_123},
]
COMPRESSIBLE = b"the same line over and over again\n" * 200
FORMATS = [
    SEED,
    r"%t|%p|%o|%k|%K|%s|%S|%T|%h\n",
    r"%%\x41\101\0101\t\q\\x%s\n",
    "%R%s",
    r"a\0b%o\x4142\n",
]


@pytest.fixture
def topic(bus: Bus) -> Iterator[str]:
    """A topic of two partitions that the user ledger may read."""
    name = f"cmd-{uuid.uuid4().hex[:8]}"
    bus.done("topic", "create", name, "--partitions", "2")
    yield name
    bus.done("topic", "delete", name, "--yes")


def printed(bus: Bus, *words: str, text: bytes = b"") -> bytes:
    """What the program prints, as bytes."""
    ended = subprocess.run(
        bus.command(*words),
        input=text,
        cwd=bus.directory,
        env=bus.environment(),
        capture_output=True,
        timeout=UP_TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout


def test_formats_print_what_kcat_prints_byte_for_byte(bus: Bus, topic: str, printed_file: Printer) -> None:
    lines = "\n".join(json.dumps(record | {"partition": 0}) for record in RECORDS)
    printed(bus, "produce", topic, "--json", text=lines.encode())
    bus.done("user", "grant", "ledger", "--consume", topic)
    kcat, file = Kcat(programs.kcat()), printed_file("ledger", "a", "kcat")
    whole = ["-q", "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e"]
    for text in FORMATS:
        ours = printed(bus, "consume", topic, "--user", "ledger", "--partition", "0", "--format", text)
        assert ours == kcat.run(file, *whole, "-f", text), text
    assert printed(bus, "consume", topic, "--partition", "0") == kcat.run(file, *whole)
    keyed = printed(bus, "consume", topic, "--partition", "0", "--key-separator", r"\t")
    assert keyed == kcat.run(file, *whole, "-K", r"\t")
    bus.done("user", "revoke", "ledger", "--consume", topic)


@pytest.fixture
def printed_file(bus: Bus, tmp_path_factory: pytest.TempPathFactory) -> Printer:
    """Prints client files of the shared bus."""
    return Printer(bus, tmp_path_factory.mktemp("clients"))


def test_what_was_consumed_as_json_is_produced_again_unchanged(bus: Bus, topic: str) -> None:
    lines = "\n".join(json.dumps(record | {"partition": 0}) for record in RECORDS)
    printed(bus, "produce", topic, "--json", text=lines.encode())
    told = printed(bus, "consume", topic, "--json", "--partition", "0")
    printed(bus, "produce", topic, "--json", "--partition", "1", text=told)
    again = printed(bus, "consume", topic, "--json", "--partition", "1")
    places = [{**json.loads(line), "partition": None} for line in told.splitlines()]
    assert places == [{**json.loads(line), "partition": None} for line in again.splitlines()]


def test_consume_goes_from_one_place_to_another_and_keeps_what_is_wanted(bus: Bus, topic: str) -> None:
    numbers = "\n".join(f"key{number}:value {number}" for number in range(10)).encode()
    ways = ["--partition", "0", "--acks", "1", "--compression", "lz4", "--rate", "100"]
    printed(bus, "produce", topic, "--key-separator", ":", "--header", "kind=test", *ways, text=numbers)

    def read(*words: str) -> list[str]:
        return printed(bus, "consume", topic, "--partition", "0", *words).decode().splitlines()

    values = [f"value {number}" for number in range(10)]
    assert read() == values
    assert read("--from", "4", "--until", "6") == values[4:6]
    assert read("--from", "-3", "--max-messages", "2") == values[7:9]
    assert read("--from", "1h", "--grep", "value [28]") == [values[2], values[8]]
    assert read("--from", "end") == []
    assert read("--key", "key5", "--header", "kind=test", "--format", r"%k %h\n") == ["key5 kind=test"]


def test_compression_and_acks_are_as_they_were_asked_for(bus: Bus, site: Site, topic: str) -> None:
    ways = [("--compression", codec.name.lower()) for codec in Codec]
    for words in (*ways, ("--acks", "1")):
        printed(bus, "produce", topic, "--partition", "0", *words, text=COMPRESSIBLE)
    with Cluster(site.access()) as cluster:
        place = (topic, 0)
        end = offsets.end_offsets(cluster, [place])[place]
        headers = [batch.header for batch in batches(cluster, place, 0, end)]
    lines, runs = COMPRESSIBLE.count(b"\n"), len(ways) + 1
    by_run = [
        [header for header in headers if header.base_offset // lines == number] for number in range(runs)
    ]
    codecs = [{header.codec for header in of_run} for of_run in by_run]
    assert codecs == [*({codec} for codec in Codec), {Codec.NONE}]
    # Idempotent unless somebody wants less than all acks.
    assert [all(header.is_idempotent for header in of_run) for of_run in by_run] == [True] * len(ways) + [
        False
    ]
    remembered = {row["producer_id"] for row in bus.json("producers", topic, "--partition", "0")}
    assert remembered == {header.producer_id for header in headers if header.is_idempotent}
    assert len(remembered) == len(ways)


def test_with_acks_0_nobody_is_asked_what_became_of_a_record(bus: Bus, topic: str) -> None:
    bus.done("config", "set", "topic", topic, "max.message.bytes=2000")
    large = b"x" * 5000
    refused = subprocess.run(
        bus.command("produce", topic, "--partition", "0", "--acks", "1"),
        input=large,
        cwd=bus.directory,
        env=bus.environment(),
        capture_output=True,
        timeout=UP_TIMEOUT_S,
        check=False,
    )
    assert refused.returncode == 1 and b"MESSAGE_TOO_LARGE" in refused.stderr, refused.stderr
    unasked = ["produce", topic, "--partition", "0", "--acks", "0", "-o", "json"]
    told = json.loads(printed(bus, *unasked, text=large))
    assert (told["records"], told["refused"], told["unknown"]) == (1, 0, 0)
    printed(bus, *unasked, text=b"small")
    # It was not waited for, so it may still be on its way; the large one is nowhere.
    follow = ["--partition", "0", "--follow", "--max-messages", "1", "--format", r"%o %s\n"]
    assert printed(bus, "consume", topic, *follow) == b"0 small\n"


def test_follow_goes_on_with_new_records_until_it_is_interrupted(bus: Bus, topic: str) -> None:
    keys = [b"\0" * 7 + b"\x2a", b"\xff" * 8]
    lines = [
        json.dumps({"key_base64": base64.b64encode(key).decode(), "value": "v"}).encode() for key in keys
    ]
    printed(bus, "produce", topic, "--json", "--partition", "0", text=lines[0])
    words = ("consume", topic, "--follow", "--key-type", "long", "--format", r"%k %o\n")
    following = subprocess.Popen(
        bus.command(*words), cwd=bus.directory, env=bus.environment(), stdout=subprocess.PIPE
    )
    assert following.stdout is not None
    try:
        assert following.stdout.readline() == b"42 0\n"
        printed(bus, "produce", topic, "--json", "--partition", "0", text=lines[1])
        assert following.stdout.readline() == b"-1 1\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(UP_TIMEOUT_S) == 130
    finally:
        following.kill()
        following.wait()
        following.stdout.close()


def test_a_group_goes_on_where_it_stands(bus: Bus) -> None:
    mark, group = uuid.uuid4().hex[:8], f"app-{uuid.uuid4().hex[:8]}"
    bus.done("group", "reset", group, "--topic", "big", "--to", "end", "--yes")
    lines = "\n".join(f"{mark} {number}" for number in range(4)).encode()
    printed(bus, "produce", "big", "--user", "app", text=lines)
    ways = ("consume", "big", "--user", "app", "--group", group)
    first = printed(bus, *ways, "--max-messages", "1").decode().splitlines()
    rest = printed(bus, *ways).decode().splitlines()
    assert first + rest == [f"{mark} {number}" for number in range(4)]
    assert printed(bus, *ways) == b""


def test_unhappy_ways_end_with_their_code_and_a_hint(bus: Bus, topic: str) -> None:
    for words, code, said in (
        (("consume", "cmd-none"), 1, "there is no topic 'cmd-none'"),
        (("consume", "orders", "--user", "shop"), 1, "TOPIC_AUTHORIZATION_FAILED"),
        (("consume", topic, "--partition", "7"), 2, "has no partition 7"),
        (("consume", topic, "--format", "%q"), 2, "%q is no field"),
        (("consume", topic, "--from", "yesterday"), 2, "is no place in a topic"),
        (("consume", topic, "--follow", "--until", "end"), 2, "--follow has no end"),
        (("produce", topic, "--partition", "9"), 2, "none of number 9"),
        (("produce", "orders", "--user", "stock", "--whole-file", "twinlog.yaml"), 1, "AUTHORIZATION_FAILED"),
        (("produce", topic, "--acks", "twin"), 2, "--user NAME"),
        (("produce", topic, "--whole-file", "none"), 2, "cannot be read"),
    ):
        ended = bus.run(*words)
        assert ended.returncode == code, (words, ended.stderr)
        assert said in ended.stderr and "hint:" in ended.stderr and "Traceback" not in ended.stderr, words
