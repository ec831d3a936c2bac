"""Jobs as Spark's streaming queries: what is read, what is done with it, where it goes.

Called by the runner, which looks after them. A job is one query, and one more for each source whose
records may not be understood: those go to the dead letters. Which guarantee is kept how stands in
`lanes` (topics, exactly once) and `store` (tables); at least once is Spark's own sink.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from twinlog.durable import make_private_directory
from twinlog.sites.home import Home
from twinlog.spec.implied import STREAMS_USER
from twinlog.spec.streams import Emit, Guarantee, Job, Kind, Source
from twinlog.streams import frames, lanes, rewriting, workers
from twinlog.streams.checkpoints import Checkpoint
from twinlog.streams.columns import DATE
from twinlog.streams.outputs import Output
from twinlog.streams.places import Place, place
from twinlog.streams.planning import Mode, can_fail, emits, fetch_bytes, has_state, mode_of, reads_table
from twinlog.streams.session import session_for
from twinlog.streams.store import Change, Store
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Role, Tuning
from twinlog.wire.clientfiles.write import java_settings

CHECKPOINT_EVERY = "10 seconds"  # in real-time mode, where nothing waits for it
DEAD_EVERY_S = 5.0  # a letter may wait; reading a topic a second time costs as much as reading it once
# In batches Spark asks the broker twice for the bounds of a partition behind each poll, so a poll should
# give all that a fetch brought; 500, Kafka's default, is a small part of it.
POLL_RECORDS = 50_000
_FETCH_BYTES = "max.partition.fetch.bytes"
COMPACT_EVERY = 50  # batches: each leaves a small file for each of its partitions
Batch = Callable[[DataFrame, int], None]


@dataclass(frozen=True)
class Running:
    """A query that was started; `note_ends` is to be told of each batch, if nobody else notes them."""

    query: StreamingQuery
    note_ends: Callable[[int], None] | None = None


@dataclass(frozen=True)
class Ground:
    """What all queries of a bus stand on, as long as one site is active."""

    spark: SparkSession
    home: Home
    access: Access
    tuning: Tuning

    def reading(self, topic: str, most_records: int | None) -> dict[str, str]:
        """Options of Spark's Kafka source, for batches of so many records if there are batches."""
        settings = java_settings(self.access, self.tuning, Role.CONSUMER)
        options = {
            **{f"kafka.{key}": value for key, value in settings.items()},
            "kafka.isolation.level": "read_committed",
            "groupIdPrefix": STREAMS_USER,
            "startingOffsets": "earliest",
        }
        if most_records is None:
            return options
        return {
            **options,
            "maxOffsetsPerTrigger": str(most_records),
            f"kafka.{_FETCH_BYTES}": str(self._fetch_bytes(topic, int(settings[_FETCH_BYTES]))),
            "kafka.max.poll.records": str(POLL_RECORDS),
        }

    def _fetch_bytes(self, topic: str, least: int) -> int:
        bus = self.home.bus
        return fetch_bytes(bus.pipeline.memory, bus.topics[topic].partitions, least)

    def writing(self) -> dict[str, str]:
        """Options of Spark's Kafka sink."""
        settings = java_settings(self.access, self.tuning, Role.PRODUCER)
        return {f"kafka.{key}": value for key, value in settings.items()}


def names(name: str, job: Job) -> list[str]:
    """The queries of a job: its own, and those of its dead letters."""
    doubtful = [alias for alias, source in job.read.items() if source.topic and _has_dead(job, source)]
    return [name, *(f"{name}.{alias}.dead" for alias in doubtful)]


def start(ground: Ground, job_name: str, query: str) -> Running:
    """Start one query of a job, where its checkpoint says."""
    job = ground.home.bus.streams[job_name]
    where = place(ground.home, query)
    make_private_directory(where.directory)
    sink = _Sink(ground, query, where, job)
    begun = _begin(ground, sink, job_name, query)
    is_ours = query != job_name or job.guarantee is Guarantee.EXACTLY_ONCE
    return Running(begun, None if is_ours else sink.note_ends)


def _begin(ground: Ground, sink: _Sink, job_name: str, query: str) -> StreamingQuery:
    job = ground.home.bus.streams[job_name]
    session = session_for(ground.spark, job.tasks)
    if query != job_name:
        source = job.read[query.removeprefix(f"{job_name}.").removesuffix(".dead")]
        records = _called(ground, _records(ground, session, job, source), job, source)
        return sink.dead_letters(records, source, job_name)
    if job.function is not None:
        (source,) = job.read.values()
        return sink.one_by_one(
            frames.given(_called(ground, _records(ground, session, job, source), job, source))
        )
    if job.kind is Kind.TABLE:
        (source,) = job.read.values()
        return sink.table(_records(ground, session, job, source), source)
    if job.kind is Kind.LAKE:
        (source,) = job.read.values()
        return sink.lake(_records(ground, session, job, source), source)
    if reads_table(job):
        return sink.joined_with_table(session)
    rows = _rows(ground, session, job)
    if has_state(job):
        return sink.grouped(rows)
    return sink.one_by_one(rows)


def _has_dead(job: Job, source: Source) -> bool:
    doubtful = can_fail(source) or job.kind is Kind.TABLE or job.function is not None
    return job.dead_letters is not None and doubtful


def _records(ground: Ground, session: SparkSession, job: Job, source: Source) -> DataFrame:
    assert source.topic is not None
    return frames.records(session, ground.reading(source.topic, job.most_records), source.topic)


def _called(ground: Ground, records: DataFrame, job: Job, source: Source) -> DataFrame:
    """With what the job's function makes of records, if it has one."""
    if job.function is None:
        return records
    beside = ground.home.file.parent
    paths = (str(beside),)
    workers.find(job.function.call, paths)  # to say here that it is not there
    module = beside / f"{job.function.call.partition(':')[0].partition('.')[0]}.py"
    if module.exists():
        ground.spark.sparkContext.addPyFile(str(module))  # for workers on other machines
    return frames.called(records, source, job.function, paths)


def _rows(ground: Ground, session: SparkSession, job: Job) -> DataFrame:
    """What comes out of the SQL of a job whose sources all are streams."""
    most = None if mode_of(job)[0] is Mode.REAL_TIME else job.most_records
    for alias, source in job.read.items():
        assert source.topic is not None
        records = frames.records(session, ground.reading(source.topic, most), source.topic)
        understood = frames.good(records, source)
        frames.timed(understood, source, _window(job)).createOrReplaceTempView(alias)
    return session.sql(rewriting.for_spark(job))


def _window(job: Job) -> tuple[str, str] | None:
    if job.window is None or job.window.size is None:
        return None
    every = job.window.every if job.window.every is not None else job.window.size
    return f"{round(job.window.size * 1000)} milliseconds", f"{round(every * 1000)} milliseconds"


class _Sink:
    """Writes what one query gives, as its job wants it."""

    def __init__(self, ground: Ground, query: str, where: Place, job: Job) -> None:
        self._ground = ground
        self._query = query
        self._where = where
        self._job = job
        self._checkpoint = Checkpoint(ground.spark, where)
        self._run = self._checkpoint.run()
        self._output = _output(ground, query, job)

    def one_by_one(self, rows: DataFrame) -> StreamingQuery:
        """Rows that each come of one record."""
        job = self._job
        assert job.write is not None
        written = frames.written(rows, job.write)
        if job.guarantee is Guarantee.AT_LEAST_ONCE:
            return self._at_least_once(frames.with_headers(written, {}), job.write.topic)
        tasks = job.tasks if rewriting.has_union(job) else None
        return self._batches(rows, self._exactly_once(job.write.topic, self._lanes(tasks)))

    def grouped(self, rows: DataFrame) -> StreamingQuery:
        """Rows that come of many records, by state."""
        job = self._job
        assert job.write is not None
        mode = "update" if job.kind is Kind.AGGREGATE and emits(job) is Emit.CHANGES else "append"
        written = frames.written(rows, job.write)
        if job.guarantee is Guarantee.AT_LEAST_ONCE:
            return self._at_least_once(written, job.write.topic, mode)

        def prepare(batch: DataFrame) -> DataFrame:
            assert job.write is not None
            return frames.by_task(frames.written(batch, job.write))

        return self._batches(rows, self._exactly_once(job.write.topic, prepare), mode)

    def joined_with_table(self, session: SparkSession) -> StreamingQuery:
        """A stream's rows with those that a table has when the batch is run."""
        job = self._job
        assert job.write is not None
        ((alias, source),) = ((name, one) for name, one in job.read.items() if one.topic is not None)
        ((other, table),) = ((name, one) for name, one in job.read.items() if one.table is not None)
        kept = _Kept(self._ground, table)
        sql = rewriting.for_spark(job)
        lanes_of = self._lanes(job.tasks)

        def prepare(batch: DataFrame) -> DataFrame:
            batch.createOrReplaceTempView(alias)
            rows = kept.frame(batch.sparkSession)
            (F.broadcast(rows) if table.everywhere else rows).createOrReplaceTempView(other)
            return lanes_of(batch.sparkSession.sql(sql))

        understood = frames.good(_records(self._ground, session, job, source), source)
        return self._batches(understood, self._exactly_once(job.write.topic, prepare))

    def table(self, records: DataFrame, source: Source) -> StreamingQuery:
        """The latest value of each key, and each change in a topic if that is wanted."""
        store = Store(self._where.table)
        store.create()
        if store.version()[0] != self._run and self._checkpoint.history().committed:
            # The table of this checkpoint is on another machine, or was deleted: from the beginning, then.
            self._checkpoint.forget()
            self._run = self._checkpoint.run()
        topic = self._job.write.topic if self._job.write is not None else None

        def prepare(batch: DataFrame) -> DataFrame:
            return frames.by_partition(frames.as_they_were(batch, source))

        publish = self._exactly_once(topic, prepare) if topic is not None else None

        def keep(batch: DataFrame, number: int) -> None:
            batch = batch.persist()
            try:
                if publish is not None:
                    publish(batch, number)
                rows = frames.changes(batch, source).toLocalIterator()
                store.apply(self._run, number, (Change(*row) for row in rows))
            finally:
                batch.unpersist()

        return self._batches(records, keep)

    def lake(self, records: DataFrame, source: Source) -> StreamingQuery:
        """Every record as a row of a Delta table; Delta leaves out a batch that it has."""
        path = self._job.path if self._job.path is not None else str(self._where.lake)

        def keep(batch: DataFrame, number: int) -> None:
            (
                batch.write.format("delta")
                .mode("append")
                .partitionBy(DATE)
                .option("mergeSchema", "true")  # a field that the file has got since
                .option("txnAppId", f"{self._query}/{self._run}")
                .option("txnVersion", number)
                .save(path)
            )
            if number % COMPACT_EVERY == COMPACT_EVERY - 1:
                batch.sparkSession.sql(f"OPTIMIZE delta.`{path}`")

        return self._batches(frames.dated(frames.good(records, source), source), keep)

    def dead_letters(self, records: DataFrame, source: Source, job: str) -> StreamingQuery:
        """The records of a source that are not what the file says, with the reasons."""
        topic = self._job.dead_letters
        assert topic is not None
        wrong = frames.bad(records, source, job, needs_key=self._job.kind is Kind.TABLE)
        write = self._exactly_once(topic, frames.by_partition)
        return self._batches(wrong, write, every_s=max(self._job.every, DEAD_EVERY_S))

    def _lanes(self, tasks: int | None) -> Callable[[DataFrame], DataFrame]:
        def prepare(rows: DataFrame) -> DataFrame:
            assert self._job.write is not None
            return frames.by_partition(frames.written(rows, self._job.write), tasks)

        return prepare

    def _exactly_once(self, topic: str, prepare: Callable[[DataFrame], DataFrame]) -> Batch:
        def write(batch: DataFrame, number: int) -> None:
            writing = lanes.Writing(
                access=self._ground.access,
                tuning=self._ground.tuning,
                query=self._query,
                run=self._run,
                topic=topic,
                batch=number,
            )
            prepare(batch).foreachPartition(lanes.writer(writing))
            self.note_ends(number)

        return write

    def note_ends(self, number: int) -> None:
        """Keep how far the output is, now that a batch is done."""
        assert self._output is not None
        self._checkpoint.note_ends(number, self._output.ends())

    def _batches(
        self, rows: DataFrame, write: Batch, mode: str = "append", every_s: float | None = None
    ) -> StreamingQuery:
        pause = _milliseconds(self._job.every if every_s is None else every_s)
        return self._begun(
            rows.writeStream.foreachBatch(write).outputMode(mode).trigger(processingTime=pause)
        )

    def _at_least_once(self, records: DataFrame, topic: str, mode: str = "append") -> StreamingQuery:
        real_time = mode_of(self._job)[0] is Mode.REAL_TIME
        shown = records.select(*frames.RECORD)
        writer = shown.writeStream.format("kafka").options(**self._ground.writing()).option("topic", topic)
        if real_time:
            return self._begun(writer.outputMode("update").trigger(realTime=CHECKPOINT_EVERY))
        return self._begun(writer.outputMode(mode).trigger(processingTime=_milliseconds(self._job.every)))

    def _begun(self, writer: DataStreamWriter) -> StreamingQuery:
        return writer.queryName(self._query).option("checkpointLocation", self._checkpoint.location).start()


def _milliseconds(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))} milliseconds"


def _output(ground: Ground, query: str, job: Job) -> Output | None:
    """The topic that a query writes, if it writes one."""
    is_dead = query.endswith(".dead")
    topic = job.dead_letters if is_dead else job.write.topic if job.write is not None else None
    if topic is None:
        return None
    return Output(ground.access, topic, ground.home.bus.topics[topic].partitions)


class _Kept:
    """A table that a join reads, loaded again when it has changed."""

    def __init__(self, ground: Ground, source: Source) -> None:
        assert source.table is not None
        self._store = Store(place(ground.home, source.table).table)
        (self._source,) = ground.home.bus.streams[source.table].read.values()
        self._version: tuple[str, int] | None = None
        self._rows: list[tuple[str, str]] = []

    def frame(self, session: SparkSession) -> DataFrame:
        """Its rows now."""
        version = self._store.version()
        if version != self._version:
            self._rows = self._store.texts()
            self._version = version
        return frames.table(session, self._rows, self._source)
