"""When a site is ready: every broker registered, the quorum led, a canary write acknowledged.

The canary topic has a partition led by each broker, so that one write with acks=all to each
partition shows that all brokers take writes and replicate them. A node that dies meanwhile ends
the wait at once, with the last words of its log.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping

import psutil

from twinlog.errors import KafkaError, SiteError, TwinlogError
from twinlog.sites import logs, processes
from twinlog.sites.layout import Node, SiteLayout
from twinlog.wire import canary, quorum, topics
from twinlog.wire.access import Access
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.deadlines import Deadline

CANARY_TOPIC = "__twinlog_canary"
CANARY_SETTINGS = {"retention.ms": "3600000", "segment.ms": "3600000", "segment.bytes": "1048576"}
LOOK_AGAIN_S = 0.1
# Short waits in each attempt: the loop around it looks after the processes in between. No growing
# pauses: asking a port that nobody listens on costs next to nothing, and a late look costs the start.
PATIENCE = Patience(connect_s=2.0, request_s=5.0, total_s=2.0, pauses_s=(LOOK_AGAIN_S,))


def wait_until_ready(
    site: SiteLayout,
    access: Access,
    running: Mapping[int, psutil.Process],
    timeout_s: float,
    wait: Callable[[float], object] | None = None,
) -> None:
    """Return when the site takes writes on every broker; raise when a node died or time is over."""
    deadline = Deadline(timeout_s)
    pause = wait or threading.Event().wait
    missing = "no broker answers yet"
    with Cluster(access, patience=PATIENCE) as cluster:
        while not deadline.passed:
            _check_alive(site, running)
            missing = what_is_missing(cluster, site)
            if not missing:
                return
            pause(LOOK_AGAIN_S)
    raise SiteError(
        f"not ready after {timeout_s:g} s: {missing}",
        where=f"site {site.name}",
        hint=f"twinlog logs --site {site.name} --grep 'ERROR|WARN'",
    )


def what_is_missing(cluster: Cluster, site: SiteLayout) -> str:
    """What the site still lacks, in one sentence; nothing when it is ready."""
    try:
        registered = {broker.id for broker in cluster.brokers()}
        absent = [_named(node) for node in site.brokers if node.id not in registered]
        if absent:
            return f"{', '.join(absent)} not registered"
        for node in site.brokers:
            cluster.broker(node.id)  # a killed broker stays registered until its session ends
        if quorum.describe(cluster).leader_id < 0:
            return "the quorum has no leader"
        return write_canaries(cluster, len(site.brokers))
    except TwinlogError as error:
        return str(error)


def _named(node: Node) -> str:
    return f"{node.name} (runs elsewhere: is its bundle started?)" if node.remote else node.name


def write_canaries(cluster: Cluster, brokers: int) -> str:
    """Write to every partition of the canary topic; returns why one was not acknowledged."""
    payload = str(time.time_ns()).encode()
    _ensure_canary_topic(cluster, brokers)
    for partition in range(brokers):
        outcome = canary.write(cluster, CANARY_TOPIC, partition, payload)
        if not isinstance(outcome, canary.Done):
            return f"canary write to partition {partition}: {outcome.reason}"
    return ""


def _ensure_canary_topic(cluster: Cluster, brokers: int) -> None:
    found = topics.describe(cluster, [CANARY_TOPIC])
    if not found:
        new = topics.NewTopic(CANARY_TOPIC, assignment=_spread(cluster, brokers), configs=CANARY_SETTINGS)
        try:
            topics.create(cluster, new)
        except KafkaError as error:
            if error.code != "TOPIC_ALREADY_EXISTS":
                raise
    elif len(found[0].partitions) < brokers:
        topics.add_partitions(cluster, CANARY_TOPIC, brokers)


def _spread(cluster: Cluster, brokers: int) -> tuple[tuple[int, ...], ...]:
    """One partition led by each broker, with the next ones as followers."""
    ids = [broker.id for broker in cluster.brokers()]
    copies = min(3, brokers)
    return tuple(tuple(ids[(first + step) % len(ids)] for step in range(copies)) for first in range(brokers))


def _check_alive(site: SiteLayout, running: Mapping[int, psutil.Process]) -> None:
    for node in site.local_nodes:
        process = running.get(node.id)
        if process is None or not processes.is_running(process):
            raise SiteError(
                f"{node.name} ended while it was starting: {last_words(node)}",
                where=str(node.directory / "log"),
                hint=f"twinlog logs --site {site.name} --grep ERROR",
            )


def last_words(node: Node) -> str:
    """The most telling line that a dead node left behind."""
    errors = [entry for entry in _recent(node) if entry.level in ("ERROR", "FATAL")]
    if errors:
        return errors[-1].text.splitlines()[0]
    return processes.console_tail(node, lines=1) or "it left no message"


def _recent(node: Node) -> Iterator[logs.Entry]:
    return logs.history([node])
