"""Policies: which signatures suffice. Identities here are names, and a principal asks for one or any."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.ordering import policytext
from twinlog.ordering.identity import Identity
from twinlog.ordering.policy import Directory, Policies, Policy, SignedData, threshold
from twinlog.ordering.proto import common_pb2

NAMES = ("ann", "bob", "cat")
ANYBODY = "*"
Rule = common_pb2.SignaturePolicy
Meta = common_pb2.ImplicitMetaPolicy


class Person:
    """An identity that signs with its name."""

    def __init__(self, name: str) -> None:
        self.mspid = "Org"
        self.certificate = name.encode()
        self.verified = 0

    def verify(self, data: bytes, signature: bytes) -> bool:
        self.verified += 1
        return signature == self.certificate


class People:
    """Everybody whose name is known."""

    def __init__(self) -> None:
        self.known = {name.encode(): Person(name) for name in NAMES}

    def identity(self, creator: bytes) -> Identity | None:
        return cast("Identity | None", self.known.get(creator))

    def satisfies(self, identity: Identity, principal: common_pb2.MSPPrincipal) -> bool:
        return principal.principal in (identity.certificate, ANYBODY.encode())


def signature_of(name: str, *, is_valid: bool = True) -> SignedData:
    return SignedData(b"data", name.encode(), name.encode() if is_valid else b"forged")


def by(name: str) -> Rule:
    """Signed by a name: an index, as the envelope lists all names and then anybody."""
    return Rule(signed_by=[*NAMES, ANYBODY].index(name))


def out_of(n: int, *rules: Rule) -> Rule:
    return Rule(n_out_of=Rule.NOutOf(n=n, rules=rules))


def a_policy(rule: Rule, people: Directory | None = None) -> Policy:
    principals = [common_pb2.MSPPrincipal(principal=name.encode()) for name in (*NAMES, ANYBODY)]
    envelope = common_pb2.SignaturePolicyEnvelope(rule=rule, identities=principals)
    value = common_pb2.Policy(type=common_pb2.Policy.SIGNATURE, value=envelope.SerializeToString())
    root = common_pb2.ConfigGroup()
    root.policies["P"].policy.CopyFrom(value)
    return Policies(root, people or People()).get("/Channel/P")


rules = st.recursive(
    st.sampled_from([*NAMES, ANYBODY]).map(by),
    lambda inner: st.builds(lambda n, each: out_of(n, *each), st.integers(0, 4), st.lists(inner, max_size=4)),
    max_leaves=8,
)
signature_sets = st.lists(
    st.builds(lambda name, good: signature_of(name, is_valid=good), st.sampled_from(NAMES), st.booleans()),
    max_size=4,
)


def greedy(rule: Rule, signers: Sequence[str], used: set[int]) -> tuple[bool, set[int]]:
    """The specification's rule in few lines: the first unused identity that fits is consumed."""
    if rule.WhichOneof("Type") == "signed_by":
        wanted = [*NAMES, ANYBODY][rule.signed_by]
        for place, name in enumerate(signers):
            if place not in used and wanted in (name, ANYBODY):
                return True, used | {place}
        return False, used
    count = 0
    for inner in rule.n_out_of.rules:
        held, after = greedy(inner, signers, used)
        used, count = (after, count + 1) if held else (used, count)
    return count >= rule.n_out_of.n, used


@given(rules, signature_sets)
def test_a_signature_policy_decides_as_the_specification(rule: Rule, signed: list[SignedData]) -> None:
    firsts = {each.identity: each for each in reversed(signed)}  # of each identity, its first signature
    order = list(dict.fromkeys(each.identity for each in signed))
    valid = [name.decode() for name in order if firsts[name].signature == name]
    assert a_policy(rule).evaluate(signed) is greedy(rule, valid, set())[0]


@given(rules, st.sampled_from([*NAMES, "nobody"]), st.booleans())
def test_one_signature_is_decided_as_among_others_that_nobody_knows(
    rule: Rule, name: str, is_valid: bool
) -> None:
    one = signature_of(name, is_valid=is_valid)
    unknown = signature_of("somebody")
    assert a_policy(rule).evaluate([one]) is a_policy(rule).evaluate([unknown, one])


@given(rules, signature_sets)
def test_forged_signatures_are_as_good_as_none(rule: Rule, signed: list[SignedData]) -> None:
    forged = [each._replace(signature=b"forged") for each in signed]
    assert a_policy(rule).evaluate(forged) is a_policy(rule).evaluate([])


@given(st.lists(st.sampled_from(NAMES), unique=True, max_size=3), st.integers(0, 4))
def test_n_out_of_names_counts_signers_in_any_order(signers: list[str], n: int) -> None:
    policy = a_policy(out_of(n, *map(by, NAMES)))
    for order in permutations(signers):
        assert policy.evaluate([signature_of(name) for name in order]) is (len(signers) >= n)


def test_a_signature_counts_once_although_two_rules_fit_it() -> None:
    both = a_policy(out_of(2, by("ann"), by(ANYBODY)))
    assert not both.evaluate([signature_of("ann"), signature_of("ann")])
    assert both.evaluate([signature_of("ann"), signature_of("bob")])


def test_a_second_signature_of_an_identity_is_not_looked_at() -> None:
    signed = [signature_of("ann", is_valid=False), signature_of("ann")]
    assert not a_policy(out_of(1, by("ann"))).evaluate(signed)


def test_one_message_costs_one_verification_and_a_hopeless_one_none() -> None:
    people = People()
    policy = a_policy(out_of(1, by("ann"), by(ANYBODY)), people)
    for _ in range(3):
        assert policy.evaluate([signature_of("ann")])
    assert people.known[b"ann"].verified == 3
    never = a_policy(out_of(2, by("ann"), by("bob")), people)
    assert not never.evaluate([signature_of("bob")])
    assert people.known[b"bob"].verified == 0


@pytest.mark.parametrize(
    ("rule", "of_none", "of_one", "of_four", "of_five"),
    [(Meta.ANY, 0, 1, 1, 1), (Meta.ALL, 0, 1, 4, 5), (Meta.MAJORITY, 0, 1, 3, 3)],
)
def test_implicit_rules_ask_for_so_many(
    rule: int, of_none: int, of_one: int, of_four: int, of_five: int
) -> None:
    assert [threshold(rule, count) for count in (0, 1, 4, 5)] == [of_none, of_one, of_four, of_five]


def a_tree(meta: str, *children: Rule | None) -> Policies:
    """A root with an implicit policy over one group per rule; None is a group without the policy."""
    root = common_pb2.ConfigGroup()
    root.policies["Top"].policy.CopyFrom(policytext.implicit_meta(f"{meta} Sub"))
    for number, rule in enumerate(children):
        group = root.groups[f"G{number}"]
        group.version = 0
        if rule is not None:
            principals = [common_pb2.MSPPrincipal(principal=name.encode()) for name in (*NAMES, ANYBODY)]
            envelope = common_pb2.SignaturePolicyEnvelope(rule=rule, identities=principals)
            group.policies["Sub"].policy.type = common_pb2.Policy.SIGNATURE
            group.policies["Sub"].policy.value = envelope.SerializeToString()
    return Policies(root, People())


@given(
    st.sampled_from(["ANY", "ALL", "MAJORITY"]),
    st.lists(st.sampled_from([*NAMES, None]), max_size=5),
    st.sets(st.sampled_from(NAMES)),
)
def test_an_implicit_policy_counts_the_groups_below(
    meta: str, owners: list[str | None], signers: set[str]
) -> None:
    tree = a_tree(meta, *(None if owner is None else by(owner) for owner in owners))
    satisfied = sum(owner in signers for owner in owners)
    needed = {"ANY": 1, "ALL": len(owners), "MAJORITY": len(owners) // 2 + 1}[meta] if owners else 0
    signed = [signature_of(name) for name in sorted(signers)]
    assert tree.get("/Channel/Top").evaluate(signed) is (satisfied >= needed)


def test_paths_find_policies_of_groups_and_what_is_not_there_is_never_satisfied() -> None:
    tree = a_tree("ANY", by("ann"))
    assert tree.get("/Channel/G0/Sub").evaluate([signature_of("ann")])
    for missing in ("/Channel/Sub", "/Channel/G0/Top", "/Other/Top", "Top", ""):
        assert tree.find(missing) is None
        assert not tree.get(missing).evaluate([signature_of("ann")])
    assert tree.for_changes("Sub", "/Channel/G0") is tree.find("/Channel/G0/Sub")
    assert tree.for_changes("G0/Sub", "/Channel") is tree.find("/Channel/G0/Sub")
    assert tree.for_changes("/Channel/Top", "/Channel/G0") is tree.find("/Channel/Top")


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (common_pb2.ConfigPolicy(), "is empty"),
        (common_pb2.ConfigPolicy(policy=common_pb2.Policy(type=2)), "type is 2"),
        (common_pb2.ConfigPolicy(policy=common_pb2.Policy(type=1)), "one of its rules is empty"),
        (common_pb2.ConfigPolicy(policy=common_pb2.Policy(type=1, value=b"\x08\x01")), "version is 1"),
        (common_pb2.ConfigPolicy(policy=common_pb2.Policy(type=1, value=b"\xff")), "cannot be used"),
        (common_pb2.ConfigPolicy(policy=common_pb2.Policy(type=3, value=b"\x10\x09")), "rule is 9"),
        (
            common_pb2.ConfigPolicy(
                policy=common_pb2.Policy(
                    type=1,
                    value=common_pb2.SignaturePolicyEnvelope(rule=Rule(signed_by=0)).SerializeToString(),
                )
            ),
            "identity 0 of 0",
        ),
    ],
)
def test_a_policy_that_cannot_be_read_is_refused_with_its_path(
    declared: common_pb2.ConfigPolicy, why: str
) -> None:
    root = common_pb2.ConfigGroup()
    root.policies["Bad"].CopyFrom(declared)
    with pytest.raises(ValueError, match=f"/Channel/Bad cannot be used.*{why}|{why}"):
        Policies(root, People())
