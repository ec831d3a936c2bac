"""What Twinlog, or a user with a certificate, shows to a site and trusts there.

A certificate is judged by `pki`: who signed it, for whom, how long it still lasts. What was found good is
kept as a memo until the certificate is to be renewed, so that a command that only wants to reach a site
need not import what judges it. The memo depends on every text that was judged and on the rules.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from twinlog import __version__, memo
from twinlog.sites import authorities
from twinlog.sites.authorities import Issued, Kind
from twinlog.spec.model import Bus

if TYPE_CHECKING:
    from twinlog.sites.pki import Pki


class Credentials(NamedTuple):
    """Three PEM texts: whom to trust, a certificate with its chain, its key."""

    ca_pem: str
    cert_pem: str
    key_pem: str


def credentials(
    directory: Path,
    bus: Bus,
    kind: Kind,
    name: str,
    pki: Callable[[], Pki],
    *,
    memos: bool = True,
    now_s: Callable[[], float] = time.time,
) -> Credentials:
    """Those of a client of the bus whose keys lie in that directory; its certificate is good for a while."""
    paths = authorities.paths(directory, kind, name)
    kept = paths.store.with_suffix(".memo")
    before = _texts(directory, kind, paths)
    if before is not None:
        good_until = memo.recall(kept, _depends_on(bus, kind, name, before))
        if good_until is not None and now_s() < good_until:
            return _of(directory, kind, paths)
    judge = pki()
    issued = judge.issue(kind, name)
    # Kept is only what was judged: the texts that were there before and are there still.
    if memos and before is not None and before == _texts(directory, kind, paths):
        due_s = judge.renewal_due(kind, name).timestamp()
        memo.keep(kept, _depends_on(bus, kind, name, before), due_s)
    return _of(directory, kind, issued)


def _of(directory: Path, kind: Kind, issued: Issued) -> Credentials:
    return Credentials(authorities.trust_pem(directory, kind.realm), issued.chain_pem, issued.key_pem)


def _texts(directory: Path, kind: Kind, paths: Issued) -> tuple[str, ...] | None:
    """All that a judgement is made of; None if a part is missing."""
    try:
        signing = authorities.generations(directory, kind.realm).signing
        authority = (directory / kind.realm / f"ca-{signing}.crt").read_text()
        return (authority, *(path.read_text() for path in (paths.store, paths.key, paths.certificate)))
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def _depends_on(bus: Bus, kind: Kind, name: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    here = Path(__file__).parent
    code = memo.code_in(here / "certificates.py", here / "pki.py", Path(__file__))
    rules = bus.certificates
    return (__version__, code, bus.bus, kind, name, str(rules.validity), str(rules.renew_before), *texts)
