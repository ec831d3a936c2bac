"""The orderer's figures as Prometheus reads them, and its health."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.ordering.network import Network
from twinlog.ordering.localconfig import Pem, ServerTls
from twinlog.ordering.metrics import Figures
from twinlog.ordering.page import Page
from twinlog.ordering.server import tls_context
from twinlog.ordering.support import Written


def _figures() -> Figures:
    figures = Figures()
    figures.broadcast("trades", "ENDORSER_TRANSACTION", 200, [(0.001, 0.02)])
    figures.broadcast("trades", "ENDORSER_TRANSACTION", 403, [(0.001, None)])
    figures.written("trades", [Written(6, 10, 12_000, 41, 0.3), Written(7, 5, 6_000, 46, 0.1)])
    figures.block_sent("trades")
    return figures


def test_figures_have_the_names_that_fabric_gives_them() -> None:
    lines = _figures().text().splitlines()
    sent = '{channel="trades",type="ENDORSER_TRANSACTION",status="SUCCESS"}'
    for line in (
        f"broadcast_processed_count{sent} 1",
        f"broadcast_validate_duration_count{sent} 1",
        f"broadcast_enqueue_duration_sum{sent} 0.02",
        'blockcutter_block_fill_duration_bucket{channel="trades",le="0.25"} 1',
        'blockcutter_block_fill_duration_bucket{channel="trades",le="+Inf"} 2',
        'consensus_kafka_last_offset_persisted{channel="trades"} 46',
        'ledger_blockchain_height{channel="trades"} 8',
        'ledger_transaction_count{channel="trades"} 15',
        'deliver_blocks_sent{channel="trades",filtered="false",data_type="block"} 1',
    ):
        assert line in lines


def test_figures_are_read_by_the_usual_parser() -> None:
    found = {family.name: family.type for family in text_string_to_metric_families(_figures().text())}
    assert found["broadcast_validate_duration"] == "histogram"
    assert found["ledger_blockchain_height"] == "gauge"


def test_page_tells_what_is_wrong_and_shows_figures() -> None:
    trouble: dict[str, str] = {}
    page = Page("127.0.0.1:0", _figures(), lambda: trouble, tls=None, shows_metrics=True)
    try:
        base = f"http://{page.address}"
        with urllib.request.urlopen(f"{base}/healthz", timeout=10) as answer:
            assert json.load(answer) == {"status": "OK"}
        with urllib.request.urlopen(f"{base}/metrics", timeout=10) as answer:
            assert b"ledger_blockchain_height" in answer.read()
        trouble["trades"] = "the brokers are away"
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{base}/healthz", timeout=10)
        assert caught.value.code == 503
        assert b"the brokers are away" in caught.value.read()
    finally:
        page.close()


def test_page_with_tls_is_not_held_up_by_a_client_that_says_nothing(network: Network) -> None:
    own = network.directory / "OrdererOrg/orderer1/tls"
    tls = ServerTls(
        enabled=True, private_key=Pem(path=own / "server.key"), certificate=Pem(path=own / "server.crt")
    )
    context = tls_context(tls, protocol="http/1.1")
    page = Page("127.0.0.1:0", _figures(), dict, tls=context, shows_metrics=False)
    host, _, port = page.address.rpartition(":")
    trusted = ssl.create_default_context(cafile=str(network.directory / "OrdererOrg/tlsca/ca.pem"))
    try:
        with (
            socket.create_connection((host, int(port))),  # and never begins its handshake
            urllib.request.urlopen(f"https://{page.address}/healthz", timeout=10, context=trusted) as answer,
        ):
            assert json.load(answer) == {"status": "OK"}
    finally:
        page.close()
