"""A page for Prometheus, served by a process that runs for long: the link's driver, the runner of jobs.

Who serves one hands over a collector; each scrape asks it anew, from threads of the page's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.registry import Collector

from twinlog.errors import PrerequisiteError
from twinlog.wire.addresses import HostPort


@contextmanager
def served(address: str | None, collector: Collector, setting: str) -> Iterator[None]:
    """Serve what a collector tells while the block runs; without an address, nowhere.

    `setting` is the place in the file that names the address.
    """
    if address is None:
        yield
        return
    registry = CollectorRegistry()
    registry.register(collector)
    where = HostPort.parse(address)
    try:
        server, thread = start_http_server(where.port, where.host, registry)
    except OSError as error:
        raise PrerequisiteError(
            f"the page for Prometheus cannot be served: {error.strerror or error}",
            where=address,
            hint=f"does something else listen there? {setting}: {{metrics: HOST:PORT}} names another address",
        ) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
