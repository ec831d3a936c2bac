"""`twinlog topic`: look at topics, their offsets and their sizes; `topic_changes` has what changes them."""

from __future__ import annotations

from typing import Any

import click

from twinlog.cli import frame, topic_advise, topic_changes
from twinlog.cli.output import Column, Table
from twinlog.cli.reach import reached, site_options
from twinlog.errors import Findings

command = frame.group("topic", "List, describe, make, change, trim and delete topics.")
for _other in (
    topic_changes.create,
    topic_changes.alter,
    topic_changes.trim,
    topic_changes.delete,
):
    command.add_command(_other)
command.add_command(topic_advise.advise)


@frame.command(
    parent=command,
    name="list",
    example="""
    twinlog topic list
    twinlog topic list --behind -o json
    """,
)
@click.option("--internal", is_flag=True, help="Kafka's own topics and Twinlog's too.")
@click.option("--behind", is_flag=True, help="Only topics with a replica out of sync or without a leader.")
@site_options
def list_topics(
    ctx: frame.Context, internal: bool, behind: bool, site: str | None, user: str | None, timeout: float
) -> None:
    """List the topics of a site."""
    from twinlog.ops import catalogue
    from twinlog.wire import topics

    with reached(ctx, site, user, timeout) as reach:
        found = topics.describe(reach.cluster)
        rows = catalogue.rows(found, reach.home.bus.topics, internal=internal)
        if behind:
            rows = [row for row in rows if row.under_replicated or row.without_leader]
    columns = [
        Column("topic"),
        Column("partitions", right=True),
        Column("replication", "copies", right=True),
        Column("under_replicated", "behind", right=True),
        Column("without_leader", "no leader", right=True),
        Column("declared", "in file"),
    ]
    ctx.emit(Table(columns, rows, empty="no topics" if not behind else "every replica is in sync"))


@frame.command(parent=command, name="describe", example="twinlog topic describe orders")
@click.argument("names", nargs=-1, required=True)
@site_options
def describe(
    ctx: frame.Context, names: tuple[str, ...], site: str | None, user: str | None, timeout: float
) -> None:
    """Show who leads and holds each partition of topics, and the settings that were given to them.

    Eligible are replicas that may lead without a loss although they are not in sync (KIP-966).
    Exit code 3: a partition has no leader, or a replica is out of sync.
    """
    from twinlog.ops import catalogue
    from twinlog.wire import configs

    with reached(ctx, site, user, timeout) as reach:
        found = catalogue.existing(reach.cluster, names)
        settings = configs.describe_many(reach.cluster, configs.Kind.TOPIC, names)
    given = [
        {"topic": topic, "setting": name, "value": entry.value}
        for topic, entries in settings.items()
        for name, entry in sorted(entries.items())
        if entry.source is configs.Source.TOPIC
    ]
    partitions = [
        {
            "topic": topic.name,
            "partition": part.index,
            "leader": part.leader if part.has_leader else None,
            "replicas": part.replicas,
            "in_sync": part.isr,
            "eligible": part.elr,
            "offline": part.offline,
        }
        for topic in found
        for part in topic.partitions
    ]
    ctx.emit(
        Table(
            [Column("topic"), Column("id"), Column("partitions", right=True), Column("copies", right=True)],
            [
                {
                    "topic": topic.name,
                    "id": str(topic.id),
                    "partitions": len(topic.partitions),
                    "copies": topic.replication,
                }
                for topic in found
            ],
            "topics",
        ),
        Table(
            [
                Column("topic"),
                Column("partition", right=True),
                Column("leader", right=True, show=lambda leader: "none" if leader is None else str(leader)),
                Column("replicas"),
                Column("in_sync"),
                Column("eligible"),
                Column("offline"),
            ],
            partitions,
            "partitions",
        ),
        Table([Column("topic"), Column("setting"), Column("value")], given, "settings", empty="no settings"),
    )
    ill = sum(
        not part.has_leader or len(part.isr) < len(part.replicas) for one in found for part in one.partitions
    )
    if ill:
        raise Findings(
            f"not every replica is in sync: {ill} partitions", hint="are all brokers up? twinlog status"
        )


@frame.command(
    parent=command,
    name="offsets",
    example="""
    twinlog topic offsets orders
    twinlog topic offsets orders --at 10m
    """,
)
@click.argument("names", nargs=-1, required=True)
@click.option(
    "--at",
    metavar="WHERE",
    help="Also the offset at a time, like 2026-01-31T12:00, or so long ago, like 10m.",
)
@site_options
def offsets(
    ctx: frame.Context,
    names: tuple[str, ...],
    at: str | None,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Show where each partition begins and ends.

    The last stable offset is where consumers with read_committed end: behind it a transaction is open.
    """
    from twinlog.ops import catalogue, contents, spans

    where = spans.parse(at) if at is not None else None
    with reached(ctx, site, user, timeout) as reach:
        found = catalogue.existing(reach.cluster, names)
        told = contents.offset_rows(reach.cluster, found)
        held = {(row.topic, row.partition): spans.Bounds(row.start, row.end) for row in told}
        there = spans.offsets_of(reach.cluster, where, held) if where is not None else {}
    rows: list[dict[str, Any]] = [
        {
            "topic": row.topic,
            "partition": row.partition,
            "start": row.start,
            "end": row.end,
            "last_stable": row.last_stable,
            "records": row.records,
            **({"at": there[(row.topic, row.partition)]} if where is not None else {}),
        }
        for row in told
    ]
    columns = [Column("topic"), *(Column(key, right=True) for key in ("partition", "start", "end"))]
    columns += [Column("last_stable", right=True), Column("records", right=True)]
    ctx.emit(Table([*columns, *([Column("at", right=True)] if where is not None else [])], rows))


@frame.command(parent=command, name="size", example="twinlog topic size")
@click.argument("names", nargs=-1)
@click.option("--internal", is_flag=True, help="Kafka's own topics and Twinlog's too.")
@site_options
def size(
    ctx: frame.Context,
    names: tuple[str, ...],
    internal: bool,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Show what topics take on disk, the largest first."""
    from twinlog.cli.sizes import readable
    from twinlog.ops import catalogue, contents
    from twinlog.wire import topics

    with reached(ctx, site, user, timeout) as reach:
        if names:
            found = catalogue.existing(reach.cluster, names)
        else:
            every = topics.describe(reach.cluster)
            found = tuple(topic for topic in every if internal or not catalogue.is_internal(topic))
        rows = sorted(contents.sizes(reach.cluster, found), key=lambda row: -row.with_copies_bytes)
    ctx.emit(
        Table(
            [
                Column("topic"),
                Column("partitions", right=True),
                Column("size_bytes", "one copy", right=True, show=readable),
                Column("with_copies_bytes", "all copies", right=True, show=readable),
                Column("largest_partition", "largest", right=True),
                Column("largest_bytes", "it takes", right=True, show=readable),
            ],
            rows,
            empty="no topics",
        )
    )
