"""The witness on a machine of its own: its bundle written, read, run, and written again."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import program_environment
from tests.running.traffic.loopback import wait_until
from tests.running.traffic.test_agent_process import FILE, free_ports
from twinlog.errors import SiteError, UsageError
from twinlog.ops import renewal
from twinlog.sites.authorities import Kind
from twinlog.sites.home import Home
from twinlog.spec.load import load
from twinlog.traffic import electorate, outpost
from twinlog.traffic.votes import WITNESS, Memory, voter_of
from twinlog.traffic.witness import Voting, enrol


@pytest.fixture
def home(tmp_path: Path) -> Home:
    file = tmp_path / "twinlog.yaml"
    file.write_text(FILE.format(ports=free_ports(2)))
    made = Home(load(file, {}).bus, file, os.environ)
    made.allocate()
    made.pki.ensure()
    return made


def test_bundle_describes_the_seat_and_holds_no_key_but_its_own(home: Home, tmp_path: Path) -> None:
    directory = tmp_path / "out"
    files = outpost.write(home, directory)
    seat, timing = outpost.read(directory)
    here = electorate.seat(home, WITNESS)
    assert (seat.name, seat.address, seat.others) == (here.name, here.address, here.others)
    assert timing == electorate.timing(home)
    assert sorted(path.name for path in directory.iterdir()) == sorted(files)
    keys = [path.name for path in directory.iterdir() if "PRIVATE KEY" in path.read_text()]
    assert keys == [outpost.STORE]
    assert stat.S_IMODE((directory / outpost.STORE).stat().st_mode) == 0o600


def test_bundle_written_again_brings_a_renewed_certificate_and_keeps_the_memory(
    home: Home, tmp_path: Path
) -> None:
    directory = tmp_path / "out"
    outpost.write(home, directory)
    (directory / outpost.MEMORY).write_text("something")
    before = (directory / outpost.STORE).read_text()
    made = renewal.issue_clients(home, force=True)
    assert home.pki.paths(Kind.VOTE, WITNESS).certificate in [one.certificate for one in made]
    outpost.write(home, directory)
    assert (directory / outpost.STORE).read_text() != before
    assert (directory / outpost.MEMORY).read_text() == "something"


def test_directory_of_something_else_is_left_alone(home: Home, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no witness's bundle"):
        outpost.write(home, tmp_path)
    with pytest.raises(SiteError, match="no witness's bundle"):
        outpost.read(tmp_path)


def test_witness_that_runs_from_its_bundle_learns_and_votes(home: Home, tmp_path: Path) -> None:
    directory = tmp_path / "out"
    outpost.write(home, directory)
    timing = electorate.timing(home)
    for site in ("a", "b"):
        enrol(electorate.seat(home, voter_of(site)).path, Memory(3, "a", timing.lease_s, released=True))
    witness = subprocess.Popen(
        [sys.executable, "-m", "twinlog", "witness", "--at", str(directory)],
        cwd=tmp_path.parent,  # where no file of the bus is found
        env=program_environment(tmp_path / "cache"),
        stdin=subprocess.DEVNULL,
    )
    try:
        with (
            Voting(electorate.seat(home, voter_of("a")), timing),
            Voting(electorate.seat(home, voter_of("b")), timing),
        ):
            # It lets every lease pass that it may have given before it forgot.
            wait_until(lambda: has_memory(home))
            assert electorate.ask(home)[WITNESS].term == 3
    finally:
        witness.terminate()
        assert witness.wait(timeout=20) == 0


def has_memory(home: Home) -> bool:
    answer = electorate.ask(home).get(WITNESS)
    return answer is not None and not answer.blank
