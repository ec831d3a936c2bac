"""The orderer's figures under Fabric's names, and the page that shows them.

Sessions and chains count with `Figures`; `Page` serves the text for Prometheus at `/metrics` and, for
load balancers, `/healthz`. Written by hand because the names are Fabric's, which the usual library would
change, and because Broadcast counts three times a message. Each family is written by one thread.
"""

from __future__ import annotations

import json
import ssl
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from twinlog.errors import PrerequisiteError
from twinlog.ordering.statuses import NAMES
from twinlog.ordering.support import Written

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
Labels = tuple[str, ...]


class Counter:
    """How often something happened, or how large something is."""

    def __init__(self, name: str, help: str, labels: Sequence[str], kind: str = "counter") -> None:
        self.name, self.help, self.kind = name, help, kind
        self._labels = tuple(labels)
        self._values: dict[Labels, float] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count."""
        self._values[labels] = self._values.get(labels, 0) + by

    def set(self, *labels: str, to: float) -> None:
        """Know how large it is now."""
        self._values[labels] = to

    def lines(self) -> Iterator[str]:
        """The family as text."""
        for labels, value in sorted(self._values.copy().items()):
            yield f"{self.name}{_shown(self._labels, labels)} {_number(value)}"


class Durations:
    """How long something took, in buckets."""

    kind = "histogram"

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        self.name, self.help = name, help
        self._labels = tuple(labels)
        self._values: dict[Labels, list[float]] = {}  # a bucket each, what is beyond, and the sum

    def add(self, labels: Labels, seconds: float) -> None:
        """One more."""
        found = self._values.get(labels)
        if found is None:
            found = self._values[labels] = [0.0] * (len(BOUNDS_S) + 2)
        found[bisect_left(BOUNDS_S, seconds)] += 1
        found[-1] += seconds

    def lines(self) -> Iterator[str]:
        """The family as text."""
        for labels, buckets in sorted(self._values.copy().items()):
            count = 0.0
            for bound, value in zip((*map(_number, BOUNDS_S), "+Inf"), buckets, strict=False):
                count += value
                shown = _shown((*self._labels, "le"), (*labels, bound))
                yield f"{self.name}_bucket{shown} {_number(count)}"
            shown = _shown(self._labels, labels)
            yield f"{self.name}_sum{shown} {buckets[-1]!r}"
            yield f"{self.name}_count{shown} {_number(count)}"


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
            "The offset of the last message in the most recently committed block.",
            ("channel",),
            "gauge",
        )
        self._height = Counter(
            "ledger_blockchain_height", "Height of the chain in blocks.", ("channel",), "gauge"
        )
        self._transactions = Counter("ledger_transaction_count", "Number of transactions.", ("channel",))
        self._block_bytes = Counter("twinlog_block_bytes", "Bytes of blocks written.", ("channel",))
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
        for family in self._families:
            lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
            lines += family.lines()
        return "\n".join(lines) + "\n"


def _shown(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


Health = Callable[[], Mapping[str, str]]  # what is wrong, by channel


class Page:
    """A port with the figures and the health of an orderer."""

    def __init__(
        self,
        address: str,
        figures: Figures,
        health: Health,
        *,
        tls: ssl.SSLContext | None,
        shows_metrics: bool,
    ) -> None:
        host, _, port = address.rpartition(":")

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/healthz":
                    found = health()
                    content: dict[str, Any] = {"status": "OK" if not found else "Service Unavailable"}
                    if found:
                        failed = [{"component": name, "reason": why} for name, why in sorted(found.items())]
                        content["failed_checks"] = failed
                    self._reply(503 if found else 200, json.dumps(content), "application/json")
                elif self.path == "/metrics" and shows_metrics:
                    self._reply(200, figures.text(), "text/plain; version=0.0.4; charset=utf-8")
                else:
                    self._reply(404, "there are /healthz and /metrics (with Metrics.Provider: prometheus)\n")

            def _reply(self, code: int, text: str, kind: str = "text/plain") -> None:
                raw = text.encode()
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: whoever asks does so every few seconds."""

        try:
            self._server = ThreadingHTTPServer((host.strip("[]") or "0.0.0.0", int(port)), Handler)
        except (OSError, ValueError) as error:
            raise PrerequisiteError(
                f"cannot open the page of metrics and health: {error}",
                where=address,
                hint="is Operations.ListenAddress free, as in 127.0.0.1:8443?",
            ) from None
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="operations", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it is."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
