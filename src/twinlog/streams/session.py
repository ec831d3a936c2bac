"""The Spark that runs the jobs of one bus: its settings, its jars, a session for each query.

Sessions share Spark and its tasks, and have views and settings of their own: the number of tasks that
share a state is one, and stays with the checkpoint.
"""

from __future__ import annotations

import os
import sys
from importlib import resources

from pyspark.sql import SparkSession

from twinlog.machine import cache_directory
from twinlog.progress import Silent
from twinlog.sites.jars import ensure_jars, parse_lock
from twinlog.sites.java import find_java
from twinlog.spec.model import Pipeline
from twinlog.streams.planning import cores_of
from twinlog.streams.rewinding import KEPT

APPLICATION = "twinlog-streams"
FAILURES = 4  # attempts of one task before its query is ended
_STATE = "spark.sql.streaming.stateStore.rocksdb"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_COLLECTOR = "-XX:+UseParallelGC"  # batches count, not pauses; it costs less of the processor than G1
# Spark keeps what was run for a page that nobody serves: plans and figures of a thousand executions, of which
# each batch is two.
_REMEMBERED = {
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # 50 are for logs of many thousand files
}


def master_of(pipeline: Pipeline, needed: int) -> str:
    """The master: a plain `local` gets the cores that there are, or more where tasks never end."""
    if pipeline.master != "local":
        return pipeline.master
    here = cores_of(pipeline, os.cpu_count() or 1)
    return f"local[{max(here or 1, needed)},{FAILURES}]"


def start(pipeline: Pipeline, name: str, needed: int, *, with_lake: bool = False) -> SparkSession:
    """Start Spark, with so many slots at least, and with Delta if there is a lake."""
    os.environ["JAVA_HOME"] = str(find_java().binary.resolve().parent.parent)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = master_of(pipeline, needed)
    lock = resources.files("twinlog.streams").joinpath("jars.lock").read_text()
    jars = ensure_jars(cache_directory(), Silent(), parse_lock(lock))
    is_local = master.startswith("local")
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.driver.memory": f"{pipeline.memory >> 20}m",
        "spark.driver.extraJavaOptions": _COLLECTOR,
        "spark.executor.extraJavaOptions": _COLLECTOR,
        "spark.speculation": "false",  # two attempts at a time would end each other's transactions
        "spark.task.maxFailures": str(FAILURES),
        "spark.task.reaper.enabled": "true",
        "spark.sql.streaming.stopTimeout": "30s",  # a task may wait for a site that is gone
        "spark.scheduler.mode": "FAIR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",  # it would put lanes together as it sees fit
        "spark.sql.streaming.stateStore.providerClass": _ROCKS,
        # A commit writes what has changed; whole snapshots are made now and then, beside the batches.
        f"{_STATE}.changelogCheckpointing.enabled": "true",
        f"{_STATE}.trackTotalNumberOfRows": "false",  # it would look for each row before it is written
        # Batches compile the same code again unless it is kept. All queries share the room, 100 by default,
        # and each batch of a window takes some of it for conditions that name its watermark.
        "spark.sql.codegen.cache.maxEntries": "500",
        "spark.sql.streaming.minBatchesToRetain": str(KEPT),  # a failover may go back so far
        "spark.authenticate": str(not is_local).lower(),
        "spark.network.crypto.enabled": str(not is_local).lower(),
        **_REMEMBERED,
    }
    if is_local:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if with_lake:
        settings |= _DELTA
    settings |= {key: str(value) for key, value in pipeline.settings.items()}
    builder = SparkSession.builder.master(master).appName(f"{APPLICATION}-{name}")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


def session_for(spark: SparkSession, tasks: int) -> SparkSession:
    """A session of one query."""
    session: SparkSession = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(tasks))
    return session
