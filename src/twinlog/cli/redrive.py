"""`twinlog redrive`: send dead letters back to the topics that they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Record, Table
from twinlog.cli.reach import Reached, reached, refuse_copy, site_options, write_timeout_s
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from twinlog.client.retries import Letters

GROUP = "redrive-{topic}"


@frame.command(
    confirms=True,
    example="""
    twinlog redrive orders.dead
    twinlog redrive orders.dead --yes
    twinlog redrive orders.dead --to orders --user shop --group shop-redrive --yes
    """,
)
@click.argument("topic")
@click.option("--to", metavar="TOPIC", help="Where records go that do not say where they came from.")
@click.option("--group", metavar="NAME", help="Remembers what was sent back; by default redrive-TOPIC.")
@site_options
def command(
    ctx: frame.Context,
    topic: str,
    to: str | None,
    group: str | None,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Send the dead letters of a topic back to where they came from, as if they had never been tried.

    Without --yes only shows where they would go, and why they failed. A group remembers how far this
    came: the next time only newer letters are sent. One that is under way when this is killed is sent twice.
    A letter has 30 s to be written, or --timeout if that is given.
    """
    from twinlog.wire.acls import Operation

    name = group if group is not None else GROUP.format(topic=topic)
    with reached(ctx, site, user, timeout) as reach:
        refuse_copy(reach, topic, "nothing is sent back")
        reach.topic(topic, Operation.READ)
        letters = _look(reach, topic, name, timeout)
        for target in {one.topic or to or _homeless(topic) for one in letters}:
            reach.topic(target, Operation.WRITE)
        sent = _send(reach, topic, name, to, write_timeout_s(timeout)) if ctx.yes and letters else 0
    told = {"topic": topic, "group": name, "sent": sent}
    columns = [Column("topic", "to", show=lambda where: where or to or "unknown"), Column("reason")]
    ctx.emit(
        Record([Column("topic"), Column("group"), Column("sent", "sent back")], told, "redrive"),
        Table([*columns, Column("records", right=True)], letters, "letters", empty="no letters are left"),
    )
    if letters:
        count = sum(one.records for one in letters)
        ctx.need_yes(f"{count} records would be written again", where=f"site {reach.site}")


def _look(reach: Reached, topic: str, group: str, timeout: float) -> list[Letters]:
    """What the group has not sent back yet, sorted out."""
    from twinlog.client.retries import sorted_out
    from twinlog.ops import catalogue, reading, spans
    from twinlog.wire import groups

    places = catalogue.places_of(catalogue.existing(reach.cluster, [topic]))
    held = spans.bounds_of(reach.cluster, places)
    done = groups.committed(reach.cluster, [group])[group]
    begin = {
        place: max(bounds.start, done[place].offset if place in done else 0) for place, bounds in held.items()
    }
    options = reading.Options(timeout_s=max(timeout, 0.1), tuning=reach.tuning)
    ends = {place: bounds.end for place, bounds in held.items()}
    return sorted_out(reading.from_places(reach.access, begin, ends, options))


def _send(reach: Reached, topic: str, group: str, to: str | None, timeout_s: float) -> int:
    from twinlog.client.consumer import Consumer
    from twinlog.client.producer import Producer
    from twinlog.client.redriving import redrive
    from twinlog.client.ways import Ways

    ways = Ways(tuning=reach.tuning)
    with (
        Producer(reach.access, timeout_s=timeout_s, ways=ways) as producer,
        Consumer(reach.access, group=group, topics=[topic], ways=ways) as consumer,
    ):
        return redrive(consumer, producer, to=to)


def _homeless(topic: str) -> str:
    raise UsageError(
        f"records of topic '{topic}' do not say where they came from",
        hint="name a topic for them: --to TOPIC",
    )
