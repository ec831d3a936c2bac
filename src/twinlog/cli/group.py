"""`twinlog group`: who reads what, how far behind, and moving or deleting groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Record, Table, plain
from twinlog.cli.reach import Reached, reached, site_options
from twinlog.cli.sizes import seconds
from twinlog.errors import Findings, KafkaError, UsageError

if TYPE_CHECKING:
    from twinlog.wire.groups import Group

command = frame.group("group", "Groups of consumers: members, lag, reset and delete.")
COLOURS = {"ok": "green", "unknown": "yellow", "falling behind": "yellow"}
NOTHING_READ = "nothing was committed, and no member has a partition"
_type_option = click.option(
    "--type",
    "kind",
    type=click.Choice(["classic", "consumer", "share", "streams"]),
    help="Only groups of this kind.",
)


@frame.command(parent=command, name="list", example="twinlog group list --type share")
@_type_option
@site_options
def list_groups(
    ctx: frame.Context, kind: str | None, site: str | None, user: str | None, timeout: float
) -> None:
    """List the groups of a site, with their kind and state."""
    from twinlog.wire import groups

    with reached(ctx, site, user, timeout) as reach:
        found = [group for group in groups.list_groups(reach.cluster) if kind in (None, group.type)]
    rows = [{"group": one.name, "type": one.type, "state": one.state} for one in found]
    ctx.emit(Table([Column("group"), Column("type"), Column("state")], rows, empty="no groups"))


@frame.command(
    parent=command,
    name="lag",
    example="""
    twinlog group lag
    twinlog group lag stock-1 --partitions
    """,
)
@click.argument("names", nargs=-1)
@click.option("--partitions", is_flag=True, help="Every partition, not only groups.")
@_type_option
@site_options
def lag(
    ctx: frame.Context,
    names: tuple[str, ...],
    partitions: bool,
    kind: str | None,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Show how far groups are behind, in records and in seconds, and how they are doing.

    Seconds are the age of the oldest record that was not read. The status has no thresholds: it compares
    the last commits with what was written meanwhile. What a member reads and never committed is unknown,
    and so is the lag of its group. Exit code 3: a group is falling behind, stalled, stopped or rewound.
    """
    from twinlog.ops import group_lag

    with reached(ctx, site, user, timeout) as reach:
        wanted = [group for group in _named(reach, names) if kind in (None, group.type)]
        found = group_lag.observe(reach.cluster, wanted)
    columns = [
        Column("lag_records", "behind", right=True),
        Column("lag_s", "seconds", right=True, show=seconds),
        Column("commit_age_s", "last commit", right=True, show=seconds),
        Column("status", style=_colour),
    ]
    if partitions:
        places = [place for one in found for place in one.places]
        head = [Column("group"), Column("topic"), Column("partition", right=True)]
        numbers = [Column("committed", right=True), Column("end", right=True)]
        ctx.emit(Table([*head, *numbers, *columns], places, empty=NOTHING_READ))
    else:
        head = [Column("group"), Column("type"), Column("state"), Column("partitions", right=True)]
        ctx.emit(Table([*head, *columns], found, empty="no groups"))
    ill = [one.group for one in found if one.status.wants_attention]
    if ill:
        named = ", ".join(ill[:5]) + (f" and {len(ill) - 5} more" if len(ill) > 5 else "")
        raise Findings(f"not well: {named}", hint=f"twinlog group describe {ill[0]}")


@frame.command(parent=command, name="describe", example="twinlog group describe stock-1")
@click.argument("name")
@site_options
def describe(ctx: frame.Context, name: str, site: str | None, user: str | None, timeout: float) -> None:
    """Show one group: its state and assignor, its members, and its lag by partition."""
    from twinlog.ops import group_lag
    from twinlog.wire import groups

    with reached(ctx, site, user, timeout) as reach:
        (group,) = _named(reach, (name,))
        membership = groups.describe(reach.cluster, [name]).get(name)
        (found,) = group_lag.observe(reach.cluster, [group])
        coordinator = next(iter(reach.cluster.retry(lambda: groups.by_coordinator(reach.cluster, [name]))))
    value = {
        "group": name,
        "type": group.type,
        "state": membership.state if membership is not None else group.state,
        "assignor": (membership.assignor if membership is not None else "") or "none",
        "coordinator": coordinator,
        "lag_records": found.lag_records,
        "lag_s": found.lag_s,
        "commit_age_s": found.commit_age_s,
        "status": found.status,
    }
    titles = {"lag_records": "behind", "lag_s": "seconds", "commit_age_s": "last commit"}
    columns = [
        Column(key, titles.get(key, ""), show=seconds if key.endswith("_s") else plain) for key in value
    ]
    place_columns = [Column("topic"), *(Column(key, right=True) for key in ("partition", "committed", "end"))]
    place_columns += [
        Column("lag_records", "behind", right=True),
        Column("lag_s", "seconds", right=True, show=seconds),
        Column("status", style=_colour),
    ]
    ctx.emit(
        Record(columns, value, "group"),
        _members_table(_member_rows(membership.members if membership is not None else ())),
        Table(place_columns, found.places, "partitions", empty=NOTHING_READ),
    )


@frame.command(parent=command, name="members", example="twinlog group members stock-1")
@click.argument("name")
@site_options
def members(ctx: frame.Context, name: str, site: str | None, user: str | None, timeout: float) -> None:
    """Show who is in a group and what each member reads; one without a partition is idle."""
    from twinlog.wire import groups

    with reached(ctx, site, user, timeout) as reach:
        _named(reach, (name,))
        membership = groups.describe(reach.cluster, [name]).get(name)
    ctx.emit(_members_table(_member_rows(membership.members if membership is not None else ())))


@frame.command(
    parent=command,
    name="reset",
    confirms=True,
    example="""
    twinlog group reset stock-1 --to beginning
    twinlog group reset stock-1 --topic orders --to 2026-01-31T12:00 --yes
    twinlog group reset stock-1 --shift-by -100 --yes
    """,
)
@click.argument("name")
@click.option("--to", metavar="WHERE", help="beginning, end, an offset, -N, so long ago (10m), or a time.")
@click.option("--shift-by", type=int, metavar="N", help="So many records on, or back if below zero.")
@click.option("--topic", "topic_names", multiple=True, help="Only this topic; may be repeated.")
@click.option(
    "--partition", "partitions", multiple=True, type=click.IntRange(min=0), help="Only this one of the topic."
)
@site_options
def reset(
    ctx: frame.Context,
    name: str,
    to: str | None,
    shift_by: int | None,
    topic_names: tuple[str, ...],
    partitions: tuple[int, ...],
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Move a group to other offsets; without --yes only the plan is shown.

    The group must have no members. A group that is not there yet is made by giving it offsets.
    """
    from twinlog.ops import catalogue, group_reset, spans
    from twinlog.wire.groups import EMPTY, Group

    if (to is None) == (shift_by is None):
        raise UsageError(
            "say where to: --to or --shift-by", hint=f"twinlog group reset {name} --to beginning"
        )
    if partitions and len(topic_names) != 1:
        raise UsageError(
            "--partition belongs to one --topic", hint=f"twinlog group reset {name} --topic NAME …"
        )
    where = spans.parse(to) if to is not None else None
    with reached(ctx, site, user, timeout) as reach:
        known = _known(reach, name)
        group = known if known is not None else Group(name, EMPTY, "classic", "consumer")
        if known is None and not topic_names:
            raise _no_group(name, reach.cluster.where)
        group_reset.refuse_members(group, reach.cluster.where)
        places = (
            catalogue.places_of(catalogue.existing(reach.cluster, topic_names), partitions)
            if topic_names
            else []
        )
        moves = group_reset.plan(reach.cluster, group, places, to=where, by=shift_by)
        if ctx.yes:
            group_reset.carry_out(reach.cluster, group, moves)
    columns = [
        Column("topic"),
        *(Column(key, right=True) for key in ("partition", "before", "after", "records")),
    ]
    ctx.emit(Table([*columns, Column("end", right=True)], moves))
    if any(move.records != 0 for move in moves):
        ctx.need_yes(f"group '{name}' would go on there", where=f"site {reach.site}")


@frame.command(parent=command, name="delete", confirms=True, example="twinlog group delete stock-1 --yes")
@click.argument("name")
@click.option(
    "--topic", "topic_names", multiple=True, help="Only what it committed for this topic; may be repeated."
)
@site_options
def delete(
    ctx: frame.Context,
    name: str,
    topic_names: tuple[str, ...],
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Delete a group that has no members, with all that it committed."""
    from twinlog.ops import group_lag, group_reset
    from twinlog.wire import group_removal

    with reached(ctx, site, user, timeout) as reach:
        (group,) = _named(reach, (name,))
        group_reset.refuse_members(group, reach.cluster.where)
        held = group_lag.positions(reach.cluster, [group]).get(name, {})
        places = [place for place in held if not topic_names or place[0] in topic_names]
        ctx.need_yes(f"group '{name}' would forget {len(places)} offsets", where=f"site {reach.site}")
        if topic_names:
            group_removal.forget(reach.cluster, name, places)
        else:
            group_removal.delete(reach.cluster, name)
    value = {"group": name, "deleted": not topic_names, "offsets": len(places)}
    ctx.emit(Record([Column("group"), Column("deleted"), Column("offsets")], value))


def _named(reach: Reached, names: Sequence[str]) -> list[Group]:
    """The named groups, or all; raises for one that is not there."""
    from twinlog.wire import groups

    found = {group.name: group for group in groups.list_groups(reach.cluster)}
    for name in names:
        if name not in found:
            raise _no_group(name, reach.cluster.where)
    return [found[name] for name in names] if names else list(found.values())


def _known(reach: Reached, name: str) -> Group | None:
    from twinlog.wire import groups

    return next((group for group in groups.list_groups(reach.cluster) if group.name == name), None)


def _no_group(name: str, where: str) -> KafkaError:
    return KafkaError(
        f"there is no group '{name}'", code="GROUP_ID_NOT_FOUND", where=where, hint="twinlog group list"
    )


def _member_rows(found: Sequence[Any]) -> list[dict[str, Any]]:
    return [
        {
            "member": one.id,
            "client_id": one.client_id,
            "host": one.host,
            "instance_id": one.instance_id,
            "idle": not one.assigned,
            "assigned": [f"{topic}-{index}" for topic, index in sorted(one.assigned)],
        }
        for one in found
    ]


def _members_table(rows: Sequence[dict[str, Any]]) -> Table:
    columns = [Column("member"), Column("client_id"), Column("host"), Column("instance_id")]
    columns += [Column("idle", style=lambda idle: "yellow" if idle else ""), Column("assigned")]
    return Table(columns, rows, "members", empty="no members")


def _colour(value: Any) -> str:
    return COLOURS.get(str(value), "red")
