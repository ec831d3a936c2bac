"""`twinlog perf consume` and `perf latency`: how fast a cluster gives records, and the way there and back."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinlog.cli import frame, output
from twinlog.cli.perf_clients import client_options, target
from twinlog.errors import Problem, UsageError

if TYPE_CHECKING:
    from twinlog.wire.access import Access

EVERY = 1000  # records between two lines of the latency
ACKS = ["1", "all"]


@frame.command(
    example="""
    twinlog perf consume --topic orders --num-records 100000
    twinlog perf consume --bootstrap-server k:9092 --topic t --messages 100000 --show-detailed-stats
    """
)
@click.option("--topic", help="Read this topic.")
@click.option("--include", metavar="REGEX", help="Read all topics whose names match.")
@click.option(
    "--num-records",
    "--messages",
    "records",
    required=True,
    type=click.IntRange(min=1),
    help="How many records.",
)
@click.option("--group", help="Read in this group. [default: perf-consumer-N]")
@click.option("--fetch-size", type=int, default=1048576, help="Bytes of one partition in a fetch.")
@click.option("--socket-buffer-size", type=int, default=2097152, help="Of the connections.")
@click.option("--from-latest", is_flag=True, help="A group that is new begins at the end.")
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    default=10000,
    help="Milliseconds without a record until it ends.",
)
@click.option(
    "--command-property", "properties", multiple=True, metavar="PROPERTY=VALUE", help="Of Kafka's consumer."
)
@client_options("--consumer.config")
@click.option("--print-metrics", is_flag=True, help="Also print what the client counted.")
@click.option(
    "--show-detailed-stats", is_flag=True, help="A line for every interval, instead of one at the end."
)
@click.option(
    "--reporting-interval", type=click.IntRange(min=1), default=5000, help="Milliseconds between lines."
)
@click.option("--date-format", default="yyyy-MM-dd HH:mm:ss:SSS", help="Of times, as Java writes it.")
@click.option("--hide-header", is_flag=True, help="No line that says what the columns are.")
def consume(
    ctx: frame.Context,
    topic: str | None,
    include: str | None,
    records: int,
    group: str | None,
    fetch_size: int,
    socket_buffer_size: int,
    from_latest: bool,
    timeout: int,
    properties: tuple[str, ...],
    bootstrap_server: str | None,
    config: Path | None,
    site: str | None,
    user: str | None,
    print_metrics: bool,
    show_detailed_stats: bool,
    reporting_interval: int,
    date_format: str,
    hide_header: bool,
) -> None:
    """Read records and measure how fast they come, as kafka-consumer-perf-test does."""
    from twinlog.perf import clients, consuming, lines
    from twinlog.perf.figures import Interval
    from twinlog.wire.clientfiles.tuning import Role

    if (topic is None) == (include is None):
        raise UsageError("one of --topic and --include says what is read", hint="twinlog topic list")
    lines.strftime_of(date_format)  # before anything is read
    found = target(ctx, bootstrap=bootstrap_server, config=config, pairs=properties, site=site, user=user)
    settings = clients.consumer(
        found.base(Role.CONSUMER),
        found.properties,
        group=group or f"perf-consumer-{random.randrange(100_000)}",
        from_latest=from_latest,
        fetch_bytes=fetch_size,
        socket_bytes=socket_buffer_size,
    )
    options = consuming.ReadOptions(
        (topic,) if topic is not None else (f"^{include}",),
        records,
        silence_s=timeout / 1000,
        interval_s=reporting_interval / 1000,
        with_statistics=print_metrics,
    )

    def say(line: str) -> None:
        if not ctx.as_json:
            output.write(line + "\n")

    def told(ended_ms: int, interval: Interval, joining_s: float, so_far: Interval) -> None:
        if show_detailed_stats:
            say(lines.read_window(ended_ms, interval, joining_s, so_far=so_far, date_format=date_format))

    if not hide_header:
        say(lines.read_header(is_detailed=show_detailed_stats))
    read = consuming.read(settings, options, told)
    if read.total.records < records:
        what = f"only {read.total.records} of {records} records came: none for {timeout} ms"
        ctx.warn(Problem(0, 0, what, hint="--timeout waits longer", path="warning", severity="warning"), "")
    if not show_detailed_stats:
        say(lines.read_total(read, date_format))
    if print_metrics:
        say("\n".join(["", *lines.metrics(read.statistics)]))
    if ctx.as_json:
        ctx.write("", as_json={"topic": topic or include, "cluster": found.where, **read.as_json()})


@frame.command(
    example="""
    twinlog perf latency --topic ping --num-records 1000 --producer-acks all --record-size 100
    twinlog perf latency k:9092 ping 1000 all 4096 client.properties
    """
)
@click.argument("words", nargs=-1, metavar="[BROKERS TOPIC NUM_RECORDS ACKS RECORD_SIZE [CONFIG]]")
@click.option("--topic", help="A topic that nobody else writes to; it is made if it is not there.")
@click.option("--num-records", type=click.IntRange(min=1), help="How many records, one after the other.")
@click.option("--producer-acks", type=click.Choice(ACKS), help="Who must have a record: 1 or all.")
@click.option("--record-size", type=click.IntRange(min=0), help="Bytes of a record.")
@click.option(
    "--command-property", "properties", multiple=True, metavar="PROPERTY=VALUE", help="Of Kafka's clients."
)
@client_options("--properties-file")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the latencies, as SVG.")
def latency(
    ctx: frame.Context,
    words: tuple[str, ...],
    topic: str | None,
    num_records: int | None,
    producer_acks: str | None,
    record_size: int | None,
    properties: tuple[str, ...],
    bootstrap_server: str | None,
    config: Path | None,
    site: str | None,
    user: str | None,
    plot: Path | None,
) -> None:
    """Measure the way of a record through the log and back, as Kafka's EndToEndLatency does.

    Everything may stand in options, or in the order in which that tool takes it.
    """
    from twinlog.perf import clients, lines, tripping
    from twinlog.perf.figures import latencies_json
    from twinlog.wire.clientfiles.tuning import Role

    if words:
        bootstrap_server, topic, num_records, producer_acks, record_size, config = _in_order(words)
    if topic is None or num_records is None or producer_acks is None or record_size is None:
        raise UsageError(
            "--topic, --num-records, --producer-acks and --record-size are needed",
            hint="twinlog perf latency --help",
        )
    found = target(ctx, bootstrap=bootstrap_server, config=config, pairs=properties, site=site, user=user)
    _make_sure(ctx, found.access, topic)
    options = tripping.TripOptions(topic, num_records, record_size)

    def told(number: int, latency_ms: float) -> None:
        if number % EVERY == 0 and not ctx.as_json:
            output.write(lines.trip_progress(number, latency_ms) + "\n")

    taken = tripping.trips(
        clients.trip_producer(found.base(Role.PRODUCER), found.properties, producer_acks),
        clients.trip_consumer(
            found.base(Role.CONSUMER), found.properties, f"perf-latency-{random.randrange(100_000)}"
        ),
        options,
        told,
    )
    if plot is not None:
        from twinlog.durable import write_text
        from twinlog.perf.plot import drawn

        write_text(plot, drawn(taken, f"{topic}: written with acks={producer_acks} and read back"))
    told_all = {
        "topic": topic,
        "cluster": found.where,
        "records": taken.count,
        "latency_ms": latencies_json(taken),
    }
    ctx.write("".join(line + "\n" for line in lines.trip_total(taken)), as_json=told_all)


def _in_order(words: tuple[str, ...]) -> tuple[str, str, int, str, int, Path | None]:
    if len(words) not in (5, 6):
        raise UsageError(
            f"{len(words)} words instead of 5 or 6",
            hint="BROKERS TOPIC NUM_RECORDS ACKS RECORD_SIZE [CONFIG], or all in options",
        )
    brokers, topic, count, acks, size = words[:5]
    if acks not in ACKS:
        raise UsageError(f"acks is '{acks}', and latency needs an answer", hint="1 or all")
    if not count.isdigit() or not size.isdigit() or int(count) == 0:
        raise UsageError("NUM_RECORDS and RECORD_SIZE are whole numbers", hint="twinlog perf latency --help")
    return brokers, topic, int(count), acks, int(size), Path(words[5]) if len(words) == 6 else None


def _make_sure(ctx: frame.Context, access: Access, topic: str) -> None:
    """Make the topic if it is not there, as Kafka's tool does."""
    from twinlog.perf.tripping import ASK_S
    from twinlog.wire import topics
    from twinlog.wire.cluster import Cluster, Patience

    with Cluster(access, patience=Patience(total_s=ASK_S), client_id="twinlog-cli") as cluster:
        if topics.describe(cluster, [topic]):
            return
        if not ctx.as_json:
            output.write(
                f'Topic "{topic}" does not exist. '
                "Will create topic with 1 partition(s) and replication factor = 1\n"
            )
        topics.create(cluster, topics.NewTopic(topic, partitions=1, replication=1))
