"""`twinlog events check`: how the events of a topic are designed, by a sample of it."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Record, Table
from twinlog.cli.reach import reached, site_options
from twinlog.errors import Findings

command = frame.group("events", "Look at how the events of a topic are designed.")


@frame.command(parent=command, example="twinlog events check orders --sample 1000")
@click.argument("topic")
@click.option(
    "--sample", type=click.IntRange(min=1), default=500, show_default=True, help="So many records at most."
)
@site_options
def check(
    ctx: frame.Context, topic: str, sample: int, site: str | None, user: str | None, timeout: float
) -> None:
    """Give advice on the events of a topic, by its newest records.

    Four practices: names of one pattern, in the past tense; narrow data types; events of a single purpose;
    one type of event in a topic. Values must be JSON objects, types named in a header or field like `type`.
    Exit code 3: there is advice.
    """
    from twinlog.ops import catalogue, event_rules, reading, spans
    from twinlog.wire.acls import Operation

    with reached(ctx, site, user, timeout) as reach:
        places = catalogue.places_of([reach.topic(topic, Operation.READ)])
        held = spans.bounds_of(reach.cluster, places)
        each = max(1, sample // max(1, sum(one.end > one.start for one in held.values())))
        begin = {place: max(one.start, one.end - each) for place, one in held.items()}
        end = {place: one.end for place, one in held.items()}
        options = reading.Options(timeout_s=max(timeout, 0.1), tuning=reach.tuning)
        records = reading.from_places(reach.access, begin, end, options)
        try:
            events = [event_rules.event_of(one.value, one.headers) for one in islice(records, sample)]
        finally:
            records.close()
    advice = event_rules.review(events)
    types = sorted({event.type for event in events if event.type is not None})
    looked: dict[str, Any] = {"topic": topic, "records": len(events), "types": types}
    columns = [Column("practice"), Column("subject"), Column("seen"), Column("records", right=True)]
    ctx.emit(
        Record([Column("topic"), Column("records"), Column("types")], looked, "sample"),
        Table(
            [*columns, Column("advice")],
            advice,
            "advice",
            empty="no advice" if events else "the topic holds no records",
        ),
    )
    if advice:
        raise Findings(
            f"{len(advice)} pieces of advice",
            where=f"topic {topic}",
            hint=f"twinlog consume {topic} --from -10",
        )
