"""Tools of `twinlog order`: send transactions, look at blocks, and compare the chains of all orderers."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of, timeout_option
from twinlog.cli.output import Column, Record, Table
from twinlog.errors import Findings, UsageError

if TYPE_CHECKING:
    from twinlog.ordering.blocks import Block
    from twinlog.ordering.comparison import History
    from twinlog.ordering.fleet import Fleet, Recorded

_orderer_option = click.option("--orderer", metavar="NAME", help="Ask this one; by default the first.")


@frame.command(
    name="submit",
    example="""
    twinlog order submit trades --transactions 10000 --clients 8
    twinlog order submit trades --transactions 1000 --rate 200 --history run.jsonl
    """,
)
@click.argument("channel")
@click.option("--transactions", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--clients", type=click.IntRange(1), default=1, show_default=True, help="Streams at once.")
@click.option("--rate", type=click.FloatRange(min=0), default=0.0, help="A second, of all; 0: no limit.")
@click.option("--size", type=click.IntRange(1), default=1024, show_default=True, help="Bytes of each.")
@click.option("--in-flight", type=click.IntRange(1), default=500, show_default=True, help="Of one client.")
@click.option("--orderer", "orderers", multiple=True, metavar="NAME", help="Only these.")
@click.option("--history", type=click.Path(path_type=Path), help="Write each one's end there.")
@timeout_option(default_s=60.0, help="Seconds without any answer.")
def submit(ctx: frame.Context, /, channel: str, **given: Any) -> None:
    """Send transactions from several clients to all orderers, and time the answers.

    A client whose orderer dies goes on at the next one. What was not answered is UNKNOWN: it may be in a
    block or not. Exit code 3: not all were acknowledged.
    """
    from twinlog.ordering import submission
    from twinlog.ordering.fleet import Fleet

    fleet = Fleet(home_of(ctx))
    recorded = fleet.recorded()
    run_id = secrets.token_hex(4)
    load = submission.Load(
        channel,
        given["transactions"],
        given["clients"],
        given["rate"],
        given["size"],
        given["in_flight"],
        given["timeout"],
        run_id,
    )
    targets = fleet.targets(recorded)
    chosen = given["orderers"] or tuple(targets)
    unknown = [name for name in chosen if name not in targets]
    if unknown:
        raise UsageError(f"there is no orderer {unknown[0]}", hint=f"there are {', '.join(targets)}")
    name = f"sending to {channel}"
    ctx.progress.begin(name, load.transactions)
    outcome = submission.run(
        load, [targets[one] for one in chosen], fleet.client, lambda count: ctx.progress.advance(name, count)
    )
    ctx.progress.end(name)
    if given["history"] is not None:
        outcome.write(given["history"], run_id)
    counts = outcome.counts
    told = {
        "channel": channel,
        "run": run_id,
        "done": counts[submission.DONE],
        "not_done": counts[submission.NOT_DONE],
        "unknown": counts[submission.UNKNOWN],
        "refusals": outcome.refusals,
        "seconds": round(outcome.seconds, 3),
        "tx_per_s": round(outcome.tx_per_s, 1),
        "latency_ms": outcome.latency_ms,
        "moves": outcome.moves,
    }
    columns = [
        *map(Column, ("channel", "run", "done", "not_done", "unknown")),
        Column("refusals", show=_pairs),
        *map(Column, ("seconds", "tx_per_s")),
        Column("latency_ms", "latency (ms)", show=_pairs),
        Column("moves", "moves to another orderer"),
    ]
    ctx.emit(Record(columns, told))
    if counts[submission.DONE] < load.transactions:
        missing = load.transactions - counts[submission.DONE]
        raise Findings(f"{missing} of {load.transactions} were not acknowledged", hint="twinlog order status")


@frame.command(name="fetch", example="twinlog order fetch trades newest --out newest.block")
@click.argument("channel")
@click.argument("number")
@click.option("--out", type=click.Path(path_type=Path), help="By default CHANNEL_NUMBER.block.")
@_orderer_option
@timeout_option(default_s=30.0, help="Seconds to wait for the block.")
def fetch(
    ctx: frame.Context, channel: str, number: str, out: Path | None, orderer: str | None, timeout: float
) -> None:
    """Write one block to a file: a NUMBER, `oldest`, `newest`, or `config` for the one that holds now."""
    from twinlog.durable import write_text
    from twinlog.ordering.blocks import last_config_of

    fleet, recorded = _fleet(ctx)
    if number in ("newest", "config"):
        block = _one(fleet, recorded, orderer, channel, None, timeout)
        if number == "config":
            block = _one(fleet, recorded, orderer, channel, last_config_of(block), timeout)
    elif number == "oldest" or number.isdecimal():
        block = _one(fleet, recorded, orderer, channel, 0 if number == "oldest" else int(number), timeout)
    else:
        raise UsageError(f"{number} is no block", hint="a number, oldest, newest or config")
    file = out or Path(f"{channel}_{block.header.number}.block")
    write_text(file, block.SerializeToString())
    ctx.emit(Record([Column("file"), Column("number")], {"file": str(file), "number": block.header.number}))


@frame.command(name="blocks", example="twinlog order blocks trades --last 5")
@click.argument("channel")
@click.option("--last", type=click.IntRange(1), default=10, show_default=True, help="How many.")
@_orderer_option
@timeout_option(default_s=30.0, help="Seconds to wait for the blocks.")
def blocks(ctx: frame.Context, channel: str, last: int, orderer: str | None, timeout: float) -> None:
    """List the last blocks of a channel: size, hashes, and the offset of the log that they reach."""
    from twinlog.ordering import callers
    from twinlog.ordering.blocks import hash_of, last_config_of, position_of

    fleet, recorded = _fleet(ctx)
    top = _one(fleet, recorded, orderer, channel, None, timeout).header.number
    target = _target(fleet, recorded, orderer)
    wanted = callers.span(max(0, top - last + 1), top)
    rows = []
    for block in callers.blocks(target, channel, wanted, fleet.client(), timeout):
        position = position_of(block)
        rows.append(
            {
                "number": block.header.number,
                "transactions": len(block.data.data),
                "bytes": sum(map(len, block.data.data)),
                "offset": position.last_offset if position is not None else None,
                "config": last_config_of(block),
                "hash": hash_of(block.header).hex(),
                "data_hash": block.header.data_hash.hex(),
            }
        )
    columns = [
        *(Column(key, right=True) for key in ("number", "transactions", "bytes")),
        Column("offset", right=True, show=lambda value: "-" if value is None else str(value)),
        Column("config", right=True),
        Column("hash", show=lambda value: value[:16]),
        Column("data_hash", show=lambda value: value[:16], spare=True),
    ]
    ctx.emit(Table(columns, rows))


@frame.command(
    name="verify",
    example="""
    twinlog order verify
    twinlog order verify trades --history run.jsonl
    """,
)
@click.argument("channels", nargs=-1)
@click.option("--history", type=click.Path(path_type=Path), help="What `submit --history` wrote.")
@timeout_option(default_s=600.0, help="Seconds for each orderer's chain.")
def verify(ctx: frame.Context, channels: tuple[str, ...], history: Path | None, timeout: float) -> None:
    """Walk the chain of every orderer that runs and compare them, byte by byte.

    With a history also: every acknowledged transaction is in exactly one block, in its client's order.
    Exit code 3: something was found.
    """
    from twinlog.ordering.comparison import compare

    fleet, recorded = _fleet(ctx)
    running = [one for one in recorded.members if fleet.background(one).find() is not None]
    if not running:
        raise Findings("no orderer runs", hint="twinlog order up")
    told = _history(history)
    rows = []
    for channel in channels or tuple(recorded.channels):
        ctx.progress.begin(f"comparing {channel}")
        chains = {one.name: _chain(fleet, recorded, one.name, channel, timeout) for one in running}
        rows.append(compare(channel, chains, told))
        ctx.progress.end(f"comparing {channel}")
    columns = [
        Column("channel_id", "channel"),
        Column("heights", show=_pairs),
        Column("compared", "blocks compared", right=True),
        Column("transactions", right=True),
        Column("is_equal", "equal"),
        Column("faults", show=lambda found: "; ".join(found) or "-"),
    ]
    ctx.emit(Table(columns, rows, empty="no channels: twinlog order channel NAME"))
    wrong = [row.channel_id for row in rows if not row.is_equal]
    if wrong:
        raise Findings(f"something is wrong with {', '.join(wrong)}", hint="twinlog order verify -o json")


def _fleet(ctx: frame.Context) -> tuple[Fleet, Recorded]:
    from twinlog.ordering.fleet import Fleet

    fleet = Fleet(home_of(ctx))
    return fleet, fleet.recorded()


def _target(fleet: Fleet, recorded: Recorded, name: str | None) -> Any:
    targets = fleet.targets(recorded)
    chosen = name or next(iter(targets))
    if chosen not in targets:
        raise UsageError(f"there is no orderer {chosen}", hint=f"there are {', '.join(targets)}")
    return targets[chosen]


def _one(
    fleet: Fleet, recorded: Recorded, name: str | None, channel: str, number: int | None, timeout_s: float
) -> Block:
    from twinlog.ordering import callers

    target = _target(fleet, recorded, name)
    (block,) = callers.blocks(target, channel, callers.span(number, number), fleet.client(), timeout_s)
    return block


def _chain(fleet: Fleet, recorded: Recorded, name: str, channel: str, timeout_s: float) -> Iterator[Block]:
    from twinlog.ordering import callers

    target = _target(fleet, recorded, name)
    yield from callers.blocks(target, channel, callers.span(0, None), fleet.client(), timeout_s)


def _history(file: Path | None) -> History | None:
    from twinlog.ordering.comparison import History
    from twinlog.ordering.submission import read_history

    if file is None:
        return None
    try:
        return History(*read_history(file))
    except (OSError, ValueError, TypeError, KeyError, StopIteration) as error:
        raise UsageError(f"the history cannot be read: {error}", where=str(file)) from None


def _pairs(found: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in found.items()) or "-"


COMMANDS = (submit, fetch, blocks, verify)
