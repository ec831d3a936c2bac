"""`twinlog produce`: write lines, files or JSON lines to a topic."""

from __future__ import annotations

import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Record
from twinlog.cli.reach import Reached, reached, refuse_copy, site_options, write_timeout_s
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlog.client.producer import Producer
    from twinlog.client.sent import Sent
    from twinlog.ops.inputs import Form
    from twinlog.ops.writing import Tally
    from twinlog.wire.driver import Outgoing

MOST_UNDER_WAY = 50_000


@frame.command(
    example=r"""
    echo hello | twinlog produce orders
    twinlog produce orders --input orders.txt --key-separator '\t' --header source=import
    twinlog produce orders --json --input records.jsonl --rate 500
    twinlog produce orders --whole-file report.pdf --key report --user shop --acks twin
    """
)
@click.argument("topic")
@click.option(
    "--input",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Lines from here, not from stdin.",
)
@click.option(
    "--whole-file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A record of a whole file; may be repeated.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Lines are objects: key, value, headers, partition, timestamp_ms."
)
@click.option("--key-separator", metavar="TEXT", help="A line is a key, this, and a value.")
@click.option("--key", help="The key of every record.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=VALUE", help="For every record; may be repeated."
)
@click.option(
    "--partition", type=click.IntRange(min=0), help="All into this one; else the key decides, as in Java."
)
@click.option("--empty-is-null", is_flag=True, help="An empty key or value is null: a tombstone.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="So many records a second at most.")
@click.option(
    "--acks",
    type=click.Choice(["0", "1", "all", "twin"]),
    default="all",
    show_default=True,
    help="Who has a record before it counts; twin: both sites (needs --user).",
)
@click.option("--compression", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]), default="none")
@site_options
def command(
    ctx: frame.Context,
    topic: str,
    path: Path | None,
    files: tuple[Path, ...],
    as_json: bool,
    key_separator: str | None,
    key: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    empty_is_null: bool,
    rate: float | None,
    acks: str,
    compression: str,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Write a record for each line of stdin, or of a file.

    Ends when every record was answered, within 30 s or within --timeout if that is given. Exit code 1
    if one was not written, or nobody knows.
    """
    from twinlog.ops import inputs

    if files and (path is not None or as_json or key_separator is not None):
        raise UsageError(
            "--whole-file makes a record of each file as it is", hint="leave the other inputs out"
        )
    form = inputs.Form(
        topic,
        separator=inputs.separator(key_separator) if key_separator is not None else None,
        key=key.encode("utf-8", "surrogateescape") if key is not None else None,
        headers=tuple(inputs.header(text) for text in headers),
        partition=partition,
        empty_is_null=empty_is_null,
        is_json=as_json,
    )
    with reached(ctx, site, user, timeout) as reach:
        refuse_copy(reach, topic, "nothing is written")
        _check(reach, topic, partition)
        began = time.monotonic()
        with _producer(reach, acks, compression, write_timeout_s(timeout)) as producer:
            tally = _write(producer, _records(path, files, form), rate, asks=acks != "0")
        took_s = time.monotonic() - began
    value = {
        "topic": topic,
        "records": tally.done,
        "refused": tally.refused,
        "unknown": tally.unknown,
        "size_bytes": tally.size_bytes,
        "seconds": round(took_s, 3),
    }
    ctx.emit(Record([Column(name) for name in ("topic", "records", "refused", "unknown", "seconds")], value))
    problem = tally.problem(topic)
    if problem is not None:
        raise problem


def _check(reach: Reached, topic: str, partition: int | None) -> None:
    from twinlog.wire.acls import Operation

    found = reach.topic(topic, Operation.WRITE)
    if partition is not None and partition >= len(found.partitions):
        raise UsageError(
            f"topic '{topic}' has {len(found.partitions)} partitions, and none of number {partition}",
            hint=f"twinlog topic describe {topic}",
        )


def _producer(reach: Reached, acks: str, compression: str, timeout_s: float) -> Producer:
    from twinlog.client.producer import Producer
    from twinlog.client.ways import Ways

    settings: dict[str, str | int | float | bool] = {"compression.type": compression}
    if acks == "twin":
        if reach.user is None:
            raise UsageError("acks=twin is for users of the file", hint="name one: --user NAME")
        return Producer.of_bus(
            reach.home.file, reach.user, acks="twin", timeout_s=timeout_s, settings=settings
        )
    if acks != "all":  # an idempotent producer waits for all in-sync replicas
        settings |= {"acks": acks, "enable.idempotence": False}
    ways = Ways(tuning=reach.tuning, settings=settings)
    return Producer(reach.access, timeout_s=timeout_s, ways=ways)


def _write(producer: Producer, records: Iterable[Outgoing], rate: float | None, *, asks: bool) -> Tally:
    """Write all; when the input breaks off, what was sent is settled by the producer's end."""
    from twinlog.ops.writing import Tally, paced

    tally = Tally()
    under_way: deque[Sent] = deque()
    for record in records if rate is None else paced(records, rate):
        under_way.append(producer.send_record(record))
        tally.size_bytes += len(record.key or b"") + len(record.value or b"")
        while under_way and (under_way[0].done() or len(under_way) > MOST_UNDER_WAY):
            _count(tally, under_way.popleft(), asks)
    producer.flush()
    for sent in under_way:
        _count(tally, sent, asks)
    return tally


def _count(tally: Tally, sent: Sent, asks: bool) -> None:
    from twinlog.client.outcomes import Done, NotDone, UnknownAtTwin

    outcome = sent.result()
    if isinstance(outcome, Done) or (not asks and not isinstance(outcome, NotDone)):
        tally.done += 1  # with acks=0 nobody is asked, so a record counts when it was sent
    elif isinstance(outcome, NotDone):
        tally.count_refused(outcome.reason, outcome.hint)
    elif isinstance(outcome, UnknownAtTwin):
        tally.count_unknown(outcome.reason, "the active has them; does the mirror run? twinlog link status")
    else:
        tally.count_unknown(outcome.reason, outcome.hint)


def _records(path: Path | None, files: tuple[Path, ...], form: Form) -> Iterator[Outgoing]:
    from twinlog.ops import inputs

    if files:
        yield from inputs.from_files(files, form)
    elif path is None:
        yield from inputs.from_lines(sys.stdin.buffer, form)
    else:
        with _opened(path) as lines:
            yield from inputs.from_lines(lines, form)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint=f"ls -l {path}") from error
