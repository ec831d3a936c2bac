"""Classes of Java on which ours are measured: programs of one file, run with Kafka's jars.

A program reads questions line by line and answers each with a line; one JVM answers all of them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from twinlog.machine import cache_directory
from twinlog.progress import Silent
from twinlog.sites.jars import ensure_jars
from twinlog.sites.java import find_java

TIMEOUT_S = 60  # a JVM starts in two seconds; the rest is a busy machine


def asked(source: Path, questions: Sequence[str]) -> list[str]:
    """What a program answers."""
    class_path = ":".join(map(str, ensure_jars(cache_directory(), Silent())))
    command = [str(find_java().binary), "-XX:TieredStopAtLevel=1", "-cp", class_path, str(source)]
    ended = subprocess.run(
        command, input="\n".join(questions), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()
