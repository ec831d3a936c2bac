"""Brings up, takes down and removes the sites that Twinlog runs.

`up` is a list of steps, each of which looks first whether it is done already, so that a command
killed at any moment is simply run again. What a failed or interrupted `up` started, it ends; what
ran before, goes on. Nothing is started before every check has passed.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil

from twinlog.durable import write_text
from twinlog.errors import SiteError
from twinlog.machine import cache_directory
from twinlog.progress import Progress
from twinlog.sites import cgroups, holds, prerequisites, processes, properties, storage, training
from twinlog.sites.archive import ensure_archive
from twinlog.sites.home import Home
from twinlog.sites.jars import ensure_jars
from twinlog.sites.java import Java, find_java
from twinlog.sites.layout import Kind, Node, SiteLayout
from twinlog.sites.readiness import wait_until_ready

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
            options += [
                f"-XX:SharedArchiveFile={self.archive}",
                "-Xshare:auto",
                "-Xlog:cds=off",
                "-Xlog:cds+dynamic=off",
            ]
        return [*options, "-cp", ":".join(map(str, self.class_path))]


def ensure_kafka(progress: Progress, *, with_archive: bool = True) -> Kafka:
    """Java, jars and class-data archive, fetched and made on first use."""
    java = find_java()
    cache = cache_directory()
    class_path = ensure_jars(cache, progress)
    plain = Kafka(java, class_path, None)
    if not with_archive:
        return plain
    archive = ensure_archive(
        cache, java, class_path, training.trainer(java, class_path, plain.command()), progress
    )
    return Kafka(java, class_path, archive)


def up(
    home: Home,
    names: Sequence[str],
    progress: Progress,
    *,
    kafka: Kafka | None = None,
    debug_tls: bool = False,
    timeout_s: float = READY_TIMEOUT_S,
) -> list[Node]:
    """Have these sites running and ready; returns the nodes that were started."""
    kafka = kafka or ensure_kafka(progress)
    home.allocate()
    home.pki.ensure()
    layouts = [home.layout(name) for name in names]
    running = processes.find(node for layout in layouts for node in layout.local_nodes)
    starting = [node for layout in layouts for node in layout.local_nodes if node.id not in running]
    prerequisites.check(starting)
    _format(home, layouts, kafka, progress)
    for layout in layouts:
        for node in layout.local_nodes:
            if node.id not in running:
                configure(home, layout, node, kafka, debug_tls=debug_tls)
    started: list[psutil.Process] = []
    try:
        for node in starting:
            holds.release(node)
            process, remark = processes.start(node, kafka.java)
            started.append(process)
            running[node.id] = process
            if remark:
                progress.note(f"{node.name}: {remark}")
        _wait_all(home, layouts, running, progress, timeout_s)
    except BaseException:
        processes.end(started, signal.SIGKILL)
        processes.wait(started, KILL_TIMEOUT_S)
        raise
    return starting


def _format(home: Home, layouts: Iterable[SiteLayout], kafka: Kafka, progress: Progress) -> None:
    for layout in layouts:
        _refuse_lost_disks(home, layout)
    new = [
        layout
        for layout in layouts
        if any(not storage.is_formatted(node, layout.cluster_id) for node in layout.local_nodes)
    ]
    if not new:
        return
    name = "formatting " + ", ".join(f"site {layout.name}" for layout in new)
    progress.begin(name)
    with ThreadPoolExecutor(len(new)) as pool:
        for done in [
            pool.submit(
                storage.format_site,
                layout,
                layout.local_nodes,
                kafka.command(),
                home.directory / "sites" / layout.name / "formatting",
            )
            for layout in new
        ]:
            done.result()
    state = home.state()
    for layout in new:
        for node in layout.local_nodes:
            state.sites[layout.name].nodes[node.id].formatted = True
    home.state_file.write(state)
    progress.end(name)


def _refuse_lost_disks(home: Home, layout: SiteLayout) -> None:
    """A node that had its disks formatted once never gets an empty one in their place unasked."""
    remembered = home.state().sites[layout.name].nodes
    for node in layout.local_nodes:
        if remembered[node.id].formatted and not storage.is_formatted(node, layout.cluster_id):
            lost = ", ".join(str(path) for path in node.data if not storage.read_meta(path))
            raise SiteError(
                f"{node.name} has lost its data: {lost} is empty or not mounted",
                where=f"site {layout.name}",
                hint=f"mount it again; is the volume there? ls {lost}",
            )


def configure(home: Home, layout: SiteLayout, node: Node, kafka: Kafka, *, debug_tls: bool = False) -> None:
    """Write everything that a node reads when it starts."""
    node.directory.mkdir(parents=True, exist_ok=True)
    home.issue_node_certificates(node)
    settings = properties.server_properties(node, layout, home.tls_files(node))
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


def _wait_all(
    home: Home,
    layouts: Sequence[SiteLayout],
    running: dict[int, psutil.Process],
    progress: Progress,
    timeout_s: float,
) -> None:
    accesses = {layout.name: home.admin_access(layout.name) for layout in layouts}

    def wait(layout: SiteLayout) -> None:
        name = f"site {layout.name}: waiting for {len(layout.brokers)} brokers"
        progress.begin(name)
        wait_until_ready(layout, accesses[layout.name], running, timeout_s)
        progress.end(name, "ready")

    with ThreadPoolExecutor(len(layouts)) as pool:
        for future in [pool.submit(wait, layout) for layout in layouts]:
            future.result()


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
    running = processes.find(nodes)
    if not running:
        return 0
    name = f"stopping {len(running)} {nodes[0].kind}s"
    progress.begin(name)
    processes.end(list(running.values()), signal.SIGTERM)
    stubborn = processes.wait(list(running.values()), timeout_s)
    if stubborn:
        progress.note(f"{len(stubborn)} did not end within {timeout_s:g} s and are killed")
        processes.end(stubborn, signal.SIGKILL)
        left = processes.wait(stubborn, KILL_TIMEOUT_S)
        if left:
            pids = " ".join(str(process.pid) for process in left)
            raise SiteError(f"processes {pids} do not end", hint=f"ps -fp {pids}")
    for node in nodes:
        cgroups.forget(node.directory)
    progress.end(name)
    return len(running)


def destroy(home: Home, names: Sequence[str], progress: Progress) -> list[Path]:
    """End these sites and delete all that they had; returns what was deleted."""
    state = home.state()
    present = [name for name in names if name in state.sites]
    # Written first, so that a destroy that was killed is not taken for a site that lost its disks.
    state.destroying = sorted({*state.destroying, *present})
    home.state_file.write(state)
    layouts = [home.layout(name) for name in present]
    here = [node for layout in layouts for node in layout.local_nodes]
    processes.end(list(processes.find(here).values()), signal.SIGKILL)
    processes.wait(list(processes.find(here).values()), KILL_TIMEOUT_S)
    deleted: list[Path] = []
    for layout in layouts:
        for node in layout.local_nodes:
            deleted += [path for path in node.data if not path.is_relative_to(home.directory)]
            for path in node.data:
                shutil.rmtree(path, ignore_errors=True)
            cgroups.forget(node.directory)
        shutil.rmtree(home.directory / "sites" / layout.name, ignore_errors=True)
        deleted.append(home.directory / "sites" / layout.name)
        elsewhere = [node.name for node in layout.nodes if node.remote]
        if elsewhere:
            progress.note(f"what runs elsewhere is to be deleted there: {', '.join(elsewhere)}")
        progress.note(f"site {layout.name} is gone")
    state.sites = {name: site for name, site in state.sites.items() if name not in present}
    state.destroying = []
    home.state_file.write(state)
    if not state.sites:
        shutil.rmtree(home.directory)
        deleted = [path for path in deleted if not path.is_relative_to(home.directory)] + [home.directory]
    return deleted
