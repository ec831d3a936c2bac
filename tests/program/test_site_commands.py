"""Commands on a site where nobody answers: the right exit code, a hint, and an end in time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Twinlog
from tests.site_commands import EVERY, found_in_the_program, words_of
from twinlog.cli import app

LITTLE_S = "0.2"


@pytest.fixture
def silent() -> Iterator[int]:
    """A port where somebody listens and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def declare(directory: Path, port: int) -> Path:
    """A bus of one cluster that exists already, at a port of this machine."""
    directory.mkdir()
    (directory / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    site = f"{{bootstrap: ['127.0.0.1:{port}'], client: client.properties}}"
    (directory / "twinlog.yaml").write_text(f"bus: far\nsites: {{a: {site}}}\n")
    return directory


def test_every_command_that_asks_a_site_is_tried() -> None:
    assert found_in_the_program() == EVERY.keys()


@pytest.mark.parametrize("command", EVERY)
def test_a_site_that_does_not_answer_is_given_up_in_time_with_a_hint(
    command: str, tmp_path: Path, silent: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for port, said in ((silent, "no answer in time"), (unused_port(), "nothing listens")):
        file = declare(tmp_path / str(port), port) / "twinlog.yaml"
        code = app.run([*words_of(command), "--timeout", LITTLE_S, "-f", str(file)])
        told = capsys.readouterr()
        assert code == 1, told.err
        assert said in told.err and f"127.0.0.1:{port}" in told.err
        assert "hint:" in told.err and "bug" not in told.err


def test_a_port_where_nobody_listens_is_named(twinlog: Twinlog, tmp_path: Path) -> None:
    port = unused_port()
    ended = twinlog("topic", "list", "--timeout", "0.5", cwd=declare(tmp_path / "bus", port))
    assert ended.returncode == 1
    assert f"127.0.0.1:{port}" in ended.stderr and "is the site up?" in ended.stderr


def test_a_bus_that_was_never_brought_up_says_so(twinlog: Twinlog, tmp_path: Path) -> None:
    (tmp_path / "twinlog.yaml").write_text("bus: new\nsites: {a: {brokers: 1}}\n")
    ended = twinlog("topic", "list", cwd=tmp_path)
    assert ended.returncode == 1 and "twinlog up" in ended.stderr
