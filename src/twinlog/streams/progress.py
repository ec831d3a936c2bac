"""What a job has written already: one note for each lane, in the same transaction as the records.

A lane is a row of records that are written one after the other: those of one partition that is read,
or those of one task with state. Spark runs a batch again whose end it did not note; whoever writes it
asks here first. The newest note of a lane names the last batch that all can see.

What must stay true: a lane is asked for only after its transactional id was taken over. Then whatever
was open is committed or aborted, and nobody else can commit any more. Other lanes may be in the middle
of a transaction, which hides what was committed behind its beginning; so the reader waits for them.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass

from twinlog.errors import SiteError
from twinlog.spec.implied import PROGRESS_TOPIC
from twinlog.wire import offsets, transactions
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.driver import Outgoing, Settings
from twinlog.wire.receiver import Receiver

NOTHING = -1  # no batch was written yet
LANES = "streams-"  # transactional ids of lanes begin so
_PLACE = (PROGRESS_TOPIC, 0)
_LOOK_AGAIN_S = 0.02
_TAKE = 10_000
# librdkafka knows that it is at the end when a fetch brings nothing, and a broker that has nothing answers
# after this long; by default half a second, which every lane would wait in every batch.
_AT_END_MS = 10
_GROUP = "streams-progress"  # demanded by the driver, and never joined


@dataclass(frozen=True)
class Lane:
    """One lane of one run of a job: `run` is as old as the job's checkpoint, and dies with it."""

    query: str
    run: str
    name: str

    @property
    def transactional_id(self) -> str:
        """The same for all runs, so that a new one ends what an old one left."""
        return f"{LANES}{self.query}-{self.name}"

    @property
    def key(self) -> bytes:
        """The key of its notes."""
        return f"{self.query}/{self.run}/{self.name}".encode()


def note(lane: Lane, batch: int) -> Outgoing:
    """The record that says how far a lane is."""
    return Outgoing(PROGRESS_TOPIC, json.dumps({"batch": batch}).encode(), lane.key, partition=_PLACE[1])


def last_batch(access: Access, lane: Lane, timeout_s: float) -> int:
    """The last batch of a lane that is committed; its transactional id must have been taken over before."""
    deadline = Deadline(timeout_s)
    with Cluster(access, client_id=_GROUP) as cluster:
        end = offsets.end_offsets(cluster, [_PLACE])[_PLACE]
        start = offsets.start_offsets(cluster, [_PLACE])[_PLACE]
        if end == start:
            return NOTHING
        pause = threading.Event()
        while offsets.last_stable_offsets(cluster, [_PLACE])[_PLACE] < end:
            _insist(deadline, lane)
            pause.wait(_LOOK_AGAIN_S)
    return _newest(access, lane, start, deadline)


def end_left_open(access: Access) -> list[str]:
    """End what earlier runners left open, before the first task of this one; gives the names.

    Each lane would do so for itself, but until its turn comes the others wait for it, and those that wait
    may have taken all of Spark's slots.
    """
    with Cluster(access, client_id=_GROUP) as cluster:
        left = [one for one in transactions.unsettled(cluster) if one.id.startswith(LANES)]
        for one in left:
            transactions.abort(cluster, one)
    return [one.id for one in left]


def _newest(access: Access, lane: Lane, start: int, deadline: Deadline) -> int:
    settings: Settings = {
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": _AT_END_MS,
    }
    reader = Receiver(access, group=_GROUP, start="earliest", tuning=Tuning(), settings=settings)
    found = NOTHING
    try:
        reader.assign({_PLACE: start})
        while _PLACE not in reader.ended:
            for record in reader.take(_TAKE, 1.0):
                if record.key == lane.key and record.value is not None:
                    found = int(json.loads(record.value)["batch"])
            _insist(deadline, lane)
    finally:
        reader.close()
    return found


def _insist(deadline: Deadline, lane: Lane) -> None:
    if deadline.passed:
        raise SiteError(
            f"could not read how far {lane.query} is: a transaction in {PROGRESS_TOPIC} does not end",
            hint="twinlog transactions list",
        )
