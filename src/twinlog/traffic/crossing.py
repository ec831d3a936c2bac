"""Carries a move out, step by step, each written down before it is taken.

Called by `twinlog switchover`, `promote` and `return`, and by the traffic manager; whoever finds a move
that is not done goes on with it, because every step may be taken twice. A switchover that fails before
the other site is open is called off, and clients go on where they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from twinlog.errors import SiteError, TwinlogError
from twinlog.traffic import failover, forgetting, leadership, returning, switchover
from twinlog.traffic.ground import Ground, Hand
from twinlog.traffic.journal import Journal
from twinlog.traffic.moves import Kind, Move, Step

HANDS: Mapping[Kind, Mapping[Step, Hand]] = {
    Kind.SWITCHOVER: {
        Step.FENCE: switchover.fence,
        Step.REVOKE: switchover.revoke,
        Step.TRANSACTIONS: switchover.end_transactions,
        Step.DRAIN: switchover.drain,
        Step.HOLD: switchover.hold_link,
        Step.OFFSETS: switchover.copy_offsets,
        Step.PRODUCERS: forgetting.know_alike,
        Step.EPOCHS: leadership.raise_epochs,
        Step.LEASE: switchover.wait_for_lease,
        Step.OPEN: switchover.change_sites,
        Step.STOP: switchover.stop_brokers,
        Step.START: switchover.start_brokers,
        Step.SETTLE: switchover.settle_source,
        Step.LINK: switchover.turn_link,
        Step.RELEASE: switchover.release,
    },
    Kind.FAILOVER: {
        Step.FENCE: failover.fence,
        Step.HOLD: switchover.hold_link,
        Step.POINTS: failover.note_points,
        Step.FORGET: failover.forget_producers,
        Step.LEASE: switchover.wait_for_lease,
        Step.OPEN: switchover.open_target,
    },
    Kind.RETURN: {
        Step.START_CLOSED: returning.start_closed,
        Step.REVOKE: switchover.revoke,
        Step.TRANSACTIONS: switchover.end_transactions,
        Step.SALVAGE: returning.salvage_tail,
        Step.STOP: switchover.stop_brokers,
        Step.CUT: returning.cut_logs,
        Step.START: switchover.start_brokers,
        Step.FORGET: returning.forget_producers,
        Step.SETTLE: returning.settle,
        Step.LINK: switchover.turn_link,
        Step.RELEASE: returning.release,
    },
}

Watch = Callable[[Move], None]


def carry_out(ground: Ground, move: Move, *, watch: Watch = lambda move: None) -> Move:
    """Take every step that is left; `watch` is told before each one. Returns the move as it ended."""
    journal = Journal(ground)
    while not move.is_done:
        move = journal.write(move)
        watch(move)
        name = f"{move.kind}: {move.step}"
        ground.progress.begin(name)
        try:
            move = HANDS[move.kind][move.step](ground, move)
        except TwinlogError as error:
            raise _called_off(ground, journal, move, error) from error
        ground.progress.end(name)
        move = move.after()
    move = journal.write(move)
    watch(move)
    return move


def _called_off(ground: Ground, journal: Journal, move: Move, error: TwinlogError) -> TwinlogError:
    """Undo what can be undone; returns the error that says how things stand now."""
    if move.kind is not Kind.SWITCHOVER or move.is_open:
        hint = f"mend that, then go on with it: twinlog {_COMMANDS[move.kind]}"
        return SiteError(f"{move} did not work: {error}", where=error.where, hint=hint)
    journal.write(move)  # nobody else goes on with it
    switchover.call_off(ground, move)
    journal.write(replace(move, step=Step.DONE, called_off=str(error)))
    return SiteError(
        f"the switchover was called off, and clients go on at {move.source}: {error}", hint=error.hint
    )


_COMMANDS = {Kind.SWITCHOVER: "switchover", Kind.FAILOVER: "promote", Kind.RETURN: "return"}
