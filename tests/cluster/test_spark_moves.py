"""A user's own streaming query on Spark, with printed options and nothing else, goes along with the sites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.moving import (
    FILE,
    active_site,
    at_work,
    check,
    load_on,
    other_site,
    records_at,
    wait_for,
)
from tests.cluster.programs import spark_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = pytest.mark.cluster

Place = tuple[int, int]


@pytest.fixture(scope="module")
def moving(make_bus: MakeBus) -> Iterator[Bus]:
    """Two sites of one broker each."""
    with at_work(make_bus, FILE) as bus:
        yield bus


class Copy:
    """A query that copies `orders` to files, and is started again at its checkpoint when it has ended."""

    def __init__(self, spark: SparkSession, options: dict[str, str], directory: Path) -> None:
        self._spark, self._options, self._directory = spark, options, directory
        self.failures: list[str] = []
        self._query = self._start()

    def _start(self) -> StreamingQuery:
        stream = self._spark.readStream.format("kafka").options(**self._options)
        table = stream.option("subscribe", "orders").option("startingOffsets", "earliest").load()
        written = table.select("partition", "offset").writeStream.format("json")
        return written.option("checkpointLocation", str(self._directory / "checkpoint")).start(
            str(self._directory / "copy")
        )

    def places(self) -> Counter[Place]:
        """Where the records were that it has copied, and how often each was."""
        if (error := self._query.exception()) is not None:
            self.failures.append(str(error))
            self._query = self._start()
        if not (self._directory / "copy" / "_spark_metadata").exists():
            return Counter()
        rows = self._spark.read.schema("partition int, offset long").json(str(self._directory / "copy"))
        return Counter((row.partition, row.offset) for row in rows.collect())

    def goes_beyond(self, known: Iterable[Place]) -> Callable[[], bool]:
        """Asks whether it has copied a record that stood at no place that is known now."""
        before = set(known)
        return lambda: bool(self.places().keys() - before)

    def stop(self) -> None:
        """End it."""
        self._query.stop()


def test_a_streaming_query_of_a_user_reads_every_record_once_through_a_switchover_and_back(
    moving: Bus, spark: SparkSession, tmp_path: Path
) -> None:
    printed = tmp_path / "options.py"
    printed.write_text(moving.done("client", "app", "--gate", "--format", "spark"))
    with load_on(moving, "queried") as load:
        copy = Copy(spark, spark_options(printed), tmp_path)
        wait_for("the query reads", lambda: len(copy.places()) > 0)
        for _ in range(2):
            before = active_site(moving)
            moving.done("switchover")
            assert active_site(moving) == other_site(before)
            wait_for("the query reads what was written since", copy.goes_beyond(load.acknowledged.values()))
    check(moving, load)
    wanted = Counter(records_at(moving, "a").keys())
    wait_for("it has read all", lambda: len(copy.places()) >= len(wanted))
    copy.stop()
    assert copy.places() == wanted
    assert copy.failures == []
