"""What a file means without saying it: the user that jobs run as, and the topic in which they note progress.

Added by the loader to a bus that is right. From then on both are like any other: `plan` shows them,
`apply` makes them, the mirror copies the topic, and a move between sites fences the user. Nothing
above `spec` has to know that jobs are special.
"""

from __future__ import annotations

from twinlog.spec.model import Bus, Cleanup, Setting, Topic, User

STREAMS_USER = "streams"
PROGRESS_TOPIC = "twinlog-streams"
# It is read from its beginning for every batch of every lane, so it is compacted soon.
_SMALL: dict[str, Setting] = {"segment.bytes": 1 << 20, "min.cleanable.dirty.ratio": 0.1}
NAMES = "streams-*"  # groups and transactional ids of jobs


def with_implied(bus: Bus) -> Bus:
    """The bus with what its jobs need."""
    if not bus.streams:
        return bus
    read = {source.topic for job in bus.streams.values() for source in job.read.values() if source.topic}
    written = {job.write.topic for job in bus.streams.values() if job.write is not None}
    written |= {job.dead_letters for job in bus.streams.values() if job.dead_letters is not None}
    user = User(
        consume=(*sorted(read), PROGRESS_TOPIC),
        produce=(*sorted(written), PROGRESS_TOPIC),
        groups=(NAMES,),
        transactions=(NAMES,),
    )
    progress = Topic(cleanup=Cleanup.COMPACT, config=_SMALL)
    topics = {**bus.topics, PROGRESS_TOPIC: progress}
    return bus.but(topics=topics, users={**bus.users, STREAMS_USER: user})
