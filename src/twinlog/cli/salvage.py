"""`twinlog salvage`: what only a lost site had, looked at, and written to its topics again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Table

if TYPE_CHECKING:
    from twinlog.sites.home import Home
    from twinlog.traffic.salvaged import Salvaged
    from twinlog.wire.cluster import Cluster

command = frame.group("salvage", "Look at what only a lost site had, and write it again.")
LONGEST_CELL = 60


@frame.command(parent=command, name="list", example="twinlog salvage list")
def list_(ctx: frame.Context) -> None:
    """List what was salvaged, by topic and by the term in which its site was lost."""
    from twinlog.traffic import stock

    home = home_of(ctx)
    with _active(home) as cluster:
        rows = stock.list_salvage(cluster)
    columns = [
        Column("topic"),
        Column("term", right=True),
        Column("records", right=True),
        Column("applied", right=True),
        Column("open", "never committed", right=True),
        Column("bytes", right=True),
        Column("oldest_ms", "oldest", show=_time),
        Column("newest_ms", "newest", show=_time),
    ]
    ctx.emit(Table(columns, rows, empty="nothing was salvaged"))


@frame.command(
    parent=command,
    name="show",
    example="""
    twinlog salvage show orders
    twinlog salvage show orders --partition 2 --limit 1000 -o json
    """,
)
@click.argument("topic")
@click.option("--partition", type=click.IntRange(min=0), help="Only this partition.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
def show(ctx: frame.Context, topic: str, partition: int | None, limit: int) -> None:
    """Show the salvaged records of a topic: where they were, and whether they were applied.

    Keys and values are shown as text if they are UTF-8, else as hexadecimal digits.
    """
    from twinlog.traffic import stock

    home = home_of(ctx)
    with _active(home) as cluster:
        found = stock.show(cluster, topic, partition) if _has_any(home, cluster, topic) else iter(())
        rows = [_row(one, is_applied) for one, is_applied in islice(found, limit)]
        if next(found, None) is not None:
            ctx.progress.note(f"there are more than {limit}: --limit shows them")
    columns = [
        Column("partition", right=True),
        Column("offset", right=True),
        Column("timestamp_ms", "time", show=_time),
        Column("key", show=cell),
        Column("value", show=cell),
        Column("applied"),
        Column("open", "never committed"),
    ]
    ctx.emit(Table(columns, rows, empty=_none_of(topic)))


@frame.command(parent=command, name="apply", confirms=True, example="twinlog salvage apply orders --yes")
@click.argument("topic")
@click.option("--open", "with_open", is_flag=True, help="Also those whose transaction nobody committed.")
def apply(ctx: frame.Context, topic: str, with_open: bool) -> None:
    """Write the salvaged records of a topic to its end again, each at most once.

    They keep their partition, key, value, headers and time, and get the header `twinlog.salvaged`, which
    says where they had been. They come after all that was written since: whether that is right is for
    those to say who know the topic. A run that was killed goes on when it is called again.
    """
    from twinlog.traffic import reapply

    home = home_of(ctx)
    with _active(home) as cluster:
        is_there = _has_any(home, cluster, topic)
        if is_there:
            what = f"the salvaged records of topic {topic} are written to its end"
            ctx.need_yes(what, where=str(home.file))
        chosen = (lambda one: True) if with_open else reapply.is_committed
        with home.state_file.locked("salvage apply"):
            rows = reapply.apply(cluster, topic, chosen) if is_there else []
    columns = [
        Column("topic"),
        Column("partition", right=True),
        Column("new", "written now", right=True),
        Column("applied", "written in all", right=True),
        Column("left", "left out", right=True),
    ]
    ctx.emit(Table(columns, rows, empty=_none_of(topic)))


@contextmanager
def _active(home: Home) -> Iterator[Cluster]:
    """The site that salvage is kept at."""
    from twinlog.wire.cluster import Cluster

    with Cluster(home.admin_access(home.state().active)) as cluster:
        yield cluster


def _has_any(home: Home, cluster: Cluster, topic: str) -> bool:
    """True if there may be salvage of a topic; one that nobody has heard of is an error."""
    from twinlog.traffic import stock
    from twinlog.traffic.salvaged import salvage_topic
    from twinlog.wire import topics

    if topic in home.bus.topics and not topics.describe(cluster, [salvage_topic(topic)]):
        return False
    stock.partitions_of(cluster, topic)
    return True


def _none_of(topic: str) -> str:
    return f"nothing of topic '{topic}' was salvaged"


def _row(one: Salvaged, is_applied: bool) -> dict[str, Any]:
    key, value = text_of(one.key), text_of(one.value)
    return {
        "topic": one.topic,
        "partition": one.partition,
        "offset": one.offset,
        "timestamp_ms": one.timestamp_ms,
        "term": one.term,
        "key": key[0],
        "value": value[0],
        "hexadecimal": [name for name, field in (("key", key), ("value", value)) if field[1]],
        "headers": [[name, text_of(content)[0]] for name, content in one.headers],
        "applied": is_applied,
        "open": one.is_open,
    }


def text_of(content: bytes | None) -> tuple[str | None, bool]:
    """Bytes as text, and whether that is hexadecimal digits."""
    if content is None:
        return None, False
    try:
        return content.decode(), False
    except UnicodeDecodeError:
        return content.hex(), True


def cell(text: str | None) -> str:
    """A key or a value in a table: nothing that a terminal would obey, and not all of a long one."""
    if text is None:
        return "null"
    shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    return shown if len(shown) <= LONGEST_CELL else shown[: LONGEST_CELL - 1] + "…"


def _time(time_ms: int | None) -> str:
    if time_ms is None:
        return "unknown"
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
