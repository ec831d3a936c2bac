"""Policies as people write them in configtx.yaml: `OR('Org1.member', 'Org2.admin')`, `ANY Writers`.

Called by `configtx`. The principals of a signature policy come in the order in which Fabric's own tool puts
them (those of inner rules before those of the rule around them), so that both write the same bytes. Pure.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from twinlog.ordering.proto import common_pb2

_Node: TypeAlias = "str | tuple[int, list[_Node]]"

_TOKEN: Final = re.compile(r"\s*(?:([A-Za-z]+)|([0-9]+)|'([^']*)'|\"([^\"]*)\"|([(),]))")
_PRINCIPAL: Final = re.compile(r"([0-9A-Za-z.-]+)\.(admin|member|client|peer|orderer)")
_GATES: Final = ("and", "or", "outof")
_SPELLINGS: Final = {
    spelling: gate
    for gate, name in zip(_GATES, ("And", "Or", "OutOf"), strict=True)
    for spelling in (name, name.lower(), name.upper())
}


def implicit_meta(text: str) -> common_pb2.Policy:
    """The policy that `ANY Writers`, `ALL Readers` or `MAJORITY Admins` stands for."""
    rule, _, name = text.partition(" ")
    if rule not in ("ANY", "ALL", "MAJORITY") or not name or " " in name:
        raise ValueError(f"{text!r} is not written as in ANY Writers, ALL Readers or MAJORITY Admins")
    meta = common_pb2.ImplicitMetaPolicy(sub_policy=name, rule=rule)
    return common_pb2.Policy(type=common_pb2.Policy.IMPLICIT_META, value=meta.SerializeToString())


def signature(text: str) -> common_pb2.Policy:
    """The policy that an expression of AND, OR and OutOf stands for."""
    tokens = _tokens(text)
    node = _parse(tokens, text)
    if tokens or isinstance(node, str):
        raise ValueError(f"{text!r} is not one rule of AND, OR or OutOf")
    envelope = common_pb2.SignaturePolicyEnvelope()
    envelope.rule.CopyFrom(_rule(node, envelope))
    return common_pb2.Policy(type=common_pb2.Policy.SIGNATURE, value=envelope.SerializeToString())


def signed_by_role(mspid: str, role: str) -> common_pb2.Policy:
    """The policy that anybody with a role in an organisation satisfies."""
    envelope = common_pb2.SignaturePolicyEnvelope()
    envelope.rule.n_out_of.n = 1
    envelope.rule.n_out_of.rules.append(_signed_by(mspid, role, envelope))
    return common_pb2.Policy(type=common_pb2.Policy.SIGNATURE, value=envelope.SerializeToString())


def always() -> common_pb2.Policy:
    """The policy that no signature at all satisfies."""
    envelope = common_pb2.SignaturePolicyEnvelope()
    envelope.rule.n_out_of.SetInParent()
    return common_pb2.Policy(type=common_pb2.Policy.SIGNATURE, value=envelope.SerializeToString())


def _tokens(text: str) -> list[tuple[str, str]]:
    """Kind and content of each token, the last one first."""
    found = []
    place = 0
    end = len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"{text!r} cannot be read at {text[place:].strip()!r}")
        word, number, single, double, mark = match.groups()
        if word is not None:
            found.append(("word", word))
        elif number is not None:
            found.append(("number", number))
        elif mark is not None:
            found.append(("mark", mark))
        else:
            found.append(("text", single if single is not None else double))
        place = match.end()
    return found[::-1]


def _parse(tokens: list[tuple[str, str]], text: str) -> _Node:
    kind, content = tokens.pop() if tokens else ("end", "")
    if kind == "text":
        return content
    gate = _SPELLINGS.get(content) if kind == "word" else None
    if gate is None:
        raise ValueError(f"{text!r} has {content or 'its end'!r} where a rule or 'Org.role' must stand")
    _expect(tokens, "(", text)
    count = None
    if gate == "outof":
        kind, content = tokens.pop() if tokens else ("end", "")
        if kind not in ("number", "text") or not content.isdecimal():
            raise ValueError(f"{text!r}: OutOf begins with a number")
        count = int(content)
        _expect(tokens, ",", text)
    inner = [_parse(tokens, text)]
    while tokens and tokens[-1] == ("mark", ","):
        tokens.pop()
        inner.append(_parse(tokens, text))
    _expect(tokens, ")", text)
    if count is None:
        count = len(inner) if gate == "and" else 1
    if count > len(inner) + 1:
        raise ValueError(f"{text!r}: {count} of {len(inner)} can never hold")
    return count, inner


def _expect(tokens: list[tuple[str, str]], mark: str, text: str) -> None:
    if not tokens or tokens.pop() != ("mark", mark):
        raise ValueError(f"{text!r} lacks {mark!r}")


def _rule(
    node: tuple[int, list[_Node]], envelope: common_pb2.SignaturePolicyEnvelope
) -> common_pb2.SignaturePolicy:
    count, inner = node
    rules = {place: _rule(each, envelope) for place, each in enumerate(inner) if not isinstance(each, str)}
    result = common_pb2.SignaturePolicy()
    result.n_out_of.n = count
    for place, each in enumerate(inner):
        rule = _principal(each, envelope) if isinstance(each, str) else rules[place]
        result.n_out_of.rules.append(rule)
    return result


def _principal(text: str, envelope: common_pb2.SignaturePolicyEnvelope) -> common_pb2.SignaturePolicy:
    match = _PRINCIPAL.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not written as Org.member, or another role")
    return _signed_by(match[1], match[2].upper(), envelope)


def _signed_by(
    mspid: str, role: str, envelope: common_pb2.SignaturePolicyEnvelope
) -> common_pb2.SignaturePolicy:
    wanted = common_pb2.MSPRole(msp_identifier=mspid, role=role)
    envelope.identities.add(
        principal_classification=common_pb2.MSPPrincipal.ROLE, principal=wanted.SerializeToString()
    )
    return common_pb2.SignaturePolicy(signed_by=len(envelope.identities) - 1)
