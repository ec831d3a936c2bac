"""`twinlog table`: look into the tables that jobs keep, while they are kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Record, Table
from twinlog.errors import Findings, UsageError

if TYPE_CHECKING:
    from twinlog.streams.store import Store

command = frame.group("table", "Look into the tables that jobs keep.")


@frame.command(parent=command, name="get", example="twinlog table get turbines 7")
@click.argument("table")
@click.argument("key")
def get(ctx: frame.Context, table: str, key: str) -> None:
    """Show the latest value of one key.

    Keys that are bytes are given in hexadecimal. Exit code 3 says that the table has no such key.
    """
    found = _store(ctx, table).get(key)
    if found is None:
        raise Findings(f"table {table} has no key {key}", hint=f"twinlog table scan {table}")
    columns = [Column("key"), Column("value", show=_shown), Column("partition"), Column("offset")]
    ctx.emit(Record(columns, found._asdict()))


@frame.command(parent=command, name="scan", example="twinlog table scan turbines --most 20")
@click.argument("table")
@click.option("--most", type=click.IntRange(min=1), metavar="N", help="Show at most N rows.")
def scan(ctx: frame.Context, table: str, most: int | None) -> None:
    """Show the latest value of every key, in the order of keys as texts."""
    rows = [entry._asdict() for entry in _store(ctx, table).scan(most)]
    columns = [Column("key"), Column("value", show=_shown), Column("offset", right=True, spare=True)]
    ctx.emit(Table(columns, rows, empty="the table is empty"))


def _store(ctx: frame.Context, table: str) -> Store:
    from twinlog.spec.streams import Kind
    from twinlog.streams.places import place
    from twinlog.streams.store import Store

    home = home_of(ctx)
    tables = [name for name, job in home.bus.streams.items() if job.kind is Kind.TABLE]
    if table not in tables:
        hint = f"its tables are {', '.join(tables)}" if tables else "which job has kind: table?"
        raise UsageError(f"the file has no table '{table}'", where=str(home.file), hint=hint)
    return Store(place(home, table).table)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
