"""A bundle: one directory with all that one node needs to run on another machine.

Written by `twinlog bundle` for nodes that the file calls `remote:`, and written again when their
settings or certificates change; a start never needs Twinlog. The bundle formats its own disks,
from a copy of what `storage` lays out, and only once. Its keys are readable by their owner only,
and nothing secret stands on a command line. Unless a root is named, every path in it is relative
and the start script goes to its own directory first, so that a bundle can be moved.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from twinlog.durable import make_private_directory, write_secret, write_text
from twinlog.errors import SiteError, UsageError
from twinlog.progress import Progress
from twinlog.sites import jars, processes, properties, storage
from twinlog.sites.home import Home
from twinlog.sites.layout import Node, SiteLayout
from twinlog.sites.local import Kafka
from twinlog.sites.properties import TlsFiles

START = "start.sh"
EXECUTABLE_MODE = 0o755
FORMAT = "format"  # what each data directory begins with, by its number
DATA = "data"
DATA_LIST = "data.list"
SUMS = "jars.sha256"
LIBS = "libs"
TLS = TlsFiles("tls/server.pem", "tls/clients-trust.crt", "tls/node.pem", "tls/link-trust.crt")
OWN_DIRECTORY = '"$(dirname "$0")"'


@dataclass(frozen=True)
class Bundle:
    """What was written, and for whom."""

    node: Node
    directory: Path
    root: Path | None  # where it must lie on the other machine; anywhere if None
    unit: str
    with_jars: bool


def placed(node: Node, bus_directory: Path, root: Path | None) -> Node:
    """The node as it finds itself inside the bundle: what was relative to the bus is relative to the root.

    A data directory that the file names absolutely is one of the other machine and stays.
    """
    base = root or Path()

    def data(path: Path) -> Path:
        if path.is_relative_to(node.directory):
            return base / DATA
        return base / path.relative_to(bus_directory) if path.is_relative_to(bus_directory) else path

    return replace(node, directory=base, data=tuple(data(path) for path in node.data))


def tls_files(root: Path | None) -> TlsFiles:
    """Where the node finds its keys and whom it trusts."""
    base = root or Path()
    return TlsFiles(
        client_store=str(base / TLS.client_store),
        client_trust=str(base / TLS.client_trust),
        link_store=str(base / TLS.link_store),
        link_trust=str(base / TLS.link_trust),
    )


def start_script(node: Node, bus: str, root: Path | None) -> str:
    """The script that formats and runs the node."""
    text = resources.files("twinlog.sites").joinpath("bundle_start.sh").read_text()
    where = shlex.quote(str(root)) if root is not None else OWN_DIRECTORY
    return text.replace("@NODE@", node.name).replace("@BUS@", bus).replace("@ROOT@", where)


def unit_name(node: Node, bus: str) -> str:
    """The name of the node's systemd unit; node ids are unique in a bus."""
    return f"twinlog-{bus}-{node.id}.service"


def unit(node: Node, bus: str, root: Path | None) -> str:
    """The node's systemd unit; what only the other machine knows is filled in there (see the README)."""
    limit = f"CPUQuota={node.cpus * 100:.0f}%\n" if node.cpus else ""
    return f"""\
[Unit]
Description={node.name} of the Twinlog bus '{bus}'
Wants=network-online.target
After=network-online.target

[Service]
User=@USER@
ExecStart=/bin/sh "{root or "@ROOT@"}/{START}"
Restart=on-failure
RestartSec=5
# The JVM ends with 143 when it was told to end; a broker hands over what it leads before that.
SuccessExitStatus=143
TimeoutStopSec=180
LimitNOFILE=100000
{limit}
[Install]
WantedBy=multi-user.target
"""


def readme(bundle: Bundle, bus: str) -> str:
    """What to do with the bundle, in a few lines."""
    node = bundle.node
    place = f"{bundle.root} (its files name that path)" if bundle.root else "any directory"
    ports = ", ".join(f"{port} ({listener.name})" for listener, port in node.ports.items())
    libraries = (
        "The jars are in libs/."
        if bundle.with_jars
        else f"Put the jars that {SUMS} names into libs/, or name their directory in TWINLOG_KAFKA_LIBS."
    )
    return f"""\
{node.name} of the bus '{bus}', for the machine at {node.advertise}; it listens on {node.listen}: {ports}.

1. Copy this directory to {place} on that machine, keeping modes (cp -a, rsync -a, tar -p).
   It holds private keys. It is for one machine only: never run it at two places.
2. {libraries}
   Java 17 or newer is found through JAVA_HOME or PATH.
3. Run ./{START}. Its first start formats this node's empty data directories. After a lost disk do
   not start a fresh copy of this directory: it would not know that it had data.
4. As a service, as the user who owns these files:
   sed "s|@ROOT@|$PWD|; s|@USER@|$(id -un)|" {bundle.unit} | sudo tee /etc/systemd/system/{bundle.unit}
   sudo systemctl enable --now {bundle.unit}

When settings or certificates change: write the bundle again, copy it over this directory, restart.
"""


def write(
    home: Home,
    site: str,
    number: int,
    directory: Path,
    kafka: Kafka,
    progress: Progress,
    *,
    root: Path | None = None,
    with_jars: bool = False,
) -> Bundle:
    """Write the bundle of one node, or write it again; its data, if it lies there, is not touched."""
    home.must_run(site, "bundle a node of")
    if root is not None and not root.is_absolute():
        raise UsageError(
            f"--root {root} is not an absolute path", hint=f"--root /opt/{home.bus.bus}-{number}"
        )
    home.allocate()
    home.pki.ensure()
    layout = home.layout(site)
    node = layout.node(number)
    _refuse(home, node, directory, layout.cluster_id)
    bundle = Bundle(node, directory, root, unit_name(node, home.bus.bus), with_jars)
    make_private_directory(directory)
    _write_format(home, layout, node, directory, kafka)
    _write_tls(home, node, directory)
    _write_texts(home, layout, bundle)
    locked = jars.locked_jars(home.bus.kafka_version_of(site))
    write_text(directory / SUMS, "".join(f"{jar.sha256}  {_file(jar)}\n" for jar in locked))
    if with_jars:
        _copy_jars(kafka.class_path, directory / LIBS, progress)
    # From now on this node's data is elsewhere: `up` must never format an empty disk for it here.
    state = home.state()
    state.sites[site].nodes[number].formatted = True
    home.state_file.write(state)
    return bundle


def _refuse(home: Home, node: Node, directory: Path, cluster_id: str) -> None:
    if not node.remote:
        raise UsageError(
            f"{node.name} runs on this machine: the file does not call it remote",
            where=str(home.file),
            hint=f"remote: true, at broker {node.id} or at site {node.site}",
        )
    here = [path for path in node.data if path.is_relative_to(home.directory) and storage.read_meta(path)]
    if here or processes.find([node]):
        raise SiteError(
            f"{node.name} has its data on this machine; a bundle would start it with none",
            where=str(here[0] if here else node.directory),
            hint="declare a further broker as remote instead, and let this one stay",
        )
    holds_ours = storage.is_formatted(replace(node, data=_format_directories(node, directory)), cluster_id)
    if directory.exists() and any(directory.iterdir()) and not holds_ours:
        raise UsageError(
            "the directory is not empty and holds no bundle of this node",
            where=str(directory),
            hint="name another one with --directory",
        )


def _format_directories(node: Node, directory: Path) -> tuple[Path, ...]:
    return tuple(directory / FORMAT / str(position) for position in range(len(node.data)))


def _write_format(home: Home, layout: SiteLayout, node: Node, directory: Path, kafka: Kafka) -> None:
    template = replace(node, data=_format_directories(node, directory))
    scratch = home.directory / "sites" / layout.name / f"bundling-{node.id}"
    storage.format_site(layout, [template], kafka.command(), scratch)


def _write_tls(home: Home, node: Node, directory: Path) -> None:
    home.issue_node_certificates(node)
    present = home.tls_files(node)
    make_private_directory(directory / Path(TLS.link_store).parent)
    pairs = [(present.link_store, TLS.link_store), (present.link_trust, TLS.link_trust)]
    if Path(present.client_store).exists():  # controllers have no clients
        pairs += [(present.client_store, TLS.client_store), (present.client_trust, TLS.client_trust)]
    for source, target in pairs:
        write_secret(directory / target, Path(source).read_text())


def _write_texts(home: Home, layout: SiteLayout, bundle: Bundle) -> None:
    bus, directory, root = home.bus.bus, bundle.directory, bundle.root
    there = placed(bundle.node, home.file.parent, root)
    settings = properties.server_properties(there, layout, tls_files(root))
    texts = {
        "server.properties": properties.render(settings),
        "log4j2.properties": properties.log_configuration(str(there.directory / "log")),
        processes.ARGUMENT_FILE: properties.argument_file(properties.jvm_options(there, layout, (), None)),
        DATA_LIST: "".join(f"{path}\n" for path in there.data),
        bundle.unit: unit(there, bus, root),
        "README.txt": readme(bundle, bus),
        START: start_script(there, bus, root),
    }
    for name, text in texts.items():
        write_text(directory / name, text)
    (directory / START).chmod(EXECUTABLE_MODE)


def _file(jar: jars.Jar) -> str:
    return f"{jar.artifact}-{jar.version}.jar"


def _copy_jars(class_path: Sequence[Path], target: Path, progress: Progress) -> None:
    name = f"copying {len(class_path)} jars"
    progress.begin(name, total=len(class_path))
    target.mkdir(exist_ok=True)
    for jar in class_path:
        shutil.copyfile(jar, target / jar.name)
        progress.advance(name)
    progress.end(name)
