"""`twinlog transactions`: which there are, what they hold up, and ending those that nobody else ends."""

from __future__ import annotations

import time
from typing import Any

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Record, Table
from twinlog.cli.reach import reached, site_options
from twinlog.cli.sizes import seconds
from twinlog.errors import Findings, KafkaError, UsageError

command = frame.group("transactions", "List, describe and abort transactions.")


@frame.command(
    parent=command,
    name="list",
    example="""
    twinlog transactions list
    twinlog transactions list --open --topic orders
    """,
)
@click.option("--open", "opened", is_flag=True, help="What partitions hold open, and whether it hangs.")
@click.option("--topic", "topic_names", multiple=True, help="With --open: only this topic; may be repeated.")
@site_options
def list_transactions(
    ctx: frame.Context,
    opened: bool,
    topic_names: tuple[str, ...],
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """List transactional ids and their states, or with --open what partitions hold open.

    One that hangs is open in a partition and known to no coordinator: readers with read_committed wait
    for ever behind it. Exit code 3 says that one does.
    """
    from twinlog.ops import catalogue, hanging
    from twinlog.wire import topics, transactions

    with reached(ctx, site, user, timeout) as reach:
        if not opened:
            found = transactions.every(reach.cluster)
            rows = [
                {"transactional_id": one.id, "producer_id": one.producer_id, "state": one.state}
                for one in found
            ]
            columns = [Column("transactional_id"), Column("producer_id", right=True), Column("state")]
            ctx.emit(Table(columns, rows, empty="no transactions"))
            return
        if topic_names:
            known = catalogue.existing(reach.cluster, topic_names)
        else:
            known = tuple(one for one in topics.describe(reach.cluster) if not one.internal)
        held = hanging.find(reach.cluster, catalogue.places_of(known))
    ctx.emit(
        Table(
            [
                Column("topic"),
                Column("partition", right=True),
                Column("producer_id", right=True),
                Column("start_offset", right=True),
                Column("last_timestamp_ms", "last record", right=True, show=_ago),
                Column("transactional_id"),
                Column("hangs", style=lambda hangs: "red" if hangs else ""),
            ],
            held,
            empty="no partition holds a transaction open",
        )
    )
    ill = [one for one in held if one.hangs]
    if ill:
        first = ill[0]
        raise Findings(
            f"{len(ill)} transactions hang",
            hint=f"twinlog transactions abort --topic {first.topic} --partition {first.partition} --yes",
        )


@frame.command(parent=command, name="describe", example="twinlog transactions describe shop-1")
@click.argument("transactional_id")
@site_options
def describe(
    ctx: frame.Context, transactional_id: str, site: str | None, user: str | None, timeout: float
) -> None:
    """Show one transactional id: its producer, its state, since when, and the partitions that it wrote to."""
    from twinlog.wire import transactions

    with reached(ctx, site, user, timeout) as reach:
        found = transactions.describe(reach.cluster, transactional_id)
        if found is None:
            raise _unknown(transactional_id, reach.cluster.where)
    now_ms = time.time_ns() // 1_000_000
    value: dict[str, Any] = {
        "transactional_id": found.id,
        "state": found.state,
        "coordinator": found.coordinator,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_s": found.timeout_ms / 1000,
        "open_s": None if found.started_ms is None else max(0, now_ms - found.started_ms) / 1000,
        "partitions": [f"{topic}-{index}" for topic, index in found.partitions],
    }
    columns = [Column(key) if key != "open_s" else Column(key, "open since", show=_since) for key in value]
    ctx.emit(Record(columns, value))


@frame.command(
    parent=command,
    name="abort",
    confirms=True,
    example="""
    twinlog transactions abort shop-1 --yes
    twinlog transactions abort --topic orders --partition 0 --yes
    """,
)
@click.argument("transactional_id", required=False)
@click.option("--topic", help="The topic that holds a hanging transaction open.")
@click.option("--partition", type=click.IntRange(min=0), help="Its partition.")
@click.option("--producer-id", type=int, help="The producer, if several hang there.")
@site_options
def abort(
    ctx: frame.Context,
    transactional_id: str | None,
    topic: str | None,
    partition: int | None,
    producer_id: int | None,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Abort an open transaction by its id, or one that hangs by its place.

    The producer that began it is fenced: its next call fails, as if another had taken its id. What it
    wrote in the transaction is never shown to readers with read_committed.
    """
    by_place = topic is not None and partition is not None
    if (transactional_id is None) == (not by_place):
        raise UsageError(
            "say which one: a transactional id, or --topic and --partition",
            hint="twinlog transactions list --open",
        )
    with reached(ctx, site, user, timeout) as reach:
        if transactional_id is not None:
            value = _abort_known(ctx, reach.cluster, transactional_id, f"site {reach.site}")
        else:
            value = _abort_hanging(ctx, reach.cluster, (str(topic), int(partition or 0)), producer_id)
    ctx.emit(Record([Column(key) for key in value], value))


def _abort_known(ctx: frame.Context, cluster: Any, name: str, where: str) -> dict[str, Any]:
    from twinlog.wire import transactions

    found = transactions.describe(cluster, name)
    if found is None:
        raise _unknown(name, cluster.where)
    if found.state != transactions.ONGOING:
        raise KafkaError(
            f"the transaction of '{name}' is not open: {found.state}",
            code="INVALID_TXN_STATE",
            where=cluster.where,
            hint="twinlog transactions list",
        )
    ctx.need_yes(f"what '{name}' wrote in its open transaction would be dropped", where=where)
    transactions.abort(cluster, transactions.Transaction(name, found.producer_id, found.state))
    return {"transactional_id": name, "aborted": True}


def _abort_hanging(
    ctx: frame.Context, cluster: Any, place: tuple[str, int], producer_id: int | None
) -> dict[str, Any]:
    from twinlog.ops import catalogue, hanging

    catalogue.existing(cluster, [place[0]])
    where = f"{place[0]}-{place[1]}"
    one = hanging.the_one(hanging.find(cluster, [place]), producer_id, where)
    ctx.need_yes(
        f"what producer {one.producer_id} wrote from offset {one.start_offset} on would be dropped",
        where=where,
    )
    hanging.end(cluster, one)
    return {"topic": one.topic, "partition": one.partition, "producer_id": one.producer_id, "aborted": True}


def _unknown(name: str, where: str) -> KafkaError:
    return KafkaError(
        f"no coordinator knows the transactional id '{name}'",
        code="TRANSACTIONAL_ID_NOT_FOUND",
        where=where,
        hint="twinlog transactions list",
    )


def _ago(timestamp_ms: int) -> str:
    return f"{seconds(max(0.0, time.time() - timestamp_ms / 1000))} ago"


def _since(open_s: float | None) -> str:
    return "none is open" if open_s is None else seconds(open_s)
