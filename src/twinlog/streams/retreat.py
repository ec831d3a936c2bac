"""What a query does when another site has become active: behind a failover it goes back.

Called before a query starts. A switchover loses nothing, and a checkpoint fits as it is. Behind a
failover the newest records may be gone, other records stand at their offsets, and results may be gone
that were written. So a query goes back to the last batch of which nothing was lost, and does again what
came behind it: tables become what they were then, a lake loses the rows of lost records. Results that
the promoted site has of batches that are done again are there twice; nothing is missing.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from twinlog.sites.home import Home
from twinlog.spec.streams import Job, Kind
from twinlog.streams import rewinding
from twinlog.streams.checkpoints import Checkpoint
from twinlog.streams.files import Files
from twinlog.streams.places import Place, place
from twinlog.streams.rewinding import Offsets
from twinlog.streams.store import Store
from twinlog.traffic import promotions


def settle(spark: SparkSession, home: Home, job_name: str, query: str) -> str:
    """Have what a query remembers fit to the active site; says what was done, if anything was."""
    job, where = home.bus.streams[job_name], place(home, query)
    checkpoint = Checkpoint(spark, where)
    last, now = checkpoint.term, home.state().term
    if last == now:
        return ""
    missed = [one for one in promotions.read(home) if last is not None and last < one.term <= now]
    told = ""
    if missed:
        points = promotions.lowest(missed)
        if job.kind is Kind.LAKE and query == job_name:
            told = _lower_lake(spark, where, job, checkpoint, points)
        else:
            told = _go_back(where, job, checkpoint, points, is_own=query == job_name)
    checkpoint.set_term(now)
    return told


def _go_back(where: Place, job: Job, checkpoint: Checkpoint, points: Offsets, *, is_own: bool) -> str:
    history = checkpoint.history()
    newest = max(history.planned, default=None)
    if newest is None:
        return ""
    writes = not is_own or job.write is not None
    kept = rewinding.last_kept(history, points, writes=writes)
    if kept == newest:
        return ""
    if kept is None:
        checkpoint.forget()
        return "begins anew: the failover lost something of all batches that its checkpoint knows of"
    run = checkpoint.renew()  # what was noted of later batches must not be taken for those that come now
    if is_own and job.kind is Kind.TABLE:
        store = Store(where.table)
        if store.path.exists():  # else it was kept on another machine, and is made anew
            store.go_back(run, kept)
    checkpoint.go_back(kept)
    return f"goes back from batch {newest} to {kept}: the failover lost something of what came behind it"


def _lower_lake(spark: SparkSession, where: Place, job: Job, checkpoint: Checkpoint, points: Offsets) -> str:
    """Without state or output a lake needs no batch to go back to: rows beyond the points go."""
    (source,) = job.read.values()
    assert source.topic is not None
    if source.topic not in points:
        return ""
    path = job.path if job.path is not None else str(where.lake)
    removed = 0
    if Files(spark, path).exists("_delta_log"):
        beyond = " OR ".join(
            f"(_partition = {partition} AND _offset >= {offset})"
            for partition, offset in points[source.topic].items()
        )
        sql = f"DELETE FROM delta.`{path}` WHERE _topic = '{source.topic}' AND ({beyond})"
        removed = spark.sql(sql).collect()[0][0]
    checkpoint.lower(points)
    return f"has removed {removed} rows of records that the failover lost" if removed else ""
