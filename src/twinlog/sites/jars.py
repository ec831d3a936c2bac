"""Kafka's jars: pinned in a lock for each version, fetched by `jgo` into the cache, checked each time.

`jars.lock` is for the version that Twinlog runs unless told otherwise, `jars-VERSION.lock` for another.
A lock has one line a jar: coordinates, size, sha256. Its order is the order of the class path, which a
class-data archive depends on. Every jar is hashed before every start: it takes a few
hundredths of a second, and a damaged jar is found here and not as a strange error in a broker.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from twinlog.errors import PrerequisiteError
from twinlog.progress import Progress
from twinlog.spec.model import KAFKA_VERSION, KafkaVersion

PARALLEL_DOWNLOADS = 8
DOWNLOAD_TIMEOUT_S = 60
_SERVER = re.compile(r"/kafka_2\.13-([0-9.]+)\.jar")


@dataclass(frozen=True)
class Jar:
    """One line of the lock."""

    group: str
    artifact: str
    version: str
    size: int
    sha256: str

    @property
    def coordinates(self) -> str:
        """As Maven writes them."""
        return f"{self.group}:{self.artifact}:{self.version}"

    def path_in(self, repository: Path) -> Path:
        """Where a Maven repository keeps the jar."""
        folder = repository.joinpath(*self.group.split("."), self.artifact, self.version)
        return folder / f"{self.artifact}-{self.version}.jar"


def parse_lock(text: str) -> tuple[Jar, ...]:
    """The jars of a lock file, in its order."""
    jars = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        coordinates, size, sha256 = line.split()
        group, artifact, version = coordinates.split(":")
        jars.append(Jar(group, artifact, version, int(size), sha256))
    return tuple(jars)


def locked_jars(version: KafkaVersion = KAFKA_VERSION) -> tuple[Jar, ...]:
    """The jars that Twinlog runs a version of Kafka with."""
    name = "jars.lock" if version == KAFKA_VERSION else f"jars-{version}.lock"
    return parse_lock(resources.files("twinlog.sites").joinpath(name).read_text())


def version_of(class_path: str) -> str | None:
    """The version of Kafka that a class path has; None if it has none."""
    found = _SERVER.search(class_path)
    return found[1] if found else None


def ensure_jars(cache: Path, progress: Progress, jars: tuple[Jar, ...] | None = None) -> tuple[Path, ...]:
    """Paths of all jars in the order of the lock, fetched where missing, every one checked."""
    wanted = locked_jars() if jars is None else jars
    repository = cache / "maven"
    repository.mkdir(parents=True, exist_ok=True)
    if any(not is_intact(jar, repository) for jar in wanted):
        with _alone(repository):
            bad = [jar for jar in wanted if not is_intact(jar, repository)]
            _fetch_all(bad, repository, progress)
    return tuple(jar.path_in(repository) for jar in wanted)


def is_intact(jar: Jar, repository: Path) -> bool:
    """True when the jar is there and is the one of the lock."""
    path = jar.path_in(repository)
    try:
        if path.stat().st_size != jar.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


def _fetch_all(jars: list[Jar], repository: Path, progress: Progress) -> None:
    total_mb = sum(jar.size for jar in jars) / 1e6
    name = f"fetching {len(jars)} jars ({total_mb:.0f} MB)"
    progress.begin(name, total=len(jars))
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        futures = [pool.submit(_fetch, jar, repository) for jar in jars]
        try:
            for future in as_completed(futures):
                future.result()
                progress.advance(name)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    progress.end(name)


def _fetch(jar: Jar, repository: Path) -> None:
    # jgo is imported late: only a machine without the jars needs it.
    from jgo.maven import MavenContext  # noqa: PLC0415

    logging.getLogger("jgo").setLevel(logging.ERROR)
    jar.path_in(repository).unlink(missing_ok=True)
    context = MavenContext(repo_cache=repository, timeout=DOWNLOAD_TIMEOUT_S)
    try:
        context.project(jar.group, jar.artifact).at_version(jar.version).artifact().resolve()
    except Exception as error:
        raise PrerequisiteError(
            f"could not fetch {jar.coordinates}: {error}",
            hint="does this machine trust a CA of its own? export REQUESTS_CA_BUNDLE=FILE"
            if "CERTIFICATE_VERIFY_FAILED" in str(error)
            else "is Maven Central, or a mirror of it, reachable from this machine?",
        ) from error
    if not is_intact(jar, repository):
        path = jar.path_in(repository)
        path.unlink(missing_ok=True)
        raise PrerequisiteError(
            f"{jar.coordinates} was fetched twice and is not the jar that the lock names",
            where=str(path),
            hint="does a proxy on the way rewrite downloads?",
        )


@contextmanager
def _alone(repository: Path) -> Iterator[None]:
    """One fetching process at a time; others wait and then find the jars."""
    with (repository / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
