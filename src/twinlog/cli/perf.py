"""`twinlog perf`: how fast a cluster takes records; `perf_reading` has how fast it gives them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinlog.cli import frame, output, perf_reading
from twinlog.cli.perf_clients import Target, client_options, target
from twinlog.errors import KafkaError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlog.perf.figures import Written
    from twinlog.perf.producing import WriteOptions
    from twinlog.wire.bulk import Piece

command = frame.group("perf", "Measure writing, reading and latency, with the options of Kafka's own tools.")
for _reading in (perf_reading.consume, perf_reading.latency):
    command.add_command(_reading)

TRANSACTION_MS = 3000


@frame.command(
    parent=command,
    example="""
    twinlog perf produce --topic orders --num-records 100000 --record-size 1000 --throughput -1
    twinlog perf produce --topic orders --num-records 9999 --record-size 100 --throughput 500 --plot out.svg
    twinlog perf produce --topic t --num-records 9 --payload-monotonic --throughput -1 --producer-props acks=1
    """,
)
@click.argument("more", nargs=-1, metavar="[PROPERTY=VALUE]...")
@click.option("--topic", required=True, help="Write to this topic.")
@click.option("--num-records", required=True, type=click.IntRange(min=1), help="How many records.")
@click.option(
    "--throughput",
    required=True,
    type=float,
    help="Records a second; -1 is as fast as it goes. Latency counts from when a record was due.",
)
@click.option("--record-size", type=click.IntRange(min=1), help="Bytes of a record, random letters.")
@click.option("--payload-file", type=click.Path(path_type=Path), help="Records drawn from this file.")
@click.option("--payload-delimiter", default="\\n", help="What stands between records of the file.")
@click.option("--payload-monotonic", is_flag=True, help="Records are 0, 1, 2 and so on.")
@click.option(
    "--command-property",
    "--producer-props",
    "properties",
    multiple=True,
    metavar="PROPERTY=VALUE",
    help="A property of Kafka's producer; more of them may follow.",
)
@client_options("--producer.config")
@click.option("--print-metrics", is_flag=True, help="Also print what the client counted.")
@click.option("--transactional-id", help="Write in transactions, under this id.")
@click.option(
    "--transaction-duration-ms", type=click.IntRange(min=1), help="Commit when one is so old. [default: 3000]"
)
@click.option(
    "--warmup-records", type=click.IntRange(min=0), default=0, help="Leave so many out of a second summary."
)
@click.option(
    "--reporting-interval", type=click.IntRange(min=1), default=5000, help="Milliseconds between lines."
)
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the latencies, as SVG.")
def produce(
    ctx: frame.Context,
    more: tuple[str, ...],
    topic: str,
    num_records: int,
    throughput: float,
    record_size: int | None,
    payload_file: Path | None,
    payload_delimiter: str,
    payload_monotonic: bool,
    properties: tuple[str, ...],
    bootstrap_server: str | None,
    config: Path | None,
    site: str | None,
    user: str | None,
    print_metrics: bool,
    transactional_id: str | None,
    transaction_duration_ms: int | None,
    warmup_records: int,
    reporting_interval: int,
    plot: Path | None,
) -> None:
    """Write records and measure how long each takes, as kafka-producer-perf-test does.

    Options and lines are those of that tool, properties those of Kafka's producer; one that has no
    counterpart in librdkafka is an error. Without a cluster on the command line the bus is measured.
    """
    from twinlog.perf import lines, producing
    from twinlog.perf.producing import WriteOptions

    if throughput == 0:
        raise UsageError("at 0 records a second nothing would be sent", hint="--throughput -1")
    if warmup_records >= num_records:
        raise UsageError("the warm-up takes all records", hint="--warmup-records must be below --num-records")
    pieces, record_bytes = _payloads(record_size, payload_file, payload_delimiter, payload_monotonic)
    found = target(
        ctx, bootstrap=bootstrap_server, config=config, pairs=(*properties, *more), site=site, user=user
    )
    if transactional_id is not None:
        found.properties["transactional.id"] = transactional_id
    in_transactions = transaction_duration_ms is not None or "transactional.id" in found.properties
    if in_transactions and "transactional.id" not in found.properties:
        from uuid import uuid4

        found.properties["transactional.id"] = f"performance-producer-{uuid4()}"
    options = WriteOptions(
        topic,
        num_records,
        pieces,
        record_bytes,
        rate_per_s=throughput if throughput > 0 else None,
        warmup_records=warmup_records,
        interval_s=reporting_interval / 1000,
        transaction_s=(transaction_duration_ms or TRANSACTION_MS) / 1000 if in_transactions else None,
        with_statistics=print_metrics,
    )

    def say(line: str) -> None:
        if not ctx.as_json:
            output.write(line + "\n")

    if warmup_records:
        say(lines.warming_up(warmup_records))
    written = producing.write(_settings(found), options, told=lambda window: say(lines.sent_window(window)))
    say(lines.sent_total(written.total, written.histogram))
    if written.steady is not None:
        say(lines.sent_total(*written.steady, is_steady=True))
    if print_metrics:
        say("\n".join(["", *lines.metrics(written.statistics)]))
    _finish(ctx, found, options, written, plot)


def _finish(
    ctx: frame.Context, found: Target, options: WriteOptions, written: Written, plot: Path | None
) -> None:
    if plot is not None:
        from twinlog.durable import write_text
        from twinlog.perf.plot import drawn

        rate = "full speed" if options.rate_per_s is None else f"{options.rate_per_s:g} records/s"
        write_text(plot, drawn(written.histogram, f"{options.topic} at {rate}"))
    if ctx.as_json:
        ctx.write("", as_json={"topic": options.topic, "cluster": found.where, **written.as_json()})
    if written.failed:
        raise KafkaError(
            f"{written.failed} of {options.records} records failed: {written.reason}",
            where=f"topic {options.topic}",
            hint=written.hint,
        )


def _settings(found: Target) -> dict[str, str | int | float | bool]:
    from twinlog.perf import clients
    from twinlog.wire.clientfiles.tuning import Role

    return dict(clients.producer(found.base(Role.PRODUCER), found.properties))


def _payloads(
    record_size: int | None, file: Path | None, delimiter: str, monotonic: bool
) -> tuple[Iterator[Piece], int | None]:
    from twinlog.perf import payloads

    if [record_size is not None, file is not None, monotonic].count(True) != 1:
        raise UsageError(
            "it must be said what is sent, in one way",
            hint="--record-size, --payload-file or --payload-monotonic",
        )
    if record_size is not None:
        return payloads.pieces(payloads.random_values(record_size)), record_size
    if file is None:
        return payloads.counting_pieces(), None
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the file of payloads cannot be read: {error}", where=str(file), hint="is it text in UTF-8?"
        ) from error
    return payloads.pieces(payloads.chosen_values(text, "\n" if delimiter == "\\n" else delimiter)), None
