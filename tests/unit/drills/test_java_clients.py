"""Lines of Kafka's test programs become operations; lines for people become none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twinlog.drills import java_clients
from twinlog.drills.cast import EVERYBODY, JAVA_ALL, JAVA_CLASSIC, JAVA_NEW, JAVA_ONE, Names
from twinlog.drills.history import Commit, Operation, Outcome, Read, Write

NAMES = Names.of(EVERYBODY)
PLACE = {"topic": "orders", "partition": 2, "offset": 17}


def told(client: object, **line: object) -> list[Operation]:
    text = json.dumps({"timestamp": 1_700_000_000_250, **line})
    return list(java_clients.operations(client, NAMES, text))  # type: ignore[arg-type]


def test_acknowledgement_becomes_write_with_its_place_and_the_clients_name() -> None:
    (write,) = told(JAVA_ALL, name="producer_send_success", key="3", value="1.42", **PLACE)
    assert write == Write(
        "java-all",
        "java",
        "all",
        True,
        "orders",
        "java-all:42",
        Outcome.OK,
        end_s=1_700_000_000.25,
        key="3",
        partition=2,
        offset=17,
    )


def test_failed_send_is_unknown_because_it_may_have_been_written() -> None:
    (write,) = told(
        JAVA_ONE, name="producer_send_error", key="0", value="2.7", topic="orders", message="late"
    )
    assert isinstance(write, Write)
    assert (write.value, write.outcome, write.offset) == ("java-1:7", Outcome.UNKNOWN, None)


def test_record_of_another_client_is_named_after_its_writer() -> None:
    (mine,) = told(JAVA_CLASSIC, name="record_data", key="1", value="2.7", **PLACE)
    (other,) = told(JAVA_CLASSIC, name="record_data", key="1", value="rd-plain:8", **PLACE)
    assert isinstance(mine, Read)
    assert isinstance(other, Read)
    assert (mine.value, other.value) == ("java-1:7", "rd-plain:8")
    assert (mine.group, mine.time_s) == ("java-classic", 1_700_000_000.25)


def test_commit_is_told_for_every_partition_with_its_outcome() -> None:
    both = [PLACE, {**PLACE, "partition": 0, "offset": 3}]
    done = told(JAVA_NEW, name="offsets_committed", offsets=both, success=True)
    failed = told(JAVA_NEW, name="offsets_committed", offsets=both[:1], success=False, error="gone")
    assert [(one.partition, one.offset) for one in done if isinstance(one, Commit)] == [(2, 17), (0, 3)]
    assert [one.outcome for one in (*done, *failed) if isinstance(one, Commit)] == [
        Outcome.OK,
        Outcome.OK,
        Outcome.UNKNOWN,
    ]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("Timeout of 60000ms expired before successfully committing offsets", None),
        ("Offset commit cannot be completed since the consumer is undergoing a rebalance for auto", ""),
        ("Offset commit cannot be completed since the consumer is not part of an active group", ""),
        (None, "no reason was given"),
    ],
)
def test_commit_that_failed_has_its_error_unless_the_group_was_sharing_out(
    said: str | None, error: str | None
) -> None:
    (failed,) = told(JAVA_NEW, name="offsets_committed", offsets=[PLACE], success=False, error=said)
    assert isinstance(failed, Commit)
    assert failed.error == (said if error is None else error)


def test_lines_for_people_tell_nothing() -> None:
    for line in ("", "[2026-01-01] ERROR something", "{", '{"name": "startup_complete"}', "17", "null"):
        assert list(java_clients.operations(JAVA_ALL, NAMES, line)) == []


def test_command_of_writer_has_its_prefix_and_of_reader_its_protocol() -> None:
    file = Path("client.properties")
    writer = java_clients.command(JAVA_ONE, NAMES, file, "gate:1", 30.0)
    reader = java_clients.command(JAVA_NEW, NAMES, file, "gate:1", 30.0)
    assert writer[writer.index("--value-prefix") + 1] == "2"
    assert writer[writer.index("--acks") + 1] == "1"
    assert reader[reader.index("--group-protocol") + 1] == "consumer"
    assert "--verbose" in reader
