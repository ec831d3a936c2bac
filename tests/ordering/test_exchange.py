"""What drivers tell of their brokers, as figures; told by a real one, and by hand."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from twinlog.ordering.exchange import EVERY_S, Exchange
from twinlog.ordering.localconfig import Retry
from twinlog.ordering.topic import Reach, Topic
from twinlog.wire.access import Access, Protocol

_WAIT_S = 30.0


class Time:
    """A clock that stands."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _window(total: float = 0, count: int = 0) -> dict[str, float]:
    return {"sum": total, "cnt": count}


def _stated(name: str, at_s: float, requests: int, **more: Any) -> str:
    broker = {
        "nodeid": 1, "tx": requests, "txbytes": 1000 * requests, "rx": requests, "rxbytes": 50 * requests,
        "rtt": _window(20_000, 10),
    }  # fmt: skip
    topic = {"topic": "trades", "batchsize": _window(90_000, 9), "batchcnt": _window(180, 9)}
    unused = {**broker, "nodeid": -1}
    stated = {
        "name": name, "type": "producer", "ts": at_s * 1e6,
        "brokers": {"a:1/1": broker, "a:1/bootstrap": unused}, "topics": {"trades": topic},
    }  # fmt: skip
    return json.dumps(stated | more)


def _shown(exchange: Exchange) -> dict[str, str]:
    """The values by name and label."""
    lines = [line.rsplit(" ", 1) for family in exchange.families() for line in family.lines()]
    return {name.removeprefix("consensus_kafka_"): value for name, value in lines}


@pytest.fixture
def clock() -> Time:
    return Time()


def test_two_statements_of_a_client_give_rates_and_means(clock: Time) -> None:
    exchange = Exchange(clock)
    exchange.told(_stated("p", 5, 100))
    assert _shown(exchange) == {}
    exchange.told(_stated("p", 15, 300))
    assert _shown(exchange) == {
        'incoming_byte_rate{broker_id="1"}': "1000",
        'outgoing_byte_rate{broker_id="1"}': "20000",
        'request_rate{broker_id="1"}': "20",
        'request_size{broker_id="1"}': "1000",
        'request_latency{broker_id="1"}': "2",
        'response_rate{broker_id="1"}': "20",
        'response_size{broker_id="1"}': "50",
        'batch_size{topic="trades"}': "10000",
        'record_send_rate{topic="trades"}': "18",
        'records_per_request{topic="trades"}': "20",
        'compression_ratio{topic="trades"}': "100",
    }


def test_several_clients_are_counted_together_and_readers_send_nothing(clock: Time) -> None:
    exchange = Exchange(clock)
    for at_s, requests in ((5, 0), (15, 100)):
        exchange.told(_stated("p", at_s, requests))
        exchange.told(_stated("c", at_s, 2 * requests, type="consumer"))
    shown = _shown(exchange)
    assert shown['request_rate{broker_id="1"}'] == "30"
    assert shown['record_send_rate{topic="trades"}'] == "18"


def test_client_that_is_not_heard_any_more_counts_no_more(clock: Time) -> None:
    exchange = Exchange(clock)
    exchange.told(_stated("p", 5, 0))
    exchange.told(_stated("p", 15, 100))
    clock.now_s += 3 * EVERY_S + 1
    assert _shown(exchange) == {}


def test_real_drivers_tell_in_a_form_that_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinlog.ordering.exchange.EVERY_S", 0.05)
    exchange, often, errors = Exchange(), threading.Semaphore(0), list[Exception]()

    def hear(text: str) -> None:
        try:
            exchange.told(text)
        except Exception as error:
            errors.append(error)
        often.release()

    topic = Topic("foo", Reach(Access(("127.0.0.1:1",), Protocol.PLAINTEXT), Retry(), told=hear))
    topic.open()
    topic.post(b"value")
    assert all(often.acquire(timeout=_WAIT_S) for _ in range(3))
    topic.close()
    assert not errors and exchange._clients
    families = {family.name for family in exchange.families()}
    assert len(families) == 11 and all(name.startswith("consensus_kafka_") for name in families)
