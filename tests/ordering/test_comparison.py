"""Chains of several orderers held against each other, and against what clients were told."""

from __future__ import annotations

import pytest

from tests.ordering.network import Network
from twinlog.ordering.blocks import Block, Position, Signer, hash_of, new_block, seal
from twinlog.ordering.comparison import History, compare
from twinlog.ordering.submission import DONE, NOT_DONE, UNKNOWN, Load, Outcome, Sent, transaction

LOAD = Load("trades", 4, run_id="r", size_bytes=20)


@pytest.fixture(scope="module")
def sent(network: Network) -> list[bytes]:
    """Four transactions of client 0."""
    signer = network.signer("Org1", "client")
    return [transaction(LOAD, signer, 0, number) for number in range(4)]


def _chain(*batches: list[bytes]) -> list[Block]:
    blocks: list[Block] = []
    for number, batch in enumerate(batches):
        blocks.append(new_block(number, hash_of(blocks[-1].header) if blocks else b"", batch))
    return blocks


def _history(*outcomes: str) -> History:
    return History("r", [Sent(0, number, outcome) for number, outcome in enumerate(outcomes)])


def test_equal_chains_with_all_that_was_acknowledged_are_good(sent: list[bytes]) -> None:
    chain = _chain([b"config"], sent[:2], sent[2:])
    found = compare("trades", {"a": chain, "b": list(chain)}, _history(DONE, DONE, UNKNOWN, DONE))
    assert found.is_equal
    assert (found.compared, found.transactions, found.heights) == (3, 5, {"a": 3, "b": 3})


def test_shorter_chain_is_no_fault(sent: list[bytes]) -> None:
    chain = _chain(sent[:1], sent[1:])
    found = compare("trades", {"a": chain, "b": chain[:1]})
    assert found.is_equal
    assert (found.compared, found.heights) == (1, {"a": 2, "b": 1})


def test_fork_is_found(sent: list[bytes]) -> None:
    found = compare("trades", {"a": _chain([b"0"], sent[:1]), "b": _chain([b"0"], sent[1:2])})
    assert found.faults == ["block 1 of b and a: headers differ", "block 1 of b and a: data differ"]


def test_broken_chain_is_found(sent: list[bytes]) -> None:
    chain = _chain([b"0"], sent)
    chain[1].header.previous_hash = b"x" * 32
    (fault,) = compare("trades", {"a": chain}).faults
    assert "hashes differ" in fault


def test_other_offset_of_the_log_is_found(sent: list[bytes]) -> None:
    one, other = _chain(sent), _chain(sent)
    other[0].metadata.metadata[3] = b"x"
    assert compare("trades", {"a": one, "b": other}).faults == ["block 0 of b and a: metadata 3 differ"]


@pytest.mark.parametrize(
    ("order", "outcomes", "words"),
    [
        ([0, 1, 3], (DONE, DONE, DONE, DONE), "acknowledged transactions are in no block"),
        ([0, 1, 1, 2, 3], (DONE, DONE, DONE, DONE), "more than one place"),
        ([0, 2, 1, 3], (DONE, DONE, DONE, DONE), "transaction 1 of client 0 stands behind 2"),
        ([0, 1, 2, 3], (DONE, DONE, DONE, NOT_DONE), "refused transactions are in a block"),
        ([0, 1, 2, 3], (DONE, DONE, DONE), "never sent"),
    ],
)
def test_planted_fault_is_found(
    sent: list[bytes], order: list[int], outcomes: tuple[str, ...], words: str
) -> None:
    chain = _chain([sent[index] for index in order])
    (fault,) = compare("trades", {"a": chain}, _history(*outcomes)).faults
    assert words in fault


def test_outcome_counts_and_percentiles() -> None:
    done = [Sent(0, number, DONE, "SUCCESS", (number + 1) / 1000) for number in range(100)]
    outcome = Outcome([*done, Sent(0, 100), Sent(0, 101, NOT_DONE, "FORBIDDEN")], seconds=2.0)
    assert outcome.counts == {DONE: 100, NOT_DONE: 1, UNKNOWN: 1}
    assert outcome.tx_per_s == 50.0
    assert outcome.latency_ms == {"p50": 51.0, "p90": 91.0, "p99": 100.0, "p99.9": 100.0}
    assert outcome.refusals == {"FORBIDDEN": 1}


def test_wrong_signature_of_a_block_is_found(network: Network, sent: list[bytes]) -> None:
    orderer = network.signer("OrdererOrg", "orderer1")
    chain = _chain([b"0"], sent)
    for block in chain:
        seal(block, Position(7), 0, Signer(orderer.creator, orderer.sign, bytes))
    assert compare("trades", {"a": chain}).is_equal
    chain[1].metadata.metadata[0] = chain[0].metadata.metadata[0]
    assert compare("trades", {"a": chain}).faults == ["a: the signature of block 1 is wrong"]
