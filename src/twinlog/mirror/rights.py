"""Who may write at the standby: one principal for each holder, and nobody else.

A driver's run is a generation; its number is the microsecond at which it began. Every holder of a
generation gets a principal of its own, `twinlog:link-GENERATION-NUMBER`, with exactly the rights
of a mirror. Taking the rights of a principal away, and waiting until every broker knows, is what
makes sure that nothing it sent before can still be appended. The generation's own principal, number 0,
sets the offsets of groups and is fenced in the same way. Rules reach brokers in one order, so of two
generations that claim the link at once the later one sees the earlier one's claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from twinlog.errors import SiteError
from twinlog.sites.authorities import Kind
from twinlog.sites.pki import Pki
from twinlog.spec.patterns import ANY
from twinlog.wire import acls
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.cluster import Cluster

_PRINCIPAL = re.compile(r"User:twinlog:link-(\d+)(?:-(\d+))?")


class Deposed(SiteError):
    """A later generation has claimed the link."""


@dataclass(frozen=True, order=True)
class Claim:
    """A generation (number 0), or one of its holders."""

    generation: int
    number: int = 0

    @property
    def name(self) -> str:
        """The name in the certificate."""
        return f"link-{self.generation}-{self.number}"

    @property
    def principal(self) -> str:
        """As Kafka's rules name it."""
        return f"User:twinlog:{self.name}"


def claim_of(principal: str) -> Claim | None:
    """The claim that a principal stands for, or None for anybody else."""
    found = _PRINCIPAL.fullmatch(principal)
    return Claim(int(found[1]), int(found[2] or 0)) if found else None


def at_active(claim: Claim, topics: Iterable[str]) -> frozenset[Acl]:
    """What a holder may do at the active: read the mirrored topics."""
    return frozenset(Acl(Resource.TOPIC, topic, claim.principal, Operation.READ) for topic in topics)


def at_standby(claim: Claim, topics: Iterable[str]) -> frozenset[Acl]:
    """What a holder may do at the standby: read, append, and write markers."""
    cluster = Acl(Resource.CLUSTER, acls.CLUSTER_NAME, claim.principal, Operation.CLUSTER_ACTION)
    both = (Operation.READ, Operation.WRITE)
    rules = (Acl(Resource.TOPIC, topic, claim.principal, one) for topic in topics for one in both)
    return frozenset((cluster, *rules))


def of_groups(claim: Claim) -> frozenset[Acl]:
    """What a generation may do at the standby beside its holders: set the offsets of groups."""
    every = (Resource.GROUP, Resource.TOPIC)
    return frozenset(Acl(resource, ANY, claim.principal, Operation.READ) for resource in every)


def take_over(active: Cluster, standby: Cluster, generation: int) -> None:
    """Claim the link for a generation and take every earlier one's rights away, everywhere."""
    claim(standby, generation)
    acls.remove(active, _rules(active, lambda claim: claim.generation != generation))
    own = Claim(generation)
    _give(active, standby, own, ((standby, of_groups(own)),))


def claim(standby: Cluster, generation: int) -> None:
    """Claim the link at the standby: nobody of an earlier generation can write there any more."""
    own = Claim(generation)
    mark = Acl(Resource.CLUSTER, acls.CLUSTER_NAME, own.principal, Operation.DESCRIBE)
    acls.add(standby, [mark])
    acls.wait_until_everywhere(standby, present=[mark])
    others = _rules(standby, lambda claim: claim.generation != generation)
    later = [claim for rule in others if (claim := claim_of(rule.principal)) and claim > own]
    if later:
        acls.remove(standby, [mark])
        raise Deposed("another mirror has claimed the link", where=standby.where, hint="twinlog link status")
    acls.remove(standby, others)
    acls.wait_until_everywhere(standby, absent=others)


def grant(active: Cluster, standby: Cluster, claim: Claim, topics: Collection[str]) -> None:
    """Give a holder its rights, and return when every broker knows; not if a later generation is there."""
    wanted = ((active, at_active(claim, topics)), (standby, at_standby(claim, topics)))
    _give(active, standby, claim, wanted)


def _give(
    active: Cluster, standby: Cluster, claim: Claim, wanted: Iterable[tuple[Cluster, frozenset[Acl]]]
) -> None:
    """Give a claim rights; one that was stopped and goes on finds out that another took over meanwhile.

    Whoever claims the link looks for rights behind its mark, and we for its mark behind our rights: one of
    us sees the other.
    """
    for cluster, rules in wanted:
        acls.add(cluster, rules)
        acls.wait_until_everywhere(cluster, present=rules)
    if not still_ours(standby, claim.generation):
        revoke(active, standby, [claim])
        raise Deposed("another mirror has claimed the link", where=standby.where, hint="twinlog link status")


def revoke(active: Cluster, standby: Cluster, claims: Collection[Claim]) -> None:
    """Take the rights of holders away, and return when every broker of the standby refuses them."""
    gone = _rules(standby, lambda claim: claim in claims)
    acls.remove(standby, gone)
    acls.wait_until_everywhere(standby, absent=gone)
    acls.remove(active, _rules(active, lambda claim: claim in claims))


def leave(active: Cluster, standby: Cluster, generation: int) -> None:
    """Give all rights of a generation back."""
    acls.remove(standby, _rules(standby, lambda claim: claim.generation == generation))
    acls.remove(active, _rules(active, lambda claim: claim.generation == generation))


def still_ours(standby: Cluster, generation: int) -> bool:
    """False when a later generation has claimed the link."""
    return not _rules(standby, lambda claim: claim.generation > generation)


def forget_keys(pki: Pki, is_over: Callable[[Claim], bool]) -> None:
    """Delete the keys and certificates of holders that have no rights any more."""
    for name in pki.names(Kind.LINK):
        claim = claim_of(f"User:twinlog:{name}")
        if claim is not None and is_over(claim):
            pki.remove(Kind.LINK, name)


def _rules(cluster: Cluster, wanted: Callable[[Claim], bool]) -> frozenset[Acl]:
    found = ((claim_of(rule.principal), rule) for rule in acls.describe(cluster))
    return frozenset(rule for claim, rule in found if claim is not None and wanted(claim))
