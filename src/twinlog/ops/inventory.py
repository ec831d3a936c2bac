"""All certificates of a bus, each with the one word that says what should be done about it.

For `twinlog certs status`. What is on disk is compared with what running nodes show; a certificate
that nobody uses any more (of a user or a site that is gone) is named and never a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from twinlog.ops.renewal import ADMIN, brought_up, voters
from twinlog.sites import processes, served
from twinlog.sites.authorities import Kind
from twinlog.sites.certificates import State
from twinlog.sites.home import Home
from twinlog.sites.layout import Kind as NodeKind
from twinlog.sites.layout import Node
from twinlog.sites.pki import Status
from twinlog.sites.served import Served
from twinlog.spec.model import Auth


class Verdict(StrEnum):
    """What should be done about a certificate."""

    OK = "ok"
    RENEW = "renew"  # it ends soon
    EXPIRED = "expired"
    STALE = "stale"  # a running node shows another one
    UNUSED = "unused"

    @property
    def wants_attention(self) -> bool:
        """True if `certs status` should say so by its exit code."""
        return self in (Verdict.RENEW, Verdict.EXPIRED, Verdict.STALE)


@dataclass(frozen=True)
class Item:
    """One certificate."""

    certificate: str
    authority: str
    subject: str
    names: tuple[str, ...]
    not_after: datetime
    days_left: float
    state: Verdict
    served: bool | None  # None where no running node is there to show it, or it shows nothing
    shown_otherwise: tuple[str, ...]  # the listeners that show another one
    is_authority: bool


def items(home: Home) -> list[Item]:
    """Every certificate of the bus."""
    looked = served.look(home, _reachable(home))
    used = set(_used(home))
    return [_item(home, status, used, looked) for status in home.pki.status()]


def verdict(state: State, *, used: bool, shown_otherwise: Sequence[str]) -> Verdict:
    """The one word for a certificate: what is worse comes first."""
    if not used:
        return Verdict.UNUSED
    if state is State.EXPIRED:
        return Verdict.EXPIRED
    if shown_otherwise:
        return Verdict.STALE
    return Verdict.RENEW if state is State.RENEW else Verdict.OK


def _item(home: Home, status: Status, used: set[Path], looked: Sequence[Served]) -> Item:
    is_authority = status.path.name.startswith("ca-") and status.path.parent.name == status.authority
    mine = [seen for seen in looked if seen.certificate == status.path]
    otherwise = tuple(seen.label for seen in mine if seen.same is False)
    known = bool(mine) and all(seen.same is not None for seen in mine)
    return Item(
        certificate=str(status.path.relative_to(home.directory)),
        authority=status.authority,
        subject=status.subject,
        names=status.names,
        not_after=status.not_after,
        days_left=round(status.days_left, 2),
        state=verdict(status.state, used=is_authority or status.path in used, shown_otherwise=otherwise),
        served=False if otherwise else (True if known else None),
        shown_otherwise=otherwise,
        is_authority=is_authority,
    )


def _nodes(home: Home) -> Iterator[Node]:
    for name in brought_up(home, home.local_sites):
        yield from home.layout(name).nodes


def _reachable(home: Home) -> list[Node]:
    nodes = list(_nodes(home))
    running = processes.find(node for node in nodes if not node.remote)
    return [node for node in nodes if node.remote or node.id in running]


def _used(home: Home) -> Iterator[Path]:
    yield home.pki.paths(Kind.LINK, ADMIN).certificate
    for name in voters(home):
        yield home.pki.paths(Kind.VOTE, name).certificate
    for name, user in home.bus.users.items():
        if user.auth is Auth.MTLS:
            yield home.pki.paths(Kind.USER, name).certificate
    for node in _nodes(home):
        yield home.pki.paths(Kind.NODE, f"{Kind.NODE}-{node.id}").certificate
        if node.kind is NodeKind.BROKER:
            yield home.pki.paths(Kind.SERVER, f"{Kind.SERVER}-{node.id}").certificate
