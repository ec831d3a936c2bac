"""What librdkafka tells of its brokers and topics, as Fabric's figures under `consensus_kafka_`. Pure.

Every producer and every reader of this orderer tells once in a while what it has counted since it began.
Rates and means are those between the last two times, of all of them together; one that has not been heard
for long is gone and counts no more. Told by the threads of drivers, read by the page.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from twinlog.ordering.families import Counter
from twinlog.wire.deadlines import Clock

EVERY_S = 10.0  # that a driver tells
_FORGOTTEN_S = 3 * EVERY_S
_NOT_COMPRESSED = 100.0
_Thing = tuple[str, str]  # what it is, and its name
_Counts = dict[str, float]
_BROKER, _TOPIC = "broker_id", "topic"

_OF_BROKERS = {
    "incoming_byte_rate": "Bytes/second read off brokers.",
    "outgoing_byte_rate": "Bytes/second written to brokers.",
    "request_rate": "Requests/second sent to brokers.",
    "request_size": "The mean request size in bytes to brokers.",
    "request_latency": "The mean request latency in ms to brokers.",
    "response_rate": "Requests/second sent to brokers.",
    "response_size": "The mean response size in bytes from brokers.",
}
_OF_TOPICS = {
    "batch_size": "The mean batch size in bytes sent to topics.",
    "record_send_rate": "The number of records per second sent to topics.",
    "records_per_request": "The mean number of records sent per request to topics.",
    "compression_ratio": "The mean compression ratio (as percentage) for topics.",
}


class _Told(NamedTuple):
    """What a client tells of a broker or a topic."""

    totals: _Counts  # since it began
    lately: _Counts  # since it told before


@dataclass
class _Client:
    """One producer or reader, as it told last."""

    heard_at: float
    at_us: float
    told: dict[_Thing, _Told]
    rates: dict[_Thing, _Counts] = field(default_factory=dict)  # in a second, since it told before


class Exchange:
    """All that this orderer's clients tell."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._clients: dict[str, _Client] = {}

    def told(self, text: str) -> None:
        """Hear a client of librdkafka: its statistics, as JSON."""
        stated = json.loads(text)
        before = self._clients.get(stated["name"])
        client = _Client(self._clock(), stated["ts"], dict(_read(stated)))
        if before is not None:
            passed_s = max(1e-6, (client.at_us - before.at_us) / 1e6)
            for thing, told in client.told.items():
                totals = before.told[thing].totals if thing in before.told else {}
                grown = {name: total - totals.get(name, 0.0) for name, total in told.totals.items()}
                counts = {**grown, **told.lately}
                client.rates[thing] = {name: count / passed_s for name, count in counts.items()}
        self._clients[stated["name"]] = client

    def families(self) -> list[Counter]:
        """The figures as they are now."""
        found = {
            name: Counter(f"consensus_kafka_{name}", help, [label], "gauge")
            for label, group in ((_BROKER, _OF_BROKERS), (_TOPIC, _OF_TOPICS))
            for name, help in group.items()
        }
        for (kind, label), rates in self._together().items():
            for name, value in (_of_broker(rates) if kind == _BROKER else _of_topic(rates)).items():
                found[name].set(label, to=value)
        return list(found.values())

    def _together(self) -> dict[_Thing, _Counts]:
        """What happens in a second, of all clients that are there."""
        since = self._clock() - _FORGOTTEN_S
        sums: dict[_Thing, _Counts] = {}
        for name, client in self._clients.copy().items():
            if client.heard_at < since:
                self._clients.pop(name, None)
                continue
            for thing, rates in client.rates.items():
                total = sums.setdefault(thing, {})
                for counted, rate in rates.items():
                    total[counted] = total.get(counted, 0.0) + rate
        return sums


def _read(stated: Mapping[str, Any]) -> Iterator[tuple[_Thing, _Told]]:
    for broker in stated["brokers"].values():
        if broker["nodeid"] >= 0:  # the others are addresses that it began with
            totals = {name: float(broker[name]) for name in ("tx", "txbytes", "rx", "rxbytes")}
            yield (_BROKER, str(broker["nodeid"])), _Told(totals, _window(broker, "rtt"))
    if stated["type"] == "producer":
        for name, topic in stated["topics"].items():
            lately = {**_window(topic, "batchsize"), **_window(topic, "batchcnt")}
            yield (_TOPIC, name), _Told({}, lately)


def _window(stated: Mapping[str, Any], name: str) -> _Counts:
    """What was measured since the client told before: the sum, and how often."""
    window = stated[name]
    return {f"{name}.sum": float(window["sum"]), f"{name}.cnt": float(window["cnt"])}


def _of_broker(rates: _Counts) -> _Counts:
    return {
        "incoming_byte_rate": rates["rxbytes"],
        "outgoing_byte_rate": rates["txbytes"],
        "request_rate": rates["tx"],
        "request_size": _mean(rates["txbytes"], rates["tx"]),
        "request_latency": _mean(rates["rtt.sum"], rates["rtt.cnt"]) / 1000,
        "response_rate": rates["rx"],
        "response_size": _mean(rates["rxbytes"], rates["rx"]),
    }


def _of_topic(rates: _Counts) -> _Counts:
    return {
        "batch_size": _mean(rates["batchsize.sum"], rates["batchsize.cnt"]),
        "record_send_rate": rates["batchcnt.sum"],
        "records_per_request": _mean(rates["batchcnt.sum"], rates["batchcnt.cnt"]),
        "compression_ratio": _NOT_COMPRESSED,
    }


def _mean(total: float, count: float) -> float:
    return total / count if count else 0.0
