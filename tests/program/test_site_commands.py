"""Commands on a site where nobody answers: the right exit code, a hint, and an end in time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Twinlog
from tests.program.prepared_bus import prepare
from tests.site_commands import (
    BESIDE,
    EVERY,
    beside_in_the_program,
    found_in_the_program,
    words_of,
)
from twinlog.cli import app

LITTLE_S = "0.2"
WITH_SITE = {"add", "grant", "revoke", "rights", "quota", "roll", "remove"}


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
    assert beside_in_the_program() == BESIDE.keys()


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


# With names that are there: the code where no node of a bus runs, and what is said.
DOWN = {
    "user add": (("guest", "--timeout", LITTLE_S), 1, "no site has confirmed it: site a: "),
    "user grant": (
        ("shop", "--consume", "orders", "--timeout", LITTLE_S),
        1,
        "no site has confirmed it: site a: ",
    ),
    "user revoke": (
        ("shop", "--produce", "orders", "--timeout", LITTLE_S),
        1,
        "no site has confirmed it: site a: ",
    ),
    "user rights": (("--timeout", LITTLE_S), 1, "nothing listens there"),
    "user quota": (("--timeout", LITTLE_S), 1, "nothing listens there"),
    "user list": (("--timeout", LITTLE_S), 0, "nothing listens there"),
    "user rotate": (("shop",), 3, "not every site knows it yet"),
    "broker roll": (("1", "--timeout", LITTLE_S), 1, "does not run"),
    "broker replace": (("1", "--disk-lost", "--yes", "--timeout", LITTLE_S), 1, "nothing listens there"),
    "broker add": ((), 2, "has all 1 brokers"),
    "broker remove": (("--yes",), 2, "has all 1 brokers"),
}
# What is said where the name is not there, by the file alone.
NOT_THERE = {
    "user show-password": (2, "the file has no user 'nobody-there'"),
    "user rotate": (2, "the file has no user 'nobody-there'"),
    "broker roll": (1, "site a has no node 999999"),
    "broker replace": (2, "no site has a node 999999"),
}
BUS = """\
bus: still
sites: {a: {brokers: 1}, b: {brokers: 1}}
topics: {orders: {}}
users: {shop: {produce: [orders]}}
"""


@pytest.mark.parametrize("command", DOWN)
def test_a_bus_whose_nodes_do_not_run_is_named_with_a_hint(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, code, said = DOWN[command]
    home = prepare(tmp_path / "bus", BUS)
    assert app.run([*command.split(), *words, "-f", str(home.file)]) == code
    told = capsys.readouterr().err
    assert said in told and "hint:" in told and "bug" not in told


@pytest.mark.parametrize("command", NOT_THERE)
def test_a_user_or_a_node_that_is_not_there_is_named_with_a_hint(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = NOT_THERE[command]
    home = prepare(tmp_path / "bus", BUS)
    assert app.run([*words_of(command), "-f", str(home.file)]) == code
    told = capsys.readouterr().err
    assert said in told and "hint:" in told and "bug" not in told


@pytest.mark.parametrize("command", [name for name in BESIDE if name.split()[-1] in WITH_SITE])
def test_a_site_that_the_file_lacks_is_named_with_those_it_has(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = prepare(tmp_path / "bus", BUS)
    assert app.run([*words_of(command), "--site", "nowhere", "-f", str(home.file)]) == 2
    told = capsys.readouterr().err
    assert "the file has no site 'nowhere'" in told and "hint: its sites are a, b" in told


def test_an_exporter_whose_port_is_taken_says_so_with_a_hint(
    silent: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = prepare(tmp_path / "bus", BUS)
    assert app.run(["exporter", "--listen", f"127.0.0.1:{silent}", "-f", str(home.file)]) == 1
    told = capsys.readouterr().err
    assert "the page cannot be served" in told and "hint: is another exporter running?" in told


def test_a_port_where_nobody_listens_is_named(twinlog: Twinlog, tmp_path: Path) -> None:
    port = unused_port()
    ended = twinlog("topic", "list", "--timeout", "0.5", cwd=declare(tmp_path / "bus", port))
    assert ended.returncode == 1
    assert f"127.0.0.1:{port}" in ended.stderr and "is the site up?" in ended.stderr


def test_a_bus_that_was_never_brought_up_says_so(twinlog: Twinlog, tmp_path: Path) -> None:
    (tmp_path / "twinlog.yaml").write_text("bus: new\nsites: {a: {brokers: 1}}\n")
    ended = twinlog("topic", "list", cwd=tmp_path)
    assert ended.returncode == 1 and "twinlog up" in ended.stderr
