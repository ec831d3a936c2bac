"""A question in SQL over topics, tables and the lake as they are now, answered by a Spark of its own.

Called by `twinlog sql`. Only what the question names is read. Of a topic it is what stands there when
the question is asked; records that are not what the file says are left out, and null is what it says.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from twinlog.durable import make_private_directory
from twinlog.errors import UsageError
from twinlog.sites.home import Home
from twinlog.spec.effective import largest_message_bytes
from twinlog.spec.model import Role as SiteRole
from twinlog.spec.streams import Kind
from twinlog.streams import frames, naming, session
from twinlog.streams.naming import Named
from twinlog.streams.places import directory, place
from twinlog.streams.store import Store
from twinlog.wire.clientfiles.tuning import Role, Tuning
from twinlog.wire.clientfiles.write import java_settings

SLOTS = 2
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # pyspark's, on the terminal


@dataclass(frozen=True)
class Answer:
    """The columns and rows that came out."""

    columns: list[str]
    rows: list[dict[str, Any]]


def ask(home: Home, sql: str, most: int) -> Answer:
    """Answer a question with at most so many rows."""
    wanted = naming.asked(sql, naming.names(home.bus))
    with _spark(home) as spark:
        for name, named in wanted.items():
            _frame(home, spark, named).createOrReplaceTempView(name)
        try:
            found = spark.sql(sql)
        except AnalysisException as error:
            raise UsageError(_said(str(error)), hint="twinlog sql --help") from None
        whole = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
        return Answer(
            found.columns, [json.loads(row[0]) for row in found.limit(most).select(whole).collect()]
        )


def _said(error: str) -> str:
    """What Spark says, without its codes."""
    return re.sub(r"^\[[A-Z0-9_.]+\] | SQLSTATE:.*$", "", error.splitlines()[0])


def _frame(home: Home, spark: SparkSession, named: Named) -> DataFrame:
    where = place(home, named.name)
    if named.kind == Kind.TABLE:
        return frames.table(spark, Store(where.table).texts(), named.source)
    if named.kind == Kind.LAKE:
        path = home.bus.streams[named.name].path
        return spark.read.format("delta").load(path if path is not None else str(where.lake))
    site = next(site for site in home.bus.sites if home.role(site) is SiteRole.ACTIVE)
    tuning = Tuning(message_max_bytes=largest_message_bytes(home.bus, site))
    settings = java_settings(home.admin_access(site), tuning, Role.CONSUMER)
    options = {f"kafka.{key}": value for key, value in settings.items()}
    records = spark.read.format("kafka").options(**options).option("kafka.isolation.level", "read_committed")
    return frames.good(records.option("subscribe", named.name).load(), named.source)


@contextmanager
def _spark(home: Home) -> Iterator[SparkSession]:
    """A Spark whose words go to a file: it has many, and the terminal is for the answer."""
    log = directory(home) / "sql.log"
    make_private_directory(log.parent)
    with _stderr_into(log):
        spark = session.start(home.bus.pipeline, home.bus.bus, SLOTS, with_lake=True)
    spark.conf.set("spark.sql.shuffle.partitions", str(SLOTS))
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _stderr_into(path: Path) -> Iterator[None]:
    # Spark's process takes over what ours has at its start.
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
