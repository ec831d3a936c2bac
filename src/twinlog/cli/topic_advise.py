"""`twinlog topic advise`: how many partitions a topic needs, from a short measurement on this site."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Record
from twinlog.cli.reach import reached, site_options
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from twinlog.wire.driver import Settings


@frame.command(example="twinlog topic advise --peak-rate 50000 --record-size 1KB")
@click.option(
    "--peak-rate",
    required=True,
    type=click.FloatRange(min=0, min_open=True),
    help="Records a second at the peak.",
)
@click.option("--record-size", required=True, metavar="SIZE", help="Of a record: 500B, 1KB.")
@click.option(
    "--consumer-rate",
    type=click.FloatRange(min=0, min_open=True),
    help="Records a second that one consumer of yours manages, where that is what is slow.",
)
@click.option("--replication", type=click.IntRange(min=1), help="Copies; by default 3, or one a broker.")
@click.option(
    "--seconds", type=click.FloatRange(min=0.5, max=600), default=5.0, show_default=True, help="To measure."
)
@site_options
def advise(
    ctx: frame.Context,
    peak_rate: float,
    record_size: str,
    consumer_rate: float | None,
    replication: int | None,
    seconds: float,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Measure what one partition takes and gives here, and say how many a topic needs.

    The measurement runs at full speed in a topic of its own, which is deleted afterwards: not beside
    traffic that must not be slowed down. Nothing else is made or changed.
    """
    from twinlog.perf import advice, trial
    from twinlog.spec.units import UnitError, parse_bytes
    from twinlog.wire.clientfiles.tuning import Role
    from twinlog.wire.driver import usual

    try:
        record_bytes = parse_bytes(record_size)
    except UnitError as error:
        raise UsageError(f"--record-size: {error}", hint="--record-size 1KB") from error
    if record_bytes < 1:
        raise UsageError("a record of no size cannot be measured", hint="--record-size 1KB")
    with reached(ctx, site, user, timeout) as reach:
        brokers = len(reach.cluster.brokers())
        copies = replication if replication is not None else min(3, brokers)
        if copies > brokers:
            raise UsageError(
                f"{copies} copies need as many brokers, and there are {brokers}", hint="twinlog status"
            )

        def base(role: str) -> Settings:
            return usual(reach.access, reach.tuning, Role(role))

        ctx.progress.begin("measuring one partition")
        measured = trial.measure(
            reach.cluster, base, record_bytes=record_bytes, replication=copies, seconds=seconds
        )
        ctx.progress.end("measuring one partition")
    load = advice.Load(peak_rate, record_bytes, consumer_rate)
    advised = advice.advise(load, measured, brokers, copies)
    told = {
        "partitions": advised.partitions,
        "arithmetic": advised.steps,
        "measured_write_per_s": round(measured.write_per_s),
        "measured_read_per_s": round(measured.read_per_s),
        "brokers": brokers,
        "replication": copies,
        "site": reach.site,
    }
    columns = [Column("partitions"), Column("arithmetic", show="\n".join)]
    ctx.emit(Record([*columns, Column("site")], told))
