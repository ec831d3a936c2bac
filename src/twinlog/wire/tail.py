"""One partition, read from an offset on by somebody who wants to know when reading is in trouble.

The orderers' chains read with it. It belongs to one thread, has no group, and gives offsets and values
only. librdkafka goes on by itself after most errors and says nothing when it has; so errors are kept for
the caller to ask for, and `reach` asks the leader, for a caller who wants to know whether they are over.
An offset that the log does not have is no reason to read elsewhere: it is told, and reading stands.
"""

from __future__ import annotations

from typing import Any

import confluent_kafka as confluent

from twinlog.errors import KafkaError
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Role, Tuning
from twinlog.wire.driver import LOG, ClientSettings, explained, usual

BEGINNING: int = confluent.OFFSET_BEGINNING
OUT_OF_RANGE = frozenset(["AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE", "LOG_TRUNCATION"])
# librdkafka looks for a group's coordinator, whether it is needed or not.
_OF_THE_GROUP = frozenset(
    [confluent.KafkaError.GROUP_AUTHORIZATION_FAILED, confluent.KafkaError._PARTITION_EOF]
)

Entry = tuple[int, bytes | None]  # offset and value


class Tail:
    """Reads one partition."""

    def __init__(
        self,
        access: Access,
        topic: str,
        partition: int,
        *,
        tuning: Tuning,
        settings: ClientSettings | None = None,
    ) -> None:
        used = {
            **usual(access, tuning, Role.CONSUMER),
            "group.id": "twinlog-tail",  # demanded, and never joined
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "error_cb": self._note,
            **(settings or {}),
        }
        self._place = (topic, partition)
        self._where = ",".join(access.bootstrap)
        self._trouble: KafkaError | None = None
        try:
            self._consumer: Any = confluent.Consumer(used, logger=LOG)
        except confluent.KafkaException as error:
            raise explained(error.args[0], self._what("reading"), self._where) from error

    def start(self, offset: int) -> None:
        """Read from an offset on, also after another one."""
        self._consumer.assign([confluent.TopicPartition(*self._place, offset)])

    def take(self, most: int, timeout_s: float) -> list[Entry]:
        """Up to so many records, none if none came in time."""
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        got: list[Entry] = []
        for message in (first, *self._consumer.consume(most - 1, 0.0)):
            error = message.error()
            if error is None:
                got.append((message.offset(), message.value()))
            else:
                self._note(error)
        return got

    def trouble(self) -> KafkaError | None:
        """The last thing that went wrong since this was asked before."""
        told, self._trouble = self._trouble, None
        return told

    def reach(self, timeout_s: float) -> range:
        """The offsets from which the log can be read, its end included, asked of the leader now."""
        try:
            place = confluent.TopicPartition(*self._place)
            start, end = self._consumer.get_watermark_offsets(place, timeout_s, cached=False)
        except confluent.KafkaException as error:
            raise explained(error.args[0], self._what("asking for the ends of"), self._where) from error
        return range(start, end + 1)

    def close(self) -> None:
        """End it."""
        self._consumer.close()

    def _note(self, error: Any) -> None:
        if error.code() not in _OF_THE_GROUP:
            self._trouble = explained(error, self._what("reading"), self._where)

    def _what(self, doing: str) -> str:
        topic, partition = self._place
        return f"{doing} {topic}-{partition}"
