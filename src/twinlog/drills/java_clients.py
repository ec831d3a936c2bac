"""Kafka's own test programs as clients of a drill: VerifiableProducer and VerifiableConsumer, in Java.

`load` starts them with the client file that `twinlog client --gate` prints, and with what these programs
need beside it. They print a line of JSON for every acknowledgement, record and commit; `operations` makes
a history of it. They tell of acknowledgements only: when a record was sent they do not say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from twinlog.drills.cast import KEYS, USER, Client, Names
from twinlog.drills.history import Commit, Operation, Outcome, Read, Write
from twinlog.drills.reach import JAVA_DEFAULTS, gate_access, tuning_of
from twinlog.sites.home import Home
from twinlog.wire.clientfiles import write
from twinlog.wire.clientfiles.write import Format
from twinlog.wire.stores import StoreType

PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
NO_END = 2**31 - 1
# The producer's program switches retries off unless its file has them; in Java they are on.
WRITER_SETTINGS = {"retries": str(NO_END)}
# A commit follows every poll there; without a wait for more there would be one for every few records.
READER_SETTINGS = {
    "isolation.level": "read_committed",
    "fetch.min.bytes": "10000",
    "fetch.max.wait.ms": "200",
}
# What Java says of a commit that came while the group shared its partitions out anew: no error of the bus.
HANDED_ON = ("rebalance", "not part of an active group", "member ID", "member epoch")


def client_file(home: Home, client: Client, directory: Path) -> str:
    """The client file of one client: the printed one, and below it what its program needs."""
    printed = write.render(
        write.Client(USER, gate_access(home), tuning_of(home), StoreType.PEM, directory), Format.JAVA
    )
    more = {"client.id": client.name, **(WRITER_SETTINGS if client.writes else READER_SETTINGS)}
    if not client.tuned:
        more |= JAVA_DEFAULTS
    if client.writes and not client.idempotent:
        more |= {"acks": client.acks, "enable.idempotence": "false"}
    return printed.text + "".join(f"{key}={value}\n" for key, value in more.items())


def command(client: Client, names: Names, file: Path, bootstrap: str, rate: float) -> list[str]:
    """The main class and its arguments."""
    shared = ["--bootstrap-server", bootstrap, "--topic", client.topic, "--command-config", str(file)]
    if client.writes:
        acks = "1" if client.acks == "1" else "-1"
        pace = ["--throughput", str(max(1, round(rate))), "--acks", acks]
        return [
            PRODUCER,
            *shared,
            *pace,
            "--value-prefix",
            names.prefix(client),
            "--repeating-keys",
            str(KEYS),
        ]
    protocol = "consumer" if client.new_protocol else "classic"
    return [CONSUMER, *shared, "--group-id", client.group, "--group-protocol", protocol, "--verbose"]


def operations(client: Client, names: Names, line: str) -> Iterator[Operation]:
    """What a line tells; nothing if it is a message for people."""
    try:
        told: Any = json.loads(line)
        time_s = told["timestamp"] / 1000
        match told["name"]:
            case "producer_send_success":
                write = _write(client, names, told, Outcome.OK, time_s)
                yield replace(write, partition=told["partition"], offset=told["offset"])
            case "producer_send_error":
                yield _write(client, names, told, Outcome.UNKNOWN, time_s)
            case "record_data":
                value = names.value(told["value"])
                yield Read(client.name, client.group, *_place(told), value, time_s)
            case "offsets_committed":
                outcome = Outcome.OK if told["success"] else Outcome.UNKNOWN
                error = "" if told["success"] else _error(told.get("error"))
                for one in told["offsets"]:
                    yield Commit(client.name, client.group, *_place(one), time_s, outcome, error)
    except (ValueError, KeyError, TypeError):
        return


def _error(said: str | None) -> str:
    """What a reader was told of a commit; nothing if others only go on with its partitions."""
    text = said or "no reason was given"
    return "" if any(words in text for words in HANDED_ON) else text


def _place(told: Any) -> tuple[str, int, int]:
    return told["topic"], told["partition"], told["offset"]


def _write(client: Client, names: Names, told: Any, outcome: Outcome, time_s: float) -> Write:
    return Write(
        client.name,
        client.program,
        client.acks,
        client.idempotent,
        client.topic,
        names.value(told["value"]),
        outcome,
        end_s=time_s,
        key=told["key"],
    )
