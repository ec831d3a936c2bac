"""A voter at work: what it remembers, what it does without memory, and that it is alone."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.running.traffic.loopback import wait_until
from twinlog.errors import SiteError, UsageError
from twinlog.sites.pki import Pki
from twinlog.traffic.poll import Papers, ask_vote
from twinlog.traffic.timing import Timing
from twinlog.traffic.votes import WITNESS, Memory, Request, Wish
from twinlog.traffic.witness import Keeper, Seat, Voting, enrol, read_memory, run_witness, write_memory
from twinlog.wire.addresses import HostPort

TIMING = Timing(4.0)
SHORT = Timing(0.2)  # wait: 0.7 s
TIMEOUT_S = 20.0
ANYWHERE = HostPort("127.0.0.1", 0)
GRANT_A = Request(Wish.GRANT, "a", 5)
GRANT_B = Request(Wish.GRANT, "b", 6)
TELL = Request(Wish.TELL)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_grant_is_on_disk_and_private_before_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "votes" / "a.json"
    enrol(path, Memory(5, "a", 4.0))
    clock = Clock()
    keeper = Keeper(WITNESS, TIMING, path, clock)
    clock.now_s += TIMING.wait_s
    assert keeper.answer(GRANT_B).granted
    assert read_memory(path) == Memory(6, "b", 4.0)
    assert path.stat().st_mode & 0o777 == 0o600


def test_renewal_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    enrol(path, Memory(5, "a", 4.0))
    keeper = Keeper(WITNESS, TIMING, path, Clock())
    before = path.stat().st_ino
    assert keeper.answer(GRANT_A).granted
    assert path.stat().st_ino == before


def test_started_again_it_serves_only_the_holder_for_a_lease(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    enrol(path, Memory(5, "a", 4.0))
    Keeper(WITNESS, TIMING, path, Clock()).close()
    clock = Clock()
    again = Keeper(WITNESS, TIMING, path, clock)
    assert (again.answer(GRANT_A).granted, again.answer(GRANT_B).granted) == (True, False)
    clock.now_s += TIMING.wait_s
    assert again.answer(GRANT_B).granted


def test_memory_cannot_be_written_nothing_is_granted(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    enrol(path, Memory(5, "a", 4.0, released=True))
    keeper = Keeper(WITNESS, TIMING, path, Clock())
    path.unlink()
    path.mkdir()  # a file cannot take the name of a directory
    answer = keeper.answer(GRANT_B)
    assert not answer.granted and answer.why.startswith("witness cannot write its memory: ")
    path.rmdir()
    assert keeper.answer(GRANT_B).granted


def test_second_process_for_a_voter_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    first = Keeper(WITNESS, TIMING, path)
    with pytest.raises(UsageError, match="this voter runs already"):
        Keeper(WITNESS, TIMING, path)
    first.close()
    Keeper(WITNESS, TIMING, path).close()


def test_closed_voter_grants_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    enrol(path, Memory(5, "a", 4.0))
    keeper = Keeper(WITNESS, TIMING, path)
    keeper.close()
    assert not keeper.answer(GRANT_A).granted


def test_enrolled_voter_keeps_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_memory(path, Memory(9, "b", 4.0))
    enrol(path, Memory(5, "a", 4.0))
    assert read_memory(path) == Memory(9, "b", 4.0)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"term": 1, "holder": "a", "lease_s": 4, "released": 1}']
)
def test_memory_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(SiteError, match="the memory of a voter cannot be read"):
        Keeper(WITNESS, TIMING, path)
    path.write_text(json.dumps(Memory().to_json()))
    Keeper(WITNESS, TIMING, path).close()


def test_new_witness_votes_when_both_sites_have_told(tmp_path: Path, pki: Pki) -> None:
    papers = {name: Papers.issue(pki, "orders", name) for name in ("site-a", "site-b", WITNESS)}
    memories = {"site-a": Memory(5, "a", 0.2), "site-b": Memory(6, "b", 0.2)}
    with ExitStack() as running:
        others = {}
        for name, memory in memories.items():
            enrol(tmp_path / f"{name}.json", memory)
            seat = Seat(name, ANYWHERE, tmp_path / f"{name}.json", papers[name], {})
            others[name] = running.enter_context(Voting(seat, SHORT)).address
        path = tmp_path / "witness.json"
        witness = running.enter_context(Voting(Seat(WITNESS, ANYWHERE, path, papers[WITNESS], others), SHORT))
        told = ask_vote(WITNESS, witness.address, TELL, papers["site-a"], TIMEOUT_S)
        assert told.blank
        wait_until(lambda: not witness.keeper.is_blank)
        assert read_memory(path) == Memory(6, "b", 0.2)
        assert ask_vote(WITNESS, witness.address, GRANT_B, papers["site-b"], TIMEOUT_S).granted


def test_witness_runs_until_told_to_stop(tmp_path: Path, pki: Pki) -> None:
    said: list[str] = []
    stop = threading.Event()
    seat = Seat(WITNESS, ANYWHERE, tmp_path / "w.json", Papers.issue(pki, "orders", WITNESS), {})
    thread = threading.Thread(target=run_witness, args=(seat, SHORT, stop, said.append))
    thread.start()
    wait_until(lambda: len(said) == 2)
    address = HostPort.parse(said[0].rpartition(" ")[2])
    assert ask_vote(WITNESS, address, TELL, Papers.issue(pki, "orders", "manager"), TIMEOUT_S).blank
    stop.set()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    Keeper(WITNESS, SHORT, tmp_path / "w.json").close()
