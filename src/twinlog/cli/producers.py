"""`twinlog producers`: what partitions remember of those who write to them."""

from __future__ import annotations

import time

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Table
from twinlog.cli.reach import reached, site_options
from twinlog.cli.sizes import seconds


@frame.command(example="twinlog producers orders --partition 0")
@click.argument("topic")
@click.option(
    "--partition", "partitions", multiple=True, type=click.IntRange(min=0), help="Only this; may be repeated."
)
@site_options
def command(
    ctx: frame.Context,
    topic: str,
    partitions: tuple[int, ...],
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Show the idempotent and transactional producers that each partition of a topic remembers.

    A partition forgets a producer a day after its last record, unless the site says otherwise.
    """
    from twinlog.ops import catalogue
    from twinlog.wire import producers

    with reached(ctx, site, user, timeout) as reach:
        places = catalogue.places_of(catalogue.existing(reach.cluster, [topic]), partitions)
        states = producers.describe(reach.cluster, places)
    now_ms = time.time_ns() // 1_000_000
    rows = [
        {
            "topic": place[0],
            "partition": place[1],
            "producer_id": producer_id,
            "epoch": state.epoch,
            "last_sequence": state.last_sequence,
            "last_record_s": max(0, now_ms - state.last_timestamp_ms) / 1000,
            "open_transaction_from": state.current_txn_start_offset
            if state.current_txn_start_offset >= 0
            else None,
        }
        for place, theirs in sorted(states.items())
        for producer_id, state in sorted(theirs.items())
    ]
    columns = [
        Column("topic"),
        *(Column(key, right=True) for key in ("partition", "producer_id", "epoch", "last_sequence")),
    ]
    columns += [
        Column("last_record_s", "last record", right=True, show=lambda age_s: f"{seconds(age_s)} ago"),
        Column("open_transaction_from", "open since offset", right=True, show=_offset),
    ]
    ctx.emit(Table(columns, rows, empty="no producer is remembered"))


def _offset(value: int | None) -> str:
    return "" if value is None else str(value)
