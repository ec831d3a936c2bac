"""Policies as people write them."""

from __future__ import annotations

import pytest

from twinlog.ordering import policytext
from twinlog.ordering.proto import common_pb2


def read(text: str) -> tuple[str, list[str]]:
    """A signature policy's rule in short, and its principals."""
    envelope = common_pb2.SignaturePolicyEnvelope.FromString(policytext.signature(text).value)
    return short(envelope.rule), [principal_of(each) for each in envelope.identities]


def short(rule: common_pb2.SignaturePolicy) -> str:
    if rule.WhichOneof("Type") == "signed_by":
        return str(rule.signed_by)
    return f"{rule.n_out_of.n}({' '.join(map(short, rule.n_out_of.rules))})"


def principal_of(principal: common_pb2.MSPPrincipal) -> str:
    role = common_pb2.MSPRole.FromString(principal.principal)
    return f"{role.msp_identifier}.{common_pb2.MSPRole.MSPRoleType.Name(role.role).lower()}"


@pytest.mark.parametrize(
    ("text", "rule", "principals"),
    [
        ("OR('A.member')", "1(0)", ["A.member"]),
        ("AND('A.admin', \"B.peer\")", "2(0 1)", ["A.admin", "B.peer"]),
        ("or( 'A.b.client','A.b.client' )", "1(0 1)", ["A.b.client", "A.b.client"]),
        ("OutOf(2, 'A.orderer', 'B.member', 'C.member')", "2(0 1 2)", ["A.orderer", "B.member", "C.member"]),
        ("OutOf('1', 'A.member')", "1(0)", ["A.member"]),
        # Principals of inner rules come first.
        (
            "OR('A.member', And('B.member','C.member'))",
            "1(2 2(0 1))",
            ["B.member", "C.member", "A.member"],
        ),
    ],
)
def test_an_expression_becomes_the_rule_that_fabrics_tool_makes(
    text: str, rule: str, principals: list[str]
) -> None:
    assert read(text) == (rule, principals)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "'A.member'",
        "OR()",
        "OR('A.member'",
        "OR('A.member') OR('B.member')",
        "NOT('A.member')",
        "OR('A.king')",
        "OR('member')",
        "OR(A.member)",
        "OutOf('A.member')",
        "OutOf(4, 'A.member', 'B.member')",
        "oR('A.member')",
    ],
)
def test_an_expression_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        policytext.signature(text)


def test_implicit_rules_are_read() -> None:
    policy = policytext.implicit_meta("MAJORITY Admins")
    meta = common_pb2.ImplicitMetaPolicy.FromString(policy.value)
    assert policy.type == common_pb2.Policy.IMPLICIT_META
    assert (meta.sub_policy, meta.rule) == ("Admins", common_pb2.ImplicitMetaPolicy.MAJORITY)


@pytest.mark.parametrize("text", ["", "ANY", "SOME Writers", "ANY Writers too", "any Writers"])
def test_an_implicit_rule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not written as in"):
        policytext.implicit_meta(text)


def test_the_policy_that_always_holds_has_its_known_bytes() -> None:
    assert policytext.always().value.hex() == "12021200"
