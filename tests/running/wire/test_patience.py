"""How long one address is waited for while another one could answer."""

from __future__ import annotations

import socket

from kafka.protocol.metadata import MetadataResponse

from tests.running.wire import scripted_broker as broker
from twinlog.wire.access import Access, Protocol
from twinlog.wire.cluster import Cluster, Patience


def answers(connection: socket.socket) -> None:
    """A broker that knows of itself."""
    broker.greet(connection)
    kind = MetadataResponse.MetadataResponseBroker
    while True:
        _, version, number = broker.read_request(connection)
        known = [kind(node_id=7, host="127.0.0.1", port=1, rack=None)]
        told = MetadataResponse(
            throttle_time_ms=0, brokers=known, cluster_id="c", controller_id=7, topics=[], error_code=0
        )
        broker.answer(connection, told, version, number)


def test_an_address_that_takes_a_connection_and_says_nothing_leaves_time_for_the_next() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, broker.listening(answers) as good:
        bootstrap = (f"127.0.0.1:{silent.getsockname()[1]}", str(good))
        access = Access(bootstrap, Protocol.PLAINTEXT)
        with Cluster(access, patience=Patience.within(2.0)) as cluster:
            found = cluster.brokers()
    assert [one.id for one in found] == [7]
