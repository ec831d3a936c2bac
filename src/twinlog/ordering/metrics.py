"""The orderer's figures under Fabric's names.

Sessions and chains count with `Figures`, drivers tell its `exchange` of their brokers; `page` shows the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from twinlog.ordering.exchange import Exchange
from twinlog.ordering.families import Counter, Durations
from twinlog.ordering.statuses import NAMES
from twinlog.ordering.support import Written


class Figures:
    """All that one orderer counts."""

    def __init__(self) -> None:
        sent = ("channel", "type", "status")
        self._validated = Durations(
            "broadcast_validate_duration", "The time to validate a transaction in seconds.", sent
        )
        self._enqueued = Durations(
            "broadcast_enqueue_duration", "The time to enqueue a transaction in seconds.", sent
        )
        self._processed = Counter("broadcast_processed_count", "The number of transactions processed.", sent)
        self._opened = Counter("deliver_streams_opened", "The number of streams opened for delivery.", ())
        self._closed = Counter("deliver_streams_closed", "The number of streams closed for delivery.", ())
        read = ("channel", "filtered", "data_type")
        self._received = Counter("deliver_requests_received", "The number of requests received.", read)
        self._completed = Counter(
            "deliver_requests_completed", "The number of requests completed.", (*read, "success")
        )
        self._sent = Counter("deliver_blocks_sent", "The number of blocks sent.", read)
        self._filled = Durations(
            "blockcutter_block_fill_duration",
            "The time from first transaction enqueing to the block being cut in seconds.",
            ("channel",),
        )
        self._offset = Counter(
            "consensus_kafka_last_offset_persisted",
            "The offset specified in the block metadata of the most recently committed block.",
            ("channel",),
            "gauge",
        )
        self._height = Counter(
            "ledger_blockchain_height", "Height of the chain in blocks.", ("channel",), "gauge"
        )
        self._transactions = Counter("ledger_transaction_count", "Number of transactions.", ("channel",))
        self._block_bytes = Counter("twinlog_block_bytes", "Bytes of blocks written.", ("channel",))
        self.exchange = Exchange()
        self._families = [one for one in vars(self).values() if isinstance(one, Counter | Durations)]

    def broadcast(
        self, channel: str, kind: str, status: int, took_s: Sequence[tuple[float, float | None]]
    ) -> None:
        """Messages were answered alike; of each the time to check it and, if it came to that, to the log."""
        labels = (channel, kind, NAMES[status])
        for validate_s, enqueue_s in took_s:
            self._validated.add(labels, validate_s)
            if enqueue_s is not None:
                self._enqueued.add(labels, enqueue_s)
        self._processed.add(*labels, by=len(took_s))

    def stream_opened(self) -> None:
        """A reader came."""
        self._opened.add()

    def stream_closed(self) -> None:
        """A reader went."""
        self._closed.add()

    def request_received(self, channel: str) -> None:
        """A reader asks for blocks."""
        self._received.add(channel, "false", "block")

    def request_completed(self, channel: str, success: bool) -> None:
        """It got them all, or not."""
        self._completed.add(channel, "false", "block", str(success).lower())

    def block_sent(self, channel: str) -> None:
        """A reader was given a block."""
        self._sent.add(channel, "false", "block")

    def written(self, channel: str, blocks: Sequence[Written]) -> None:
        """Blocks were written."""
        for block in blocks:
            self._filled.add((channel,), block.filled_s)
            self._transactions.add(channel, by=block.transactions)
            self._block_bytes.add(channel, by=block.size_bytes)
        if blocks:
            self._offset.set(channel, to=blocks[-1].last_offset)
            self._height.set(channel, to=blocks[-1].number + 1)

    def height(self, channel: str, height: int) -> None:
        """How many blocks a channel had at the start."""
        self._height.set(channel, to=height)

    def text(self) -> str:
        """All of it, as Prometheus reads it."""
        lines: list[str] = []
        for family in (*self._families, *self.exchange.families()):
            lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
            lines += family.lines()
        return "\n".join(lines) + "\n"
