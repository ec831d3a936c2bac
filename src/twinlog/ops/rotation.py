"""Exchanges an authority of a running bus for a new one, in three phases with time between them.

    begin    the new authority is trusted by all nodes; clients are given new files, which trust both
    switch   the new authority signs; nodes show new certificates
    finish   the old authority is no longer trusted, and its key is deleted

Called by `twinlog certs rotate-ca`. The phase is on disk before nodes are told; each phase first
makes sure that the one before has arrived at every node, so all of them can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from twinlog.errors import SiteError
from twinlog.ops import renewal
from twinlog.ops.renewal import Renewed
from twinlog.progress import Progress
from twinlog.sites.authorities import Realm
from twinlog.sites.home import Home
from twinlog.sites.pki import Phase


class Step(StrEnum):
    """What is done next."""

    BEGIN = "begin"
    SWITCH = "switch"
    FINISH = "finish"


def steps_from(phase: Phase) -> tuple[Step, ...]:
    """What is left to do from a phase on; from none, everything."""
    rest = {Phase.STEADY: 0, Phase.BEGUN: 1, Phase.SWITCHED: 2}
    return tuple(Step)[rest[phase] :]


def take(home: Home, realms: Sequence[Realm], step: Step, progress: Progress) -> Renewed:
    """Take one step for these authorities; taking it twice does no harm."""
    if step is not Step.BEGIN:
        _refuse_waiting(renewal.renew(home, home.local_sites, progress))
    change = {
        Step.BEGIN: home.pki.begin_rotation,
        Step.SWITCH: home.pki.switch_rotation,
        Step.FINISH: home.pki.finish_rotation,
    }[step]
    for realm in realms:
        change(realm)
    return renewal.renew(home, home.local_sites, progress)


def take_all(home: Home, realms: Sequence[Realm], progress: Progress) -> Renewed:
    """Take every step that is left, one after the other, without time for clients in between."""
    done = Renewed((), (), ())
    for realm in realms:
        for step in steps_from(home.pki.phase(realm)):
            done = take(home, [realm], step, progress)
            _refuse_waiting(done)
    return done


def _refuse_waiting(done: Renewed) -> None:
    if done.waiting:
        listed = ", ".join(seen.label for seen in done.waiting)
        node = done.waiting[0].node
        raise SiteError(
            f"the step before has not arrived everywhere: {listed}",
            where=f"site {node.site}",
            hint=f"carry the node's new files there: twinlog bundle {node.site} {node.id}",
        )
