"""What `twinlog order` makes of profiles: genesis blocks, channels, and identities to try it out with."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Event

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of, timeout_option
from twinlog.cli.output import Column, Record
from twinlog.errors import SiteError, UsageError

AGAIN_S = 0.2


@frame.command(
    name="genesis",
    example="""
    twinlog order genesis --configtx configtx.yaml --profile System --out genesis.block
    twinlog order genesis --show genesis.block
    """,
)
@click.option("--configtx", type=click.Path(path_type=Path), default="configtx.yaml", show_default=True)
@click.option("--profile", metavar="NAME", help="The profile of the system channel.")
@click.option("--channel", metavar="NAME", default="system", show_default=True, help="Its name.")
@click.option("--out", type=click.Path(path_type=Path), default="genesis.block", show_default=True)
@click.option("--show", type=click.Path(path_type=Path), metavar="FILE", help="Read a block instead.")
def genesis(
    ctx: frame.Context, configtx: Path, profile: str | None, channel: str, out: Path, show: Path | None
) -> None:
    """Write the first block of a system channel from a profile, or show one, ours or configtxgen's."""
    from twinlog.durable import write_text
    from twinlog.ordering import configtx as profiles
    from twinlog.ordering import genesis as blocks
    from twinlog.ordering.configtree import ConfigRefused

    if show is None:
        if profile is None:
            raise UsageError("which profile? --profile is missing", hint="twinlog order genesis --help")
        try:
            made = blocks.genesis_block(profiles.load(configtx, profile, os.environ), channel)
        except ConfigRefused as error:
            raise UsageError(f"the profile makes no usable channel: {error}", where=str(configtx)) from None
        write_text(out, made.SerializeToString())
    file = show or out
    _, bundle = blocks.read_block(file)
    size = bundle.batch_size
    told = {
        "file": str(file),
        "channel": bundle.channel_id,
        "consensus": bundle.consensus_type,
        "brokers": list(bundle.brokers),
        "batch_timeout_s": bundle.batch_timeout_s,
        "max_message_count": size.max_message_count,
        "absolute_max_bytes": size.absolute_max_bytes,
        "preferred_max_bytes": size.preferred_max_bytes,
        "organisations": sorted(bundle.msps),
    }
    ctx.emit(Record([Column(key) for key in told], told))


@frame.command(name="channel", example="twinlog order channel trades")
@click.argument("name")
@timeout_option(default_s=60.0, help="Seconds until every orderer has it.")
def channel(ctx: frame.Context, name: str, timeout: float) -> None:
    """Create a channel of the clients' organisation, and wait until every orderer that runs has it."""
    from twinlog.ordering import callers, fleet
    from twinlog.ordering.statuses import NAMES, SERVICE_UNAVAILABLE, SUCCESS

    found = fleet.Fleet(home_of(ctx))
    recorded = found.recorded()
    update = fleet.creation(found, name)
    running = [one for one in recorded.members if found.background(one).find() is not None]
    if not running:
        raise SiteError("no orderer runs", hint="twinlog order up")
    end, pause = time.monotonic() + timeout, Event()
    targets = [found.target(one, recorded) for one in running]
    turn = 0
    while True:  # the service may still be starting: any orderer that takes it will do
        answers = callers.broadcast(targets[turn % len(targets)], [update], timeout)
        status, info = answers[0] if answers else (SERVICE_UNAVAILABLE, "no answer")
        if status != SERVICE_UNAVAILABLE or time.monotonic() > end:
            break
        turn += 1
        pause.wait(AGAIN_S)
    if status != SUCCESS:
        raise SiteError(f"the channel was not created: {NAMES.get(status, status)}, {info}", where=name)
    for target in targets:
        while not _has(target, name, found.client(), end):
            if time.monotonic() > end:
                raise SiteError(f"{target.address} does not have channel {name}", hint="twinlog order status")
            pause.wait(AGAIN_S)
    found.add_channel(name)
    ctx.emit(Record([Column("channel"), Column("orderers")], {"channel": name, "orderers": len(targets)}))


# A channel that has not reached the log yet refuses this request, as it would refuse messages.
def _has(target: object, name: str, signer: object, end: float) -> bool:
    from twinlog.ordering import callers

    assert isinstance(target, callers.Target)
    timeout_s = max(1.0, end - time.monotonic())
    request = callers.seek(name, callers.span(0, 0, strict=True), signer, target.certificate_hash)  # type: ignore[arg-type]
    return any(not isinstance(found, int) for found in callers.deliver(target, request, timeout_s))


@frame.command(
    name="crypto",
    example="twinlog order crypto identities --organisation Org1 --client alice --orderer orderer.example",
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--organisation", metavar="MSPID", default="SampleOrg", show_default=True)
@click.option("--client", "clients", metavar="NAME", multiple=True, help="Who writes and reads.")
@click.option("--orderer", "orderers", metavar="HOST", multiple=True, help="An orderer, by its host name.")
def crypto(
    ctx: frame.Context,
    directory: Path,
    organisation: str,
    clients: tuple[str, ...],
    orderers: tuple[str, ...],
) -> None:
    """Write an organisation's MSP directories, with keys, to try the ordering service out."""
    from twinlog.ordering.crypto import write_organisation

    hosts = {name: (name, "localhost", "127.0.0.1") for name in orderers}
    write_organisation(directory, organisation, orderers=hosts, clients=clients)
    told = {"directory": str(directory / organisation), "members": ["admin", *clients, *orderers]}
    ctx.emit(Record([Column("directory"), Column("members")], told))


COMMANDS = (genesis, channel, crypto)
