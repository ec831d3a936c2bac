"""Brings up and takes down the sites that Twinlog runs.

`up` is a list of steps, each of which looks first whether it is done already, so that a command
killed at any moment is simply run again. What a failed or interrupted `up` started, it ends; what
ran before, goes on. Nothing is started before every check has passed.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import psutil

from twinlog.durable import write_text
from twinlog.errors import SiteError
from twinlog.machine import cache_directory
from twinlog.progress import Progress
from twinlog.sites import cgroups, holds, levels, prerequisites, processes, properties, storage, training
from twinlog.sites.archive import ensure_archive
from twinlog.sites.home import Home
from twinlog.sites.jars import ensure_jars, locked_jars
from twinlog.sites.java import Java, find_java
from twinlog.sites.layout import Kind, Listener, Node, SiteLayout
from twinlog.sites.readiness import wait_until_ready
from twinlog.spec.effective import needed_bytes_per_broker
from twinlog.spec.model import KAFKA_VERSION, KafkaVersion

READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0  # a broker hands over its leaderships and flushes; then it is killed
KILL_TIMEOUT_S = 10.0
# Settings of the command that change how JVMs run, as Kafka's own start scripts take them.
JVM_VARIABLES = ("KAFKA_HEAP_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_OPTS")
TLS_DEBUG = ("-Djavax.net.debug=ssl:handshake", "-Duser.timezone=UTC")


@dataclass(frozen=True)
class Kafka:
    """What is needed to run a Kafka process on this machine."""

    java: Java
    class_path: tuple[Path, ...]
    archive: Path | None

    def command(self) -> list[str]:
        """A short-lived Kafka tool: small heap, quick start."""
        options = [str(self.java.binary), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        if self.archive is not None:
            options += properties.archive_options(str(self.archive))
        return [*options, "-cp", ":".join(map(str, self.class_path))]


def ensure_kafka(
    progress: Progress, version: KafkaVersion = KAFKA_VERSION, *, with_archive: bool = True
) -> Kafka:
    """Java, jars and class-data archive, fetched and made on first use."""
    java = find_java()
    cache = cache_directory()
    class_path = ensure_jars(cache, progress, locked_jars(version))
    plain = Kafka(java, class_path, None)
    if not with_archive:
        return plain
    archive = ensure_archive(
        cache, java, class_path, training.trainer(java, class_path, plain.command()), progress
    )
    return Kafka(java, class_path, archive)


def ensure_for(home: Home, names: Sequence[str], progress: Progress) -> dict[str, Kafka]:
    """What each of these sites runs with, by site."""
    versions = {name: home.bus.kafka_version_of(name) for name in names}
    found = {version: ensure_kafka(progress, version) for version in sorted(set(versions.values()))}
    return {name: found[version] for name, version in versions.items()}


def up(
    home: Home,
    names: Sequence[str],
    progress: Progress,
    *,
    kafka: Mapping[str, Kafka] | None = None,
    debug_tls: bool = False,
    open_to_clients: bool = True,
    timeout_s: float = READY_TIMEOUT_S,
) -> list[Node]:
    """Have these sites running and ready; returns the nodes that were started."""
    if not names:
        return []
    kafka = kafka or ensure_for(home, names, progress)
    _refuse_half_deleted(home, names)
    if open_to_clients:
        _refuse_lost(home, names)
    home.allocate()
    home.pki.ensure()
    layouts = [home.layout(name) for name in names]
    for layout in layouts:
        levels.refuse_older(layout, home.bus.kafka_version_of(layout.name))
    running = processes.find(node for layout in layouts for node in layout.local_nodes)
    starting = [node for layout in layouts for node in layout.local_nodes if node.id not in running]
    prerequisites.check(starting)
    for node in starting:
        if node.kind is Kind.BROKER:
            needed = needed_bytes_per_broker(home.bus, node.site)
            doubt = prerequisites.doubt_room(node.name, node.data[0], needed)
            if doubt:
                progress.note(doubt)
    _format(home, layouts, kafka, progress)
    for layout in layouts:
        for node in layout.local_nodes:
            if node.id not in running:
                configure(
                    home,
                    layout,
                    node,
                    kafka[layout.name],
                    debug_tls=debug_tls,
                    open_to_clients=open_to_clients,
                )
    try:
        for layout in layouts:
            for node in layout.local_nodes:
                holds.release(node)  # also of one that runs: a `down` was killed before it stopped it
        for node in starting:
            process, remark = processes.start(node, kafka[node.site].java)
            running[node.id] = process
            if remark:
                progress.note(f"{node.name}: {remark}")
        _wait_all(home, layouts, running, progress, timeout_s)
    except BaseException:
        for node in starting:
            holds.hold(node, "the last `up` did not finish")
        # Also looked for: an interrupt may come between a start and its being noted.
        running.update(processes.find(starting))
        left = [running[node.id] for node in starting if node.id in running]
        processes.end(left, signal.SIGKILL)
        processes.wait(left, KILL_TIMEOUT_S)
        raise
    return starting


def _refuse_half_deleted(home: Home, names: Sequence[str]) -> None:
    """What a killed `destroy` left is deleted to the end before anything new takes its place."""
    state = home.state_file.read()
    half = [name for name in names if state is not None and name in state.destroying]
    if state is not None and half:
        whole = set(state.sites) <= set(state.destroying)
        raise SiteError(
            f"site {half[0]} was being deleted when `twinlog destroy` ended",
            where=str(home.directory),
            hint="twinlog destroy --yes" if whole else f"twinlog destroy --site {half[0]} --yes",
        )


def _refuse_lost(home: Home, names: Sequence[str]) -> None:
    """A site that a failover left behind would take its old clients' writes again."""
    state = home.state_file.read()
    for name in names:
        if state is not None and name in state.lost:
            raise SiteError(
                f"site {name} was lost and {state.active} has taken over; it may hold records of its own",
                where=str(home.directory),
                hint="twinlog return",
            )


def _format(
    home: Home, layouts: Iterable[SiteLayout], kafka: Mapping[str, Kafka], progress: Progress
) -> None:
    for layout in layouts:
        _refuse_lost_disks(home, layout)
    new = [
        layout
        for layout in layouts
        if any(not storage.is_formatted(node, layout.cluster_id) for node in layout.local_nodes)
    ]
    if new:
        name = "formatting " + ", ".join(f"site {layout.name}" for layout in new)
        progress.begin(name)
        with ThreadPoolExecutor(len(new)) as pool:
            for done in [
                pool.submit(
                    storage.format_site,
                    layout,
                    layout.local_nodes,
                    kafka[layout.name].command(),
                    _scratch(home, layout),
                )
                for layout in new
            ]:
                done.result()
        progress.end(name)
    # Also after a format whose command was killed before it came to this.
    state = home.state()
    for layout in layouts:
        shutil.rmtree(_scratch(home, layout), ignore_errors=True)
        for node in layout.local_nodes:
            state.sites[layout.name].nodes[node.id].formatted = True
    home.state_file.write(state)


def _scratch(home: Home, layout: SiteLayout) -> Path:
    return home.directory / "sites" / layout.name / "formatting"


def _refuse_lost_disks(home: Home, layout: SiteLayout) -> None:
    """A node that had its disks formatted once never gets an empty one in their place unasked."""
    remembered = home.state().sites[layout.name].nodes
    for node in layout.local_nodes:
        if remembered[node.id].formatted and not storage.is_formatted(node, layout.cluster_id):
            lost = ", ".join(str(path) for path in node.data if not storage.read_meta(path))
            raise SiteError(
                f"{node.name} has lost its data: {lost} is empty or not mounted",
                where=f"site {layout.name}",
                hint=f"mount it again; if it is gone: twinlog broker replace {node.id} --disk-lost --yes",
            )


def configure(
    home: Home,
    layout: SiteLayout,
    node: Node,
    kafka: Kafka,
    *,
    debug_tls: bool = False,
    open_to_clients: bool = True,
) -> None:
    """Write everything that a node reads when it starts."""
    node.directory.mkdir(parents=True, exist_ok=True)
    home.issue_node_certificates(node)
    settings = properties.server_properties(
        node, layout, home.tls_files(node), open_to_clients=open_to_clients
    )
    write_text(node.directory / "server.properties", properties.render(settings))
    write_text(
        node.directory / "log4j2.properties", properties.log_configuration(str(node.directory / "log"))
    )
    extra = [word for name in JVM_VARIABLES for word in os.environ.get(name, "").split()]
    options = properties.jvm_options(
        node,
        layout,
        tuple(map(str, kafka.class_path)),
        str(kafka.archive) if kafka.archive else None,
        (*extra, *(TLS_DEBUG if debug_tls else ())),
    )
    write_text(node.directory / processes.ARGUMENT_FILE, properties.argument_file(options))


def open_to_clients(nodes: Sequence[Node]) -> list[Node]:
    """The brokers among these that run, and were started with their client ports open."""
    found = []
    for node in (node for node in nodes if node.id in processes.find(nodes)):
        settings = properties.written((node.directory / "server.properties").read_text())
        if f"{Listener.CLIENT.name}://" in settings["listeners"]:
            found.append(node)
    return found


def _wait_all(
    home: Home,
    layouts: Sequence[SiteLayout],
    running: dict[int, psutil.Process],
    progress: Progress,
    timeout_s: float,
) -> None:
    accesses = {layout.name: home.admin_access(layout.name) for layout in layouts}
    given_up = threading.Event()

    def pause(seconds: float) -> None:
        if given_up.wait(seconds):
            raise SiteError("not waited for any longer")

    def wait(layout: SiteLayout) -> None:
        brokers = len(layout.brokers)
        name = f"site {layout.name}: waiting for {brokers} broker{'' if brokers == 1 else 's'}"
        progress.begin(name)
        wait_until_ready(layout, accesses[layout.name], running, timeout_s, pause)
        progress.end(name, "ready")

    with ThreadPoolExecutor(len(layouts)) as pool:
        try:
            for future in as_completed([pool.submit(wait, layout) for layout in layouts]):
                future.result()
        except BaseException:
            given_up.set()  # else an interrupt, or one site's failure, would wait for the other site
            raise


def down(home: Home, names: Sequence[str], progress: Progress, *, timeout_s: float = STOP_TIMEOUT_S) -> int:
    """End all nodes of these sites, brokers before controllers; returns how many ran."""
    layouts = [home.layout(name) for name in names]
    for layout in layouts:
        for node in layout.local_nodes:
            holds.hold(node, "twinlog down")
    ended = 0
    # A broker that still has its controllers moves its leaderships and ends in order.
    for kind in (Kind.BROKER, Kind.CONTROLLER):
        nodes = [node for layout in layouts for node in layout.local_nodes if node.kind is kind]
        ended += stop(nodes, progress, timeout_s=timeout_s)
    return ended


def stop(nodes: Sequence[Node], progress: Progress, *, timeout_s: float = STOP_TIMEOUT_S) -> int:
    """End nodes in order, by force after a while; returns how many ran."""
    running = list(processes.find(nodes).values())
    if running:
        name = f"stopping {len(running)} {nodes[0].kind}{'' if len(running) == 1 else 's'}"
        progress.begin(name)
        _end(running, progress, timeout_s)
        progress.end(name)
    for node in nodes:
        cgroups.forget(node.directory)  # also of those that were killed
    return len(running)


def _end(running: list[psutil.Process], progress: Progress, timeout_s: float) -> None:
    processes.end(running, signal.SIGTERM)
    stubborn = processes.wait(running, timeout_s)
    if not stubborn:
        return
    progress.note(f"{len(stubborn)} did not end within {timeout_s:g} s and are killed")
    processes.end(stubborn, signal.SIGKILL)
    left = processes.wait(stubborn, KILL_TIMEOUT_S)
    if left:
        pids = " ".join(str(process.pid) for process in left)
        raise SiteError(f"processes {pids} do not end", hint=f"ps -fp {pids}")
