"""`twinlog salvage`: what only a lost site had, looked at, and written to its topics again.

It lies at the site that was active when the lost one returned; all three commands ask every site for it.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Table
from twinlog.errors import Findings, UsageError

if TYPE_CHECKING:
    from twinlog.sites.home import Home
    from twinlog.traffic.keepers import Keepers
    from twinlog.traffic.salvaged import Salvaged
    from twinlog.wire.cluster import Cluster

command = frame.group("salvage", "Look at what only a lost site had, and write it again.")
LONGEST_CELL = 60
KEPT_AT = Column("kept_at", "kept at")


@frame.command(parent=command, name="list", example="twinlog salvage list")
def list_(ctx: frame.Context) -> None:
    """List what was salvaged, by topic and by the term in which its site was lost."""
    from twinlog.traffic import keepers, stock

    with keepers.opened(home_of(ctx)) as found:
        rows = [
            {"kept_at": site, **asdict(one)}
            for site, cluster in found.clusters.items()
            for one in stock.list_salvage(cluster)
        ]
    columns = [
        Column("topic"),
        Column("term", right=True),
        KEPT_AT,
        Column("records", right=True),
        Column("applied", right=True),
        Column("open", "never committed", right=True),
        Column("bytes", right=True),
        Column("oldest_ms", "oldest", show=_time),
        Column("newest_ms", "newest", show=_time),
    ]
    rows.sort(key=lambda row: (row["topic"], row["term"], row["kept_at"]))
    ctx.emit(Table(columns, rows, empty=_none(found)))
    _name_silent(found)


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
    from twinlog.traffic import keepers, stock

    home = home_of(ctx)
    with keepers.opened(home) as found:
        shown = chain.from_iterable(
            (_row(site, one, is_applied) for one, is_applied in stock.show(cluster, topic, partition))
            for site, cluster in _kept(home, found, topic).items()
        )
        rows = list(islice(shown, limit))
        if next(shown, None) is not None:
            ctx.progress.note(f"there are more than {limit}: --limit shows them")
    columns = [
        KEPT_AT,
        Column("partition", right=True),
        Column("offset", right=True),
        Column("timestamp_ms", "time", show=_time),
        Column("key", show=cell),
        Column("value", show=cell),
        Column("applied"),
        Column("open", "never committed"),
    ]
    ctx.emit(Table(columns, rows, empty=_none(found, topic)))
    _name_silent(found)


@frame.command(parent=command, name="apply", confirms=True, example="twinlog salvage apply orders --yes")
@click.argument("topic")
@click.option("--open", "with_open", is_flag=True, help="Also those whose transaction nobody committed.")
def apply(ctx: frame.Context, topic: str, with_open: bool) -> None:
    """Write the salvaged records of a topic to its end again, each at most once.

    They keep their partition, key, value, headers and time, and get the header `twinlog.salvaged`, which
    says where they had been. They come after all that was written since: whether that is right is for
    those to say who know the topic. A run that was killed goes on when it is called again.
    """
    from twinlog.traffic import keepers, reapply

    home = home_of(ctx)
    with keepers.opened(home) as found:
        active = found.at(home.state().active)
        kept = _kept(home, found, topic)
        if kept:
            what = f"the salvaged records of topic {topic} are written to its end"
            ctx.need_yes(what, where=str(home.file))
        chosen = (lambda one: True) if with_open else reapply.is_committed
        with home.state_file.locked("salvage apply"):
            rows = [
                {"kept_at": keeper[0], **asdict(one)}
                for keeper in kept.items()
                for one in reapply.apply(keeper, active, topic, chosen)
            ]
    columns = [
        Column("topic"),
        KEPT_AT,
        Column("partition", right=True),
        Column("new", "written now", right=True),
        Column("applied", "written in all", right=True),
        Column("left", "left out", right=True),
    ]
    ctx.emit(Table(columns, rows, empty=_none(found, topic)))
    _name_silent(found)


def _kept(home: Home, found: Keepers, topic: str) -> dict[str, Cluster]:
    """The sites that keep salvage of a topic; a topic that nobody has heard of is an error."""
    kept = found.of(topic)
    if not kept and not found.silent and topic not in home.bus.topics:
        raise UsageError(_none(found, topic), where=str(home.file), hint="twinlog salvage list")
    return kept


def _name_silent(found: Keepers) -> None:
    """End with a finding if a site did not answer."""
    if found.silent:
        site, error = next(iter(found.silent.items()))
        what = f"what site {site} keeps is not known: {error}"
        raise Findings(what, where=error.where, hint=f"twinlog status --site {site}")


def _none(found: Keepers, topic: str = "") -> str:
    """What is said where there is nothing; of a site that does not answer nobody knows."""
    what = f"nothing of topic '{topic}' was salvaged" if topic else "nothing was salvaged"
    return f"{what}, as far as sites answer" if found.silent else what


def _row(site: str, one: Salvaged, is_applied: bool) -> dict[str, Any]:
    key, value = text_of(one.key), text_of(one.value)
    return {
        "kept_at": site,
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
