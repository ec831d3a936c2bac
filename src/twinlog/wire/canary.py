"""A canary: one small record, written with acks=all, to know whether a partition takes writes.

Used for readiness and, later, for health. One attempt, no repetition: the caller wants to know
how the cluster is, not to get the record in. The outcome is one of three, and Unknown is never
taken for one of the other two.
"""

from __future__ import annotations

import time

from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse

from twinlog.errors import TwinlogError, UnknownOutcome
from twinlog.wire import codes
from twinlog.wire.cluster import Cluster
from twinlog.wire.outcomes import Done, NotDone, Unknown
from twinlog.wire.records import Record, encode_batch

__all__ = ["Done", "NotDone", "Outcome", "Unknown", "write"]

_ALL_IN_SYNC = -1
_MOST_VERSION = 12  # from 13 on a request names topics by id (KIP-516)


Outcome = Done | NotDone | Unknown


def write(cluster: Cluster, topic: str, partition: int, payload: bytes) -> Outcome:
    """Write one record once and say how it went."""
    batch = encode_batch([Record(payload, timestamp_ms=time.time_ns() // 1_000_000)])
    kind = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        transactional_id=None,
        acks=_ALL_IN_SYNC,
        timeout_ms=int(cluster.patience.request_s * 900),  # the broker's own answer comes before our timeout
        topic_data=[
            kind(name=topic, partition_data=[kind.PartitionProduceData(index=partition, records=batch)])
        ],
    )
    try:
        leader = cluster.leader(topic, partition)
        answer = cluster.once(request, ProduceResponse, broker_id=leader, max_version=_MOST_VERSION)
    except UnknownOutcome as error:
        cluster.forget()
        return Unknown(str(error), error.hint)
    except TwinlogError as error:
        cluster.forget()
        return NotDone(str(error), error.hint)
    result = answer.responses[0].partition_responses[0]
    if result.error_code == codes.NONE:
        return Done(partition, result.base_offset)
    cluster.forget()
    refusal = codes.error_for(
        result.error_code, result.error_message, f"writing to {topic}-{partition}", cluster.where
    )
    if codes.is_refused_before_append(result.error_code):
        return NotDone(str(refusal), refusal.hint)
    return Unknown(str(refusal), refusal.hint)
