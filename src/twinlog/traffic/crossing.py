"""Carries a move out, step by step, each written down before it is taken.

Called by `twinlog switchover`, `promote` and `return`, and by the traffic manager; whoever finds a move
that is not done goes on with it, because every step may be taken twice. A switchover that fails before
the other site is open is called off, and clients go on where they were; one that loses the old site after
that ends without it. Both are written down before they are done, like any step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from twinlog.errors import PrerequisiteError, SiteError, TwinlogError
from twinlog.traffic import failover, forgetting, leadership, returning, switchover
from twinlog.traffic.ground import Ground, Hand
from twinlog.traffic.journal import Journal, Overtaken
from twinlog.traffic.moves import COMMANDS, Kind, Move, Step

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
        Step.EPOCHS: leadership.raise_noted,
        Step.FORGET: failover.forget_producers,
        Step.LEASE: switchover.wait_for_lease,
        Step.OPEN: failover.open_target,
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
    journal, hint = Journal(ground), "twinlog traffic status"
    written = move
    while not move.is_done:
        try:
            move = written = journal.write(move)
            watch(move)
            name = f"{move.kind}: {_doing(move)}"
            ground.progress.begin(name)
            move = _hand(move)(ground, move).after()
        except Overtaken:
            raise
        except TwinlogError as error:
            move, hint = _otherwise(ground, move, written, error), error.hint
        else:
            ground.progress.end(name)
    move = journal.write(move)
    watch(move)
    if move.called_off:
        raise SiteError(
            f"the switchover was called off, and clients go on at {move.source}: {move.called_off}", hint=hint
        )
    return move


def _doing(move: Move) -> str:
    if move.called_off:
        return "call it off"
    return f"go on without site {move.source}" if move.lost else str(move.step)


def _hand(move: Move) -> Hand:
    if move.called_off:
        return switchover.call_off
    return failover.leave_behind if move.lost else HANDS[move.kind][move.step]


def _otherwise(ground: Ground, move: Move, written: Move, error: TwinlogError) -> Move:
    """The move as it goes on when it failed; raises where there is no other way than to try again.

    It has come as far as was written: what could not be written down was not begun.
    """
    if move.called_off:
        raise SiteError(
            f"clients could not be let in at site {move.source} again: {error}; {move}",
            hint=f"is site {move.source} lost? twinlog promote; if not: twinlog switchover",
        ) from error
    if written.kind is Kind.SWITCHOVER and not written.is_open:
        return replace(written, called_off=str(error))
    if _has_lost_source(ground, written, error) and not move.lost:
        ground.progress.note(
            f"site {written.source} is lost, and clients go on at {written.target}: {error};"
            " twinlog return brings it back"
        )
        return replace(written, lost=str(error))
    hint = f"mend that, then go on with it: twinlog {COMMANDS[move.kind]}"
    raise SiteError(f"{move} did not work: {error}", where=error.where, hint=hint) from error


def _has_lost_source(ground: Ground, move: Move, error: TwinlogError) -> bool:
    """True if all is done but what the old site was needed for; what this machine lacks can be mended."""
    if move.kind is not Kind.SWITCHOVER or not move.has_opened or isinstance(error, PrerequisiteError):
        return False
    return ground.answers(move.target) and not ground.answers(move.source)
