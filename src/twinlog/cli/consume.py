"""`twinlog consume`: print records of a topic, in kcat's formats or as lines of JSON."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING

import click

from twinlog.cli import frame
from twinlog.cli.reach import Reached, reached, site_options
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from twinlog.ops.reading import Options
    from twinlog.wire.received import Received
    from twinlog.wire.topics import TopicState

# Written out, because the module that defines them is too heavy for `--help`; a test compares them.
TYPES = ["bytes", "hex", "byte", "short", "int", "long", "float", "double"]


@frame.command(
    example=r"""
    twinlog consume orders
    twinlog consume orders --from 10m --follow --format '%T %k: %s\n'
    twinlog consume orders --key-type long --key-separator ' ' --max-messages 10
    twinlog consume orders --json --grep 'refused' --from 2026-01-31T12:00 --until 2026-01-31T13:00
    twinlog consume orders --user stock --group stock-1
    """
)
@click.argument("topic")
@click.option(
    "--from", "begin", metavar="WHERE", help="beginning (default), end, an offset, -N, 10m ago, or a time."
)
@click.option(
    "--until", metavar="WHERE", help="Stop there: the same forms; by default where the topic ends now."
)
@click.option("--follow", is_flag=True, help="Go on with new records, until Ctrl-C.")
@click.option(
    "--partition", "partitions", multiple=True, type=click.IntRange(min=0), help="Only this; may be repeated."
)
@click.option("--max-messages", type=click.IntRange(min=0), help="Stop after so many records.")
@click.option("--group", help="Read as a member of this group, and commit.")
@click.option(
    "--format", "form", metavar="TEXT", help=r"kcat's: %t %p %o %k %K %s %S %R %T %h %% and \n \t \xNN."
)
@click.option("--key-separator", metavar="TEXT", help="Print the key, this, and the value.")
@click.option("--json", "as_json", is_flag=True, help="One object a line; `produce --json` takes it back.")
@click.option("--key-type", type=click.Choice(TYPES), default="bytes", help="How a key is shown.")
@click.option("--value-type", type=click.Choice(TYPES), default="bytes", help="How a value is shown.")
@click.option("--grep", metavar="REGEX", help="Only records whose value matches.")
@click.option("--key", "keys", multiple=True, help="Only records with this key; may be repeated.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME[=VALUE]", help="Only records with this header."
)
@click.option("--uncommitted", is_flag=True, help="Also records of open and aborted transactions.")
@site_options
def command(
    ctx: frame.Context,
    topic: str,
    begin: str | None,
    until: str | None,
    follow: bool,
    partitions: tuple[int, ...],
    max_messages: int | None,
    group: str | None,
    form: str | None,
    key_separator: str | None,
    as_json: bool,
    key_type: str,
    value_type: str,
    grep: str | None,
    keys: tuple[str, ...],
    headers: tuple[str, ...],
    uncommitted: bool,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Print the records of a topic, from its beginning to where it ends now.

    Without --group nothing is committed anywhere. Partitions come in the order in which their records
    arrive; within a partition the order is that of the log.
    """
    from twinlog.ops import filters
    from twinlog.ops.inputs import header
    from twinlog.ops.reading import Options
    from twinlog.wire.acls import Operation

    if follow and until is not None:
        raise UsageError("--follow has no end and --until names one", hint="leave one of the two out")
    if group is not None and (partitions or until is not None):
        raise UsageError(
            "a member of a group is given its partitions, and reads to their ends",
            hint="leave --partition and --until out, or --group",
        )
    shown = _shown(form, key_separator, as_json or ctx.as_json, key_type, value_type)
    wanted = filters.wanted(
        keys=[key.encode("utf-8", "surrogateescape") for key in keys],
        pattern=grep,
        headers=[header(text) for text in headers],
    )
    with reached(ctx, site, user, timeout) as reach:
        options = Options(follow, not uncommitted, max(timeout, 0.1), reach.tuning)
        found = reach.topic(topic, Operation.READ)
        if group is not None:
            records = _in_group(reach, topic, group, begin, options)
        else:
            records = _from_places(reach, found, partitions, (begin or "beginning", until), options)
        chosen = (record for record in records if wanted(record))
        out = sys.stdout.buffer
        try:
            for record in islice(chosen, max_messages):
                out.write(shown(record))
                if follow:
                    out.flush()
        finally:
            records.close()
            out.flush()


def _shown(
    form: str | None, key_separator: str | None, as_json: bool, key_type: str, value_type: str
) -> Callable[[Received], bytes]:
    from twinlog.ops import formats
    from twinlog.ops.formats import KeyType, shown_as

    if as_json:
        if form is not None or key_separator is not None:
            raise UsageError("--json has a form of its own", hint="leave --format and --key-separator out")
        key = shown_as(KeyType(key_type)) if key_type != "bytes" else None
        value = shown_as(KeyType(value_type)) if value_type != "bytes" else None
        return lambda record: formats.as_json(record, key=key, value=value)
    if form is not None and key_separator is not None:
        raise UsageError("--format says how a key is printed", hint="leave --key-separator out")
    if key_separator is not None:
        form = formats.KEYED.format(separator=key_separator.replace("%", "%%"))
    return formats.compile_format(
        form if form is not None else formats.LINES,
        key=shown_as(KeyType(key_type)),
        value=shown_as(KeyType(value_type)),
    )


def _from_places(
    reach: Reached,
    topic: TopicState,
    partitions: tuple[int, ...],
    span: tuple[str, str | None],
    options: Options,
) -> Generator[Received, None, None]:
    from twinlog.ops import catalogue, reading, spans

    begin = spans.parse(span[0])
    end = spans.parse(span[1]) if span[1] is not None else spans.Where(spans.Kind.END)
    places = catalogue.places_of([topic], partitions)
    absent = set(partitions) - {index for _, index in places}
    if absent:
        raise UsageError(
            f"topic '{topic.name}' has no partition {min(absent)}",
            hint=f"twinlog topic describe {topic.name}",
        )
    held = spans.bounds_of(reach.cluster, places)
    positions = spans.offsets_of(reach.cluster, begin, held)
    return reading.from_places(reach.access, positions, spans.offsets_of(reach.cluster, end, held), options)


def _in_group(
    reach: Reached, topic: str, group: str, begin: str | None, options: Options
) -> Generator[Received, None, None]:
    from twinlog.ops import reading

    starts = {None: "earliest", "beginning": "earliest", "end": "latest"}
    if begin not in starts:
        raise UsageError(
            "a group begins at the beginning or the end, and then goes on where it stands",
            hint=f"twinlog group reset {group} --topic {topic} --to {begin}",
        )
    return reading.in_group(reach.access, topic, group, starts[begin], options)
