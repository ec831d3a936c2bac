"""The training run for the class-data archive: one node that does what brokers and controllers do.

It is broker and controller in one process, with the listeners, stores and authorizer of a real
site, and answers a canary write, a password login and a topic creation before it ends, so that the
archive has the classes that a start needs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from twinlog.durable import write_text
from twinlog.errors import TwinlogError
from twinlog.sites import prerequisites, properties, storage
from twinlog.sites.archive import Training
from twinlog.sites.home import Home
from twinlog.sites.java import Java, environment
from twinlog.sites.layout import Listener, SiteLayout
from twinlog.sites.readiness import wait_until_ready
from twinlog.spec.model import Bus, Site, User
from twinlog.wire import users
from twinlog.wire.access import Mechanism
from twinlog.wire.cluster import Cluster

READY_TIMEOUT_S = 120.0
USER = "trainee"


def trainer(java: Java, class_path: Sequence[Path], tool: Sequence[str]) -> Training:
    """A training run with this Java and these jars; `tool` runs Kafka's own commands."""

    def train(directory: Path, options: Sequence[str]) -> subprocess.Popen[bytes]:
        bus = Bus(bus="training", sites={"a": Site(brokers=1)}, users={USER: User()})
        home = Home(bus, directory / "twinlog.yaml", {})
        home.allocate()
        home.pki.ensure()
        layout = _combined(home.layout("a"))
        (node,) = layout.brokers
        prerequisites.check(layout.brokers)
        storage.format_site(layout, layout.controllers, tool, directory / "formatting")
        home.issue_node_certificates(node)
        settings = properties.server_properties(node, layout, home.tls_files(node))
        settings["process.roles"] = "broker,controller"
        settings["listeners"] += f",CONTROLLER://{node.listen}:{node.ports[Listener.CONTROLLER]}"
        settings["advertised.listeners"] += f",CONTROLLER://{node.address(Listener.CONTROLLER)}"
        node.directory.mkdir(parents=True, exist_ok=True)
        write_text(node.directory / "server.properties", properties.render(settings))
        write_text(node.directory / "log4j2.properties", properties.log_configuration(str(directory)))
        arguments = properties.jvm_options(node, layout, tuple(map(str, class_path)), None, tuple(options))
        command = [str(java.binary), *arguments, "kafka.Kafka", str(node.directory / "server.properties")]
        with (directory / "console.log").open("wb") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=environment()
            )
        try:
            watched = {node.id: psutil.Process(process.pid)}
            wait_until_ready(layout, home.admin_access("a"), watched, READY_TIMEOUT_S)
            _exercise(home)
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process

    return train


def _combined(layout: SiteLayout) -> SiteLayout:
    """The same site with broker and controller as one node."""
    broker, controller = layout.brokers[0], layout.controllers[0]
    ports = {**broker.ports, **controller.ports}
    one = replace(broker, ports=ports)
    voter = replace(controller, id=broker.id, data=broker.data, directory_ids=broker.directory_ids)
    return replace(layout, brokers=(one,), controllers=(voter,))


def _exercise(home: Home) -> None:
    """Log in with a password once; what else a start needs, the canary has used already."""
    access = home.user_access(USER, "a")
    with Cluster(home.admin_access("a")) as cluster:
        users.upsert(cluster, USER, access.password, Mechanism.SCRAM_SHA_512)
    # The broker may not know the user yet; a refused login has loaded the same classes.
    with suppress(TwinlogError), Cluster(access) as client:
        client.brokers()
