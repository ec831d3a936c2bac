"""`twinlog sql`: one question over topics, tables and the lake."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Table


@frame.command(
    example="""
    twinlog sql 'SELECT place, count(*) AS n FROM turbines GROUP BY place'
    twinlog sql --csv 'SELECT key, _offset FROM topic_orders WHERE _partition = 0' > orders.csv
    """
)
@click.argument("question", metavar="SELECT")
@click.option("--most", type=click.IntRange(min=1), default=1000, show_default=True, help="Rows at most.")
@click.option("--csv", "as_csv", is_flag=True, help="As comma-separated values.")
def command(ctx: frame.Context, question: str, most: int, as_csv: bool) -> None:
    """Answer a question in SQL over the topics, tables and lakes of the file, as they are now.

    Spark is started for it, which takes some seconds. Tables and lakes are called by the names of their
    jobs, topics by theirs or topic_NAME; what SQL does not take in a name becomes an underscore. A topic
    has the columns that a job reads in it, else key and value as bytes, and _topic, _partition, _offset
    and _time.
    """
    from twinlog.mirror.link import need_spark

    home = home_of(ctx)
    home.state()
    need_spark()
    from twinlog.streams import asking

    name = "asking Spark"
    ctx.progress.begin(name)
    answer = asking.ask(home, question, most)
    ctx.progress.end(name)
    if as_csv:
        ctx.write(_csv(answer.columns, answer.rows), as_json=answer.rows)
        return
    columns = [Column(column, column, show=_shown) for column in answer.columns]
    ctx.emit(Table(columns, answer.rows, empty="no rows"))


def _csv(columns: list[str], rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[_cell(row[column]) for column in columns] for row in rows])
    return text.getvalue()


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _shown(value: Any) -> str:
    return "null" if value is None else str(_cell(value))
