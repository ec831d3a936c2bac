"""Whose principal a holder has, and what it may do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.mirror.rights import Claim, at_active, at_standby, claim_of, forget_keys, of_groups
from twinlog.sites.authorities import Kind
from twinlog.sites.pki import Pki
from twinlog.spec.model import Certificates
from twinlog.wire.acls import CLUSTER_NAME, Acl, Operation, Resource


@given(generation=st.integers(0, 2**63), number=st.integers(0, 10**6))
def test_principal_of_a_claim_is_read_back(generation: int, number: int) -> None:
    claim = Claim(generation, number)
    assert claim_of(claim.principal) == claim


@pytest.mark.parametrize(
    "principal",
    [
        "User:app",
        "User:link-1-1",
        "User:twinlog:node",
        "User:twinlog:link-",
        "User:twinlog:link-x-1",
        "User:twinlog:link-1-1-1",
        "User:twinlog:link-1-1\n",
        "Group:twinlog:link-1-1",
        "User:*",
    ],
)
def test_principal_of_anybody_else_is_no_claim(principal: str) -> None:
    assert claim_of(principal) is None


def test_later_generation_is_greater_than_every_holder_of_an_earlier_one() -> None:
    assert Claim(2) > Claim(1, 99) > Claim(1, 1) > Claim(1)


def test_holder_reads_and_no_more_at_the_active() -> None:
    claim = Claim(7, 1)
    rules = at_active(claim, ["orders", "bills"])
    assert {(rule.name, rule.operation) for rule in rules} == {
        ("orders", Operation.READ),
        ("bills", Operation.READ),
    }
    assert {rule.principal for rule in rules} == {"User:twinlog:link-7-1"}


def test_holder_reads_appends_and_marks_at_the_standby() -> None:
    claim = Claim(7, 1)
    assert at_standby(claim, ["orders"]) == {
        Acl(Resource.CLUSTER, CLUSTER_NAME, claim.principal, Operation.CLUSTER_ACTION),
        Acl(Resource.TOPIC, "orders", claim.principal, Operation.READ),
        Acl(Resource.TOPIC, "orders", claim.principal, Operation.WRITE),
    }


def test_generation_sets_offsets_of_groups_and_appends_nothing() -> None:
    rules = of_groups(Claim(7))
    assert {(rule.resource, rule.name, rule.operation) for rule in rules} == {
        (Resource.GROUP, "*", Operation.READ),
        (Resource.TOPIC, "*", Operation.READ),
    }
    assert {claim_of(rule.principal) for rule in rules} == {Claim(7)}


def test_keys_of_holders_that_are_over_are_deleted_and_no_others(tmp_path: Path) -> None:
    pki = Pki(tmp_path, "orders", Certificates())
    pki.ensure()
    for name in ("admin", Claim(1, 1).name, Claim(1, 2).name, Claim(2, 1).name):
        pki.issue(Kind.LINK, name)
    forget_keys(pki, lambda claim: claim.generation < 2)
    assert pki.names(Kind.LINK) == ["admin", Claim(2, 1).name]
    assert {path.stem for path in (tmp_path / "link" / "link").iterdir()} == {"admin", Claim(2, 1).name}
    forget_keys(pki, lambda claim: claim == Claim(2, 1))
    assert pki.names(Kind.LINK) == ["admin"]
