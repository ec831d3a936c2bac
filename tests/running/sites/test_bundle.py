"""Bundles: what stands in them, and what their start script does before Java runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from twinlog.errors import SiteError, UsageError
from twinlog.progress import Silent
from twinlog.sites import bundle, properties, storage
from twinlog.sites.home import Home
from twinlog.sites.java import Java
from twinlog.sites.local import Kafka
from twinlog.spec.model import Broker, Bus, Site
from twinlog.spec.typed import validated

NO_KAFKA = Kafka(Java(Path("/nonexistent/java"), 17, "17"), (), None)
JAVA = """\
#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "{version}" 2024-01-01' >&2; exit 0; fi
echo "in $PWD with $CLASSPATH: $*"
"""


def site(**rest: object) -> Site:
    brokers = (
        Broker(listen="192.0.2.1"),
        Broker(listen="192.0.2.2", remote=False),
        Broker(listen="192.0.2.3", data=("/disk1", "disk2"), cpus=1.5),
    )
    return validated(Site, {"brokers": brokers, "listen": "192.0.2.1", "port": 9092, "remote": True, **rest})


@pytest.fixture
def home(tmp_path: Path) -> Home:
    bus = Bus(bus="orders", sites={"a": site(), "b": Site(bootstrap=("h:1",), client="c")})
    made = Home(bus, tmp_path / "bus" / "twinlog.yaml", {})
    made.allocate()
    return made


def write(home: Home, number: int, directory: Path, root: Path | None = None) -> bundle.Bundle:
    """A bundle whose first data is there already, so that no Kafka is needed to make it."""
    layout = home.layout("a")
    for position, _ in enumerate(layout.node(number).data):
        folder = directory / bundle.FORMAT / str(position)
        folder.mkdir(parents=True, exist_ok=True)
        meta = f"version=1\ncluster.id={layout.cluster_id}\nnode.id={number}\ndirectory.id=x{position}\n"
        (folder / storage.META).write_text(meta)
        (folder / storage.BOOTSTRAP).write_text("checkpoint")
    return bundle.write(home, "a", number, directory, NO_KAFKA, Silent(), root=root)


def settings_in(directory: Path) -> dict[str, str]:
    return properties.written((directory / "server.properties").read_text())


def test_paths_are_relative_so_that_a_bundle_can_be_moved(home: Home, tmp_path: Path) -> None:
    write(home, 1, tmp_path / "out")
    settings = settings_in(tmp_path / "out")
    assert settings["log.dirs"] == "data"
    assert settings["listener.name.link.ssl.keystore.location"] == "tls/node.pem"
    assert settings["listener.name.client.ssl.truststore.location"] == "tls/clients-trust.crt"
    assert settings["controller.quorum.bootstrap.servers"] == "192.0.2.1:10092"
    texts = [path.read_text() for path in (tmp_path / "out").iterdir() if path.is_file()]
    assert not any(str(tmp_path) in text for text in texts)


def test_paths_begin_with_a_named_root(home: Home, tmp_path: Path) -> None:
    made = write(home, 1, tmp_path / "out", Path("/opt/it's here"))
    settings = settings_in(tmp_path / "out")
    assert settings["log.dirs"] == "/opt/it's here/data"
    assert settings["listener.name.link.ssl.keystore.location"] == "/opt/it's here/tls/node.pem"
    assert 'ExecStart=/bin/sh "/opt/it\'s here/start.sh"' in (tmp_path / "out" / made.unit).read_text()
    assert "cd '/opt/it'\"'\"'s here'\n" in (tmp_path / "out" / "start.sh").read_text()


def test_a_root_that_is_relative_is_refused(home: Home, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not an absolute path"):
        write(home, 1, tmp_path / "out", Path("opt"))


def test_named_data_directories_are_those_of_the_other_machine(home: Home, tmp_path: Path) -> None:
    made = write(home, 3, tmp_path / "out")
    assert settings_in(tmp_path / "out")["log.dirs"] == "/disk1/a-broker-3,disk2/a-broker-3"
    assert (tmp_path / "out" / "data.list").read_text() == "/disk1/a-broker-3\ndisk2/a-broker-3\n"
    assert "CPUQuota=150%\n" in (tmp_path / "out" / made.unit).read_text()


def test_keys_are_readable_by_their_owner_only(home: Home, tmp_path: Path) -> None:
    write(home, 1, tmp_path / "out")
    files = list((tmp_path / "out" / "tls").iterdir())
    assert {path.name for path in files} == {
        "server.pem",
        "clients-trust.crt",
        "node.pem",
        "link-trust.crt",
    }
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700
    secrets = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and path.parent.name != "tls"]
    assert not any("PRIVATE KEY" in path.read_text() for path in secrets)


def test_a_controller_gets_no_keys_for_clients(home: Home, tmp_path: Path) -> None:
    write(home, 901, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out" / "tls").iterdir()} == {"node.pem", "link-trust.crt"}
    assert settings_in(tmp_path / "out")["process.roles"] == "controller"


def test_a_node_that_runs_here_gets_no_bundle(home: Home, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a/broker-2 runs on this machine") as caught:
        write(home, 2, tmp_path / "out")
    assert "remote: true" in caught.value.hint


def test_a_node_with_data_here_gets_no_bundle(home: Home, tmp_path: Path) -> None:
    data = home.layout("a").node(1).data[0]
    data.mkdir(parents=True)
    (data / storage.META).write_text("version=1\n")
    with pytest.raises(SiteError, match="has its data on this machine"):
        write(home, 1, tmp_path / "out")


def test_an_existing_cluster_has_no_bundles(home: Home, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Twinlog only reaches it"):
        bundle.write(home, "b", 1, tmp_path / "out", NO_KAFKA, Silent())


def test_a_directory_with_other_things_in_it_is_refused(home: Home, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("")
    with pytest.raises(UsageError, match="not empty and holds no bundle"):
        bundle.write(home, "a", 1, tmp_path / "out", NO_KAFKA, Silent())


def test_a_bundle_of_another_node_is_not_written_over(home: Home, tmp_path: Path) -> None:
    write(home, 1, tmp_path / "out")
    with pytest.raises(SiteError, match="belongs to node 1"):
        bundle.write(home, "a", 3, tmp_path / "out", NO_KAFKA, Silent())


def test_a_bundle_written_again_keeps_its_data_and_gets_new_settings(home: Home, tmp_path: Path) -> None:
    write(home, 1, tmp_path / "out")
    (tmp_path / "out" / "data").mkdir()
    (tmp_path / "out" / "data" / "records").write_text("precious")
    sites = {"a": site(kafka={"num.io.threads": 3})}
    changed = Home(Bus(bus="orders", sites=sites), home.file, {})
    bundle.write(changed, "a", 1, tmp_path / "out", NO_KAFKA, Silent())
    assert settings_in(tmp_path / "out")["num.io.threads"] == "3"
    assert (tmp_path / "out" / "data" / "records").read_text() == "precious"


def test_a_bundled_node_is_never_formatted_here_later(home: Home, tmp_path: Path) -> None:
    write(home, 1, tmp_path / "out")
    assert home.state().sites["a"].nodes[1].formatted


@dataclass
class Started:
    """A bundle as it lies on the other machine, with a Java that only says how it was called."""

    directory: Path
    path: Path

    def start(self, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run the start script from somewhere else."""
        environment = {"PATH": f"{self.path}:{os.environ['PATH']}", **extra}
        return subprocess.run(
            [self.directory / "start.sh"],
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def java(self, version: str) -> None:
        """Put a Java of that version first on the path."""
        self.path.mkdir(exist_ok=True)
        (self.path / "java").write_text(JAVA.format(version=version))
        (self.path / "java").chmod(0o755)


@pytest.fixture
def there(home: Home, tmp_path: Path) -> Started:
    write(home, 1, tmp_path / "out")
    moved = tmp_path / "other machine"
    shutil.move(tmp_path / "out", moved)
    (moved / "libs").mkdir()
    (moved / "libs" / "k.jar").write_bytes(b"jar")
    (moved / "jars.sha256").write_text(f"{hashlib.sha256(b'jar').hexdigest()}  k.jar\n")
    started = Started(moved, tmp_path / "bin")
    started.java("17.0.1")
    return started


def test_first_start_formats_and_the_second_leaves_the_data_alone(there: Started) -> None:
    first = there.start()
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == (
        f"in {there.directory} with {there.directory}/libs/k.jar: @jvm.args kafka.Kafka server.properties\n"
    )
    data = there.directory / "data"
    assert {path.name for path in data.iterdir()} == {storage.META, storage.BOOTSTRAP}
    (data / storage.BOOTSTRAP).write_text("changed by Kafka")
    assert there.start().returncode == 0
    assert (data / storage.BOOTSTRAP).read_text() == "changed by Kafka"


def test_interrupted_format_is_done_again(there: Started) -> None:
    (there.directory / "data.formatting").mkdir()
    (there.directory / "data").mkdir()
    assert there.start().returncode == 0
    assert (there.directory / "data" / storage.META).exists()
    assert not (there.directory / "data.formatting").exists()


def test_lost_disk_is_not_formatted_again(there: Started) -> None:
    assert there.start().returncode == 0
    shutil.rmtree(there.directory / "data")
    ended = there.start()
    assert ended.returncode == 1
    assert "data is empty, and this node had its data there" in ended.stderr
    assert not (there.directory / "data").exists()


@pytest.mark.parametrize("content", ["", "version=1\ncluster.id=another\nnode.id=1\n"])
def test_directory_that_holds_anything_else_is_not_formatted(there: Started, content: str) -> None:
    (there.directory / "data").mkdir()
    (there.directory / "data" / storage.META).write_text(content)
    ended = there.start()
    assert ended.returncode == 1
    assert "data does not belong to this node" in ended.stderr
    assert (there.directory / "data" / storage.META).read_text() == content


def test_changed_jar_is_not_run(there: Started) -> None:
    (there.directory / "libs" / "k.jar").write_bytes(b"rat")
    ended = there.start()
    assert ended.returncode == 1
    assert "k.jar: FAILED" in ended.stderr
    assert "not those of jars.sha256" in ended.stderr
    assert not (there.directory / "data").exists()


def test_jars_may_lie_elsewhere(there: Started, tmp_path: Path) -> None:
    shutil.move(there.directory / "libs", tmp_path / "jars")
    assert "TWINLOG_KAFKA_LIBS" in there.start().stderr
    ended = there.start(TWINLOG_KAFKA_LIBS=str(tmp_path / "jars"))
    assert f"with {tmp_path}/jars/k.jar:" in ended.stdout


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2"])
def test_old_java_is_refused(there: Started, version: str) -> None:
    there.java(version)
    ended = there.start(JAVA_HOME="/nonexistent")
    assert ended.returncode == 1
    assert "Kafka needs Java 17 or newer" in ended.stderr


def test_java_home_comes_first(there: Started, tmp_path: Path) -> None:
    home = tmp_path / "jdk" / "bin"
    home.mkdir(parents=True)
    (home / "java").write_text(JAVA.format(version="21") + "echo from JAVA_HOME\n")
    (home / "java").chmod(0o755)
    there.java("17")
    assert "from JAVA_HOME" in there.start(JAVA_HOME=str(home.parent)).stdout
