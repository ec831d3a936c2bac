"""What the process of a node is given and what it is not, and when it has ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from twinlog.sites import processes
from twinlog.sites.java import Java
from twinlog.sites.layout import Kind, Node

END_TIMEOUT_S = 20.0  # of a script of one line, on a busy machine
# Its first thread ends while another one keeps a file open, until its input ends.
HALF_DEAD = """
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_passwords_and_our_own_variables_do_not_reach_a_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = tmp_path / "java"
    binary.write_text("#!/bin/sh\nexec env\n")
    binary.chmod(0o755)
    for name in ("SHOP_PASSWORD", "TWINLOG_CACHE", "JAVA_TOOL_OPTIONS", "OTHER"):
        monkeypatch.setenv(name, f"value-of-{name}")
    monkeypatch.setenv("LC_ALL", "C")
    node = Node(
        "a",
        1,
        Kind.BROKER,
        tmp_path / "broker-1",
        (tmp_path,),
        ("x",),
        "127.0.0.1",
        "127.0.0.1",
        {},
        1,
        withheld=("SHOP_PASSWORD",),
    )
    process, _ = processes.start(node, Java(binary, 17, "17"))
    assert processes.wait([process], END_TIMEOUT_S) == []
    seen = (node.directory / "log" / processes.CONSOLE_LOG).read_text()
    assert "OTHER=value-of-OTHER" in seen
    assert "LC_ALL=C.UTF-8" in seen  # else Java opens no file whose name is not ASCII
    assert not any(f"value-of-{name}" in seen for name in ("SHOP_PASSWORD", "TWINLOG_CACHE", "JAVA_TOOL"))


def test_a_process_whose_first_thread_alone_has_ended_still_runs() -> None:
    with subprocess.Popen([sys.executable, "-c", HALF_DEAD], stdin=subprocess.PIPE) as child:
        process = psutil.Process(child.pid)
        end = time.monotonic() + END_TIMEOUT_S
        while process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < end:
            time.sleep(0.01)
        assert process.status() == psutil.STATUS_ZOMBIE
        assert processes.wait([process], 0.0) == [process]
        processes.end([process], signal.SIGKILL)
        assert processes.wait([process], END_TIMEOUT_S) == []


def test_a_process_that_just_ended_mentions_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()", "a-word"], stdin=subprocess.PIPE) as child:
        process = psutil.Process(child.pid)
        assert processes.mentions(process, "other", "a-word")
        assert not processes.mentions(process, "other")
        child.kill()
        assert processes.wait([process], END_TIMEOUT_S) == []
        assert not processes.mentions(process, "a-word")  # a zombie, until it is waited for
    assert not processes.mentions(process, "a-word")
