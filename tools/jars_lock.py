"""Makes a lock of jars: coordinates, size and sha256, one jar a line.

    python tools/jars_lock.py org.apache.kafka:kafka_2.12:2.3.0 > tests/cluster/jars-2.3.0.lock
    python tools/jars_lock.py --alone GROUP:ARTIFACT:VERSION ... > src/twinlog/streams/jars.lock

A jar before `--alone` brings what it needs to run; one after it comes by itself. Jars are fetched
by `jgo` into Twinlog's cache.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from jgo.maven import MavenContext

from twinlog.machine import cache_directory

ALONE = "--alone"
NOT_TO_RUN = ("test", "provided", "import")


def closure(context: MavenContext, coordinates: str) -> set[str]:
    """A jar and all that it needs to run."""
    group, artifact, version = coordinates.split(":")
    _, nodes = context.pom_dependency_list(context.project(group, artifact).at_version(version).pom())
    needed = [node.dep for node in nodes if node.dep.scope not in NOT_TO_RUN]
    return {coordinates, *(f"{dep.groupId}:{dep.artifactId}:{dep.version}" for dep in needed)}


def fetch(context: MavenContext, coordinates: str) -> Path:
    """The jar, in the cache."""
    group, artifact, version = coordinates.split(":")
    return Path(context.project(group, artifact).at_version(version).artifact().resolve())


def main() -> None:
    """Print the lock."""
    context = MavenContext(repo_cache=cache_directory() / "maven")
    arguments = [*sys.argv[1:], ALONE]
    split = arguments.index(ALONE)
    alone = {argument for argument in arguments[split:] if argument != ALONE}
    wanted = alone | {found for start in arguments[:split] for found in closure(context, start)}
    call = " ".join(["tools/jars_lock.py", *sys.argv[1:]])
    print(f"# Made by `{call}`.")
    for coordinates in sorted(wanted):
        data = fetch(context, coordinates).read_bytes()
        print(coordinates, len(data), hashlib.sha256(data).hexdigest())


if __name__ == "__main__":
    main()
