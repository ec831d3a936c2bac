"""A process that may let no file grow notices it as it would a full disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

from twinlog.drills import disks

WAIT_S = 30.0
# Says that it has written, and goes on for as long as it can.
WRITER = """
import sys
with open(sys.argv[1], "ab", buffering=0) as file:
    while True:
        try:
            file.write(b"x" * 100)
        except OSError as error:
            sys.exit(error.strerror)
        print("written", flush=True)
        sys.stdin.readline()
"""


def test_process_that_may_let_no_file_grow_is_refused_its_next_write(tmp_path: Path) -> None:
    path = tmp_path / "log"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "written\n"
    disks.forbid_growth(psutil.Process(writer.pid))
    _, said = writer.communicate("go on\n", timeout=WAIT_S)
    assert writer.returncode == 1
    assert "File too large" in said
    assert path.stat().st_size == 100


def test_directory_on_the_disk_of_everything_has_none_of_its_own(tmp_path: Path) -> None:
    assert disks.disk_of(tmp_path / "data") is None
