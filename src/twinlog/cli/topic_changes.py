"""What changes topics: `topic create`, `alter`, `trim` and `delete`, each with the line for the file.

The commands are added to their family by `topic`. A topic that is a copy is changed at the active site
and nowhere else; the mirror brings the change over.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Record, Table
from twinlog.cli.reach import Reached, file_differs, reached, refuse_copy, site_options
from twinlog.errors import UsageError

LOSES_ORDER = "records of one key may stand in two partitions from now on, and their order is lost"
_setting_option = click.option(
    "--config", "given", multiple=True, metavar="KEY=VALUE", help="A setting; may be repeated."
)


def pairs(given: tuple[str, ...]) -> dict[str, str]:
    """Settings as they were typed."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError(f"'{text}' is no setting", hint="--config retention.ms=86400000")
        found[key.strip()] = value.strip()
    return found


@frame.command(
    name="create",
    example="""
    twinlog topic create orders --partitions 6
    twinlog topic create log --partitions 3 --config retention.ms=86400000
    """,
)
@click.argument("name")
@click.option("--partitions", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--replication", type=click.IntRange(min=1), help="Copies of each partition; else 3, or fewer brokers."
)
@_setting_option
@site_options
def create(
    ctx: frame.Context,
    name: str,
    partitions: int,
    replication: int | None,
    given: tuple[str, ...],
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Make a topic.

    Better is a line in the file and `twinlog apply`: then every site has it, now and when it is brought
    up anew. This command prints that line.
    """
    from twinlog.ops.lines import topic_line
    from twinlog.ops.world import broker_count
    from twinlog.wire import topics

    settings = pairs(given)
    with reached(ctx, site, user, timeout) as reach:
        refuse_copy(reach, name, "a topic is not made")
        brokers = broker_count(reach.home, reach.site, reach.cluster)
        copies = replication if replication is not None else min(3, brokers)
        topics.create(reach.cluster, topics.NewTopic(name, partitions, copies, configs=settings))
        up = len(reach.cluster.brokers())
        if up < copies <= brokers:
            ctx.progress.note(f"{up} of {brokers} brokers are up: the other copies follow with their brokers")
        if name not in reach.home.bus.topics:
            line = topic_line(name, partitions=partitions, replication=replication, config=settings)
            what = f"the file does not have topic '{name}': only site {reach.site} has it"
            file_differs(ctx, reach.home, "topics", what, line)
    value = {"topic": name, "partitions": partitions, "copies": copies, "settings": settings}
    ctx.emit(Record([Column("topic"), Column("partitions"), Column("copies"), _settings_column()], value))


@frame.command(
    name="alter",
    confirms=True,
    example="""
    twinlog topic alter orders --partitions 12 --yes
    twinlog topic alter orders --config retention.ms=86400000 --unset max.message.bytes
    """,
)
@click.argument("name")
@click.option(
    "--partitions", type=click.IntRange(min=1), help="So many from now on; never fewer than there are."
)
@_setting_option
@click.option("--unset", multiple=True, metavar="KEY", help="Back to the site's default; may be repeated.")
@site_options
def alter(
    ctx: frame.Context,
    name: str,
    partitions: int | None,
    given: tuple[str, ...],
    unset: tuple[str, ...],
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Give a topic more partitions, or other settings.

    With more partitions most keys go to another one, so readers that count on the order of a key's
    records see it broken once; that needs --yes. So does a setting that lets Kafka delete records.
    """
    from twinlog.ops import catalogue
    from twinlog.ops.lines import topic_line
    from twinlog.ops.plan import loses_records
    from twinlog.wire import configs, topics

    settings = pairs(given)
    if partitions is None and not settings and not unset:
        raise UsageError("nothing to change", hint=f"twinlog topic alter {name} --partitions 12 --yes")
    with reached(ctx, site, user, timeout) as reach:
        refuse_copy(reach, name, "a topic is not changed")
        (found,) = catalogue.existing(reach.cluster, [name])
        before = len(found.partitions)
        if partitions is not None and partitions < before:
            raise UsageError(
                f"topic '{name}' has {before} partitions and Kafka cannot take any away",
                where=f"site {reach.site}",
                hint="make another topic and copy its records there",
            )
        widens = partitions is not None and partitions > before
        present = given_settings(reach, name)
        if widens:
            ctx.need_yes(
                f"with {partitions} instead of {before} partitions {LOSES_ORDER}", where=f"topic {name}"
            )
        if loses_records(settings, unset, present):
            ctx.need_yes("Kafka will delete records that it keeps now", where=f"topic {name}")
        if widens and partitions is not None:
            topics.add_partitions(reach.cluster, name, partitions)
        configs.alter(reach.cluster, configs.Kind.TOPIC, name, values=settings, unset=unset)
        after = partitions if widens and partitions is not None else before
        kept = {**{key: value for key, value in present.items() if key not in unset}, **settings}
        line = topic_line(name, partitions=after, replication=None, config=kept)
        file_differs(ctx, reach.home, "topics", f"the file does not say this of topic '{name}'", line)
    value = {"topic": name, "partitions": after, "before": before, "settings": settings, "unset": unset}
    columns = [Column("topic"), Column("partitions"), Column("before"), _settings_column(), Column("unset")]
    ctx.emit(Record(columns, value))


@frame.command(
    name="trim",
    confirms=True,
    example="""
    twinlog topic trim orders --before 7d
    twinlog topic trim orders --before 1200 --partition 0 --yes
    """,
)
@click.argument("name")
@click.option(
    "--before", required=True, metavar="WHERE", help="An offset, end, -N, so long ago (7d), or a time."
)
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    type=click.IntRange(min=0),
    help="Only there; may be repeated.",
)
@site_options
def trim(
    ctx: frame.Context,
    name: str,
    before: str,
    partitions: tuple[int, ...],
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Delete the oldest records of a topic, up to a place.

    Without --yes only what would go is shown. What is deleted is gone at the standby too: the mirror
    moves the beginning of its logs along.
    """
    from twinlog.ops import catalogue, spans
    from twinlog.wire.deletion import delete_records

    where = spans.parse(before)
    with reached(ctx, site, user, timeout) as reach:
        refuse_copy(reach, name, "records are not deleted")
        found = catalogue.existing(reach.cluster, [name])
        places = catalogue.places_of(found, partitions)
        if not places:
            raise UsageError(f"topic '{name}' has no such partition", hint=f"twinlog topic describe {name}")
        held = spans.bounds_of(reach.cluster, places)
        until = spans.offsets_of(reach.cluster, where, held)
        rows = [
            {
                "topic": topic,
                "partition": index,
                "start": held[(topic, index)].start,
                "new_start": offset,
                "records": offset - held[(topic, index)].start,
            }
            for (topic, index), offset in sorted(until.items())
        ]
        goes = sum(row["records"] for row in rows if isinstance(row["records"], int))
        if ctx.yes and goes:
            told = delete_records(reach.cluster, {place: offset for place, offset in until.items()})
            rows = [{**row, "new_start": told[(name, int(str(row["partition"])))]} for row in rows]
    keys = ("partition", "start", "new_start", "records")
    ctx.emit(Table([Column("topic"), *(Column(key, right=True) for key in keys)], rows))
    if goes:
        ctx.need_yes(f"{goes} records of topic '{name}' would be deleted", where=f"site {reach.site}")


@frame.command(name="delete", confirms=True, example="twinlog topic delete orders --yes")
@click.argument("name")
@site_options
def delete(ctx: frame.Context, name: str, site: str | None, user: str | None, timeout: float) -> None:
    """Delete a topic with all its records."""
    from twinlog.ops import catalogue, contents
    from twinlog.wire import topics

    with reached(ctx, site, user, timeout) as reach:
        refuse_copy(reach, name, "a topic is not deleted")
        (found,) = catalogue.existing(reach.cluster, [name])
        if catalogue.is_internal(found):
            raise UsageError(f"topic '{name}' belongs to Kafka or to Twinlog", hint="twinlog topic list")
        is_led = all(one.has_leader for one in found.partitions)  # else nobody can say how many there are
        count = sum(row.records for row in contents.offset_rows(reach.cluster, [found])) if is_led else None
        of_it = f"its {count}" if is_led else "all of its"
        ctx.need_yes(f"topic '{name}' and {of_it} records would be gone", where=f"site {reach.site}")
        topics.delete(reach.cluster, name)
        if name in reach.home.bus.topics:
            what = f"the file still has topic '{name}': the next apply makes it again, empty"
            file_differs(ctx, reach.home, "topics", what)
    ctx.emit(
        Record(
            [Column("topic"), Column("deleted"), Column("records")],
            {"topic": name, "deleted": True, "records": count},
        )
    )


def given_settings(reach: Reached, name: str) -> dict[str, str]:
    """The settings that were given to a topic itself."""
    from twinlog.wire import configs

    entries = configs.describe(reach.cluster, configs.Kind.TOPIC, name)
    return {
        key: entry.value
        for key, entry in entries.items()
        if entry.source is configs.Source.TOPIC and entry.value is not None
    }


def _settings_column() -> Column:
    return Column("settings", show=_shown)


def _shown(value: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={text}" for key, text in value.items()) or "none"
