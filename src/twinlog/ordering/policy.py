"""Policies: which signatures suffice.

A SIGNATURE policy counts principals that signed, an IMPLICIT_META policy counts policies of the groups
below its own. `Policies` compiles all of a config tree once and is then asked for each message, so one
signature, the usual case, is decided from memory and at most one ECDSA verification. Who signed and what he
is comes from `Directory` (the channel's membership providers). Pure, and the same on every orderer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeAlias

from google.protobuf.message import DecodeError

from twinlog.ordering.identity import Identity
from twinlog.ordering.proto import common_pb2

ROOT: Final = "Channel"
_REMEMBERED: Final = 4096  # identities whose standing a policy keeps in mind
_Rule = common_pb2.ImplicitMetaPolicy


class SignedData(NamedTuple):
    """A signature, what it is over, and who is said to have made it."""

    data: bytes
    identity: bytes  # a serialized identity
    signature: bytes


class Directory(Protocol):
    """Who is who in a channel."""

    def identity(self, creator: bytes) -> Identity | None:
        """Whom a serialized identity names; None if nobody knows it."""

    def satisfies(self, identity: Identity, principal: common_pb2.MSPPrincipal) -> bool:
        """True if an identity is what a principal asks for."""


@dataclass(frozen=True, eq=False)
class SignedBy:
    """Somebody who satisfies a principal signed."""

    principal: common_pb2.MSPPrincipal


@dataclass(frozen=True, eq=False)
class OutOf:
    """At least n rules hold, each by signatures of its own."""

    n: int
    rules: tuple[SignatureRule, ...]


@dataclass(frozen=True, eq=False)
class Meta:
    """At least n policies hold, each judged alone."""

    n: int
    policies: tuple[Rule, ...]


SignatureRule: TypeAlias = SignedBy | OutOf
Rule: TypeAlias = SignedBy | OutOf | Meta

_NEVER: Final = OutOf(1, ())


class _Need(Enum):
    """What a policy wants of a single signature, given who made it."""

    NOTHING = "it holds without signatures"
    VALID = "the signature must be valid"
    MORE = "it does not hold either way"


class _Presented:
    """A signature of a known identity; verified when somebody first asks."""

    def __init__(self, identity: Identity, signed: SignedData) -> None:
        self.identity = identity
        self._signed = signed
        self._valid: bool | None = None

    @property
    def is_valid(self) -> bool:
        if self._valid is None:
            self._valid = self.identity.verify(self._signed.data, self._signed.signature)
        return self._valid


class _Believed(_Presented):
    """A signature that is taken for valid, to find out what difference it would make."""

    @property
    def is_valid(self) -> bool:
        return True


class Policy:
    """One policy of a channel."""

    def __init__(self, path: str, rule: Rule, directory: Directory) -> None:
        self.path = path
        self._rule = rule
        self._directory = directory
        self._needs = lru_cache(maxsize=_REMEMBERED)(self._needs_of)

    def evaluate(self, signed: Sequence[SignedData]) -> bool:
        """True if the signatures satisfy this policy."""
        if len(signed) == 1:
            return self._evaluate_one(signed[0])
        return _holds(self._rule, self._presented(signed), self._directory)

    def _evaluate_one(self, signed: SignedData) -> bool:
        identity = self._directory.identity(signed.identity)
        need = self._needs(identity)
        if need is _Need.VALID and identity is not None:
            return identity.verify(signed.data, signed.signature)
        return need is _Need.NOTHING

    def _needs_of(self, identity: Identity | None) -> _Need:
        if _holds(self._rule, [], self._directory):
            return _Need.NOTHING
        if identity is None:
            return _Need.MORE
        believed = [_Believed(identity, SignedData(b"", b"", b""))]
        return _Need.VALID if _holds(self._rule, believed, self._directory) else _Need.MORE

    def _presented(self, signed: Sequence[SignedData]) -> list[_Presented]:
        """The signatures of known identities, the first of each identity only."""
        found: dict[tuple[str, bytes], _Presented] = {}
        for each in signed:
            identity = self._directory.identity(each.identity)
            if identity is not None:
                found.setdefault((identity.mspid, identity.certificate), _Presented(identity, each))
        return list(found.values())


class Policies:
    """All policies of a config tree, by their paths: `/Channel/Orderer/Admins`."""

    def __init__(self, root: common_pb2.ConfigGroup, directory: Directory) -> None:
        self._directory = directory
        rules = _compile_group(root, f"/{ROOT}")
        self._policies = {
            f"/{ROOT}/{path}": Policy(f"/{ROOT}/{path}", rule, directory) for path, rule in rules.items()
        }

    def find(self, path: str) -> Policy | None:
        """The policy at an absolute path."""
        return self._policies.get(path)

    def get(self, path: str) -> Policy:
        """The policy at an absolute path; one that nothing satisfies if there is none."""
        return self._policies.get(path) or Policy(path, _NEVER, self._directory)

    def for_changes(self, mod_policy: str, group: str) -> Policy | None:
        """The policy that a mod_policy names, seen from a group's path; absolute ones from the root."""
        return self.find(mod_policy if mod_policy.startswith("/") else f"{group}/{mod_policy}")


def _holds(rule: Rule, presented: Sequence[_Presented], directory: Directory) -> bool:
    if isinstance(rule, Meta):
        held = 0
        for policy in rule.policies:
            if held >= rule.n:
                break
            held += _holds(policy, presented, directory)
        return held >= rule.n
    return _used_by(rule, presented, directory, frozenset()) is not None


def _used_by(
    rule: SignatureRule, presented: Sequence[_Presented], directory: Directory, used: frozenset[int]
) -> frozenset[int] | None:
    """Which signatures are used up once a rule holds; None if it does not."""
    if isinstance(rule, SignedBy):
        for place, each in enumerate(presented):
            if place in used or not directory.satisfies(each.identity, rule.principal):
                continue
            if each.is_valid:
                return used | {place}
        return None
    held = 0
    # All rules are tried, also when enough hold: the others may use up signatures, as everywhere else.
    for inner in rule.rules:
        after = _used_by(inner, presented, directory, used)
        if after is not None:
            used = after
            held += 1
    return used if held >= rule.n else None


def _compile_group(group: common_pb2.ConfigGroup, path: str) -> dict[str, Rule]:
    """All rules of a group and the groups below, by their paths from this group."""
    below = {name: _compile_group(group.groups[name], f"{path}/{name}") for name in sorted(group.groups)}
    rules: dict[str, Rule] = {}
    for name, declared in group.policies.items():
        try:
            rules[name] = _compile(declared, below)
        except (DecodeError, ValueError) as error:
            raise ValueError(f"the policy {path}/{name} cannot be used: {error}") from None
    for child, inner in below.items():
        rules |= {f"{child}/{name}": rule for name, rule in inner.items()}
    return rules


def _compile(declared: common_pb2.ConfigPolicy, below: Mapping[str, Mapping[str, Rule]]) -> Rule:
    if not declared.HasField("policy"):
        raise ValueError("it is empty")
    kind = declared.policy.type
    if kind == common_pb2.Policy.IMPLICIT_META:
        meta = _Rule.FromString(declared.policy.value)
        policies = tuple(rules.get(meta.sub_policy, _NEVER) for rules in below.values())
        return Meta(threshold(meta.rule, len(policies)), policies)
    if kind == common_pb2.Policy.SIGNATURE:
        envelope = common_pb2.SignaturePolicyEnvelope.FromString(declared.policy.value)
        if envelope.version != 0:
            raise ValueError(f"its version is {envelope.version}, and only 0 is known")
        return compile_signature(envelope.rule, envelope.identities)
    raise ValueError(f"its type is {kind}, which is not known")


def threshold(rule: int, policies: int) -> int:
    """How many of so many policies an IMPLICIT_META rule asks for; none of none."""
    if rule not in (_Rule.ANY, _Rule.ALL, _Rule.MAJORITY):
        raise ValueError(f"its rule is {rule}, which is not known")
    if policies == 0 or rule == _Rule.ALL:
        return policies
    return 1 if rule == _Rule.ANY else policies // 2 + 1


def compile_signature(
    rule: common_pb2.SignaturePolicy, identities: Sequence[common_pb2.MSPPrincipal]
) -> SignatureRule:
    """A SIGNATURE policy's rule, checked."""
    match rule.WhichOneof("Type"):
        case "signed_by":
            if not 0 <= rule.signed_by < len(identities):
                raise ValueError(f"it names identity {rule.signed_by} of {len(identities)}")
            return SignedBy(identities[rule.signed_by])
        case "n_out_of":
            inner = tuple(compile_signature(each, identities) for each in rule.n_out_of.rules)
            return OutOf(rule.n_out_of.n, inner)
        case _:
            raise ValueError("one of its rules is empty")
