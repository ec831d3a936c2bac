"""Spark: where the tasks of the mirror run. The only importer of pyspark.

A job is an epoch: one task for each slot. Two jobs are in flight while one hands over to the next,
so a local master has twice as many cores as there are slots.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from concurrent.futures import Future
from typing import Any

from pyspark import SparkConf, SparkContext, TaskContext

from twinlog.pipeline.exchange import Ticket
from twinlog.pipeline.ledger import Task
from twinlog.pipeline.task import run_task
from twinlog.spec.model import Pipeline

APPLICATION = "twinlog-link"
FAILURES = 4  # attempts of one task before its epoch is given up


def master_of(pipeline: Pipeline, slots: int) -> str:
    """The master for so many slots; a plain `local` gets two cores for each, and retries."""
    if pipeline.master == "local":
        return f"local[{2 * slots},{FAILURES}]"
    plain = re.fullmatch(r"local\[(\d+|\*)\]", pipeline.master)
    return f"local[{plain[1]},{FAILURES}]" if plain else pipeline.master


def is_local(master: str) -> bool:
    """True if all tasks run on the driver's own machine."""
    return master.startswith("local")


class Jobs:
    """Runs epochs as Spark jobs."""

    def __init__(self, pipeline: Pipeline, slots: int, name: str) -> None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        master = master_of(pipeline, slots)
        conf = SparkConf().setMaster(master).setAppName(f"{APPLICATION}-{name}")
        conf.set("spark.ui.enabled", "false")
        conf.set("spark.ui.showConsoleProgress", "false")
        conf.set("spark.driver.memory", f"{pipeline.memory >> 20}m")
        conf.set("spark.python.worker.reuse", "true")
        conf.set("spark.speculation", "false")  # a second attempt beside the first is what must not be
        conf.set("spark.task.maxFailures", str(FAILURES))
        conf.set("spark.task.reaper.enabled", "true")
        conf.set("spark.authenticate", "true" if not is_local(master) else "false")
        if is_local(master):
            conf.set("spark.driver.host", "127.0.0.1")
            conf.set("spark.driver.bindAddress", "127.0.0.1")
        for key, value in pipeline.settings.items():
            conf.set(key, str(value))
        self._context = SparkContext(conf=conf)
        self._context.setLogLevel("WARN")

    def submit(self, epoch: int, slots: int, ticket: Ticket) -> Future[None]:
        """Begin an epoch; the future ends with its tasks."""
        ended: Future[None] = Future()
        message = ticket.as_json()

        def copy(slot: int, _: Any) -> Any:
            context = TaskContext.get()
            attempt = context.attemptNumber() if context is not None else 0
            run_task(Ticket(**message), Task(epoch, slot, attempt))
            return iter(())

        def run() -> None:
            try:
                self._context.parallelize(range(slots), slots).mapPartitionsWithIndex(copy).collect()
                ended.set_result(None)
            except Exception as error:
                ended.set_exception(error)

        threading.Thread(target=run, name=f"epoch-{epoch}", daemon=True).start()
        return ended

    def close(self) -> None:
        """End all tasks and Spark with them."""
        self._context.cancelAllJobs()
        self._context.stop()
