"""Commands on a site where nobody answers: the right exit code, a hint, and an end in time."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Twinlog

GRACE_S = 45  # for the start of the program on a busy machine


@pytest.fixture
def silent() -> Iterator[int]:
    """A port where somebody listens and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def declare(directory: Path, port: int) -> Path:
    """A bus of one cluster that exists already, at a port of this machine."""
    directory.mkdir()
    (directory / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    site = f"{{bootstrap: ['127.0.0.1:{port}'], client: client.properties}}"
    (directory / "twinlog.yaml").write_text(f"bus: far\nsites: {{a: {site}}}\n")
    return directory


@pytest.mark.parametrize("words", [("topic", "list"), ("group", "lag"), ("consume", "orders"), ("quorum",)])
def test_a_site_that_does_not_answer_ends_in_time_with_a_hint(
    twinlog: Twinlog, tmp_path: Path, silent: int, words: tuple[str, ...]
) -> None:
    began = time.monotonic()
    ended = twinlog(*words, "--timeout", "1", cwd=declare(tmp_path / "bus", silent))
    assert ended.returncode == 1, ended.stderr
    assert "hint:" in ended.stderr and "Traceback" not in ended.stderr
    assert time.monotonic() - began < 1 + GRACE_S


def test_a_port_where_nobody_listens_is_named(twinlog: Twinlog, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ended = twinlog("topic", "list", "--timeout", "0.5", cwd=declare(tmp_path / "bus", port))
    assert ended.returncode == 1
    assert f"127.0.0.1:{port}" in ended.stderr and "is the site up?" in ended.stderr


def test_a_bus_that_was_never_brought_up_says_so(twinlog: Twinlog, tmp_path: Path) -> None:
    (tmp_path / "twinlog.yaml").write_text("bus: new\nsites: {a: {brokers: 1}}\n")
    ended = twinlog("topic", "list", cwd=tmp_path)
    assert ended.returncode == 1 and "twinlog up" in ended.stderr
