"""What `twinlog broker` changes: restarts, a lost disk, more brokers, fewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of, timeout_option
from twinlog.cli.output import Column, Record, Table
from twinlog.cli.rates import rate_option
from twinlog.cli.reach import chosen_site
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from twinlog.ops.replacement import Endangered

_site_option = click.option("--site", metavar="NAME", help="The site; by default the active one.")
RESYNC_TIMEOUT_S = 3600.0


@frame.command(
    name="roll",
    example="""
    twinlog broker roll
    twinlog broker roll 1 2 --site a
    """,
)
@click.argument("ids", nargs=-1, type=int)
@_site_option
@click.option("--anew", is_flag=True, help="Forget an unfinished restart and begin with the first node.")
@timeout_option(default_s=120.0, help="Seconds to wait for a healthy site before every restart.")
def roll(ctx: frame.Context, ids: tuple[int, ...], site: str | None, anew: bool, timeout: float) -> None:
    """Restart the nodes of a site one at a time: all, or those named.

    Brokers first, controllers then, the leading one last. A node is stopped only while every copy is in
    sync and no partition would fall below its minimum; if that does not come, the command stops with the
    reason. Killed, it goes on where it was when it is run again.
    """
    from twinlog.ops import rolls

    home = home_of(ctx, warn=True)
    name = chosen_site(home, site)
    with home.state_file.locked("broker roll"):
        rolled = rolls.roll(home, name, ids, ctx.progress, timeout_s=timeout, anew=anew)
    value = {"site": name, "restarted": rolled.restarted, "before": rolled.before}
    ctx.emit(Record([Column("site"), Column("restarted"), Column("before", "restarted before")], value))


@frame.command(
    name="replace",
    example="""
    twinlog broker replace 3 --disk-lost
    twinlog broker replace 3 --disk-lost --yes
    """,
    confirms=True,
)
@click.argument("number", metavar="ID", type=int)
@click.option("--disk-lost", is_flag=True, help="Say that its disk is lost for good.")
@timeout_option(default_s=RESYNC_TIMEOUT_S, help="Seconds until it must hold again what it lost.")
def replace(ctx: frame.Context, number: int, disk_lost: bool, timeout: float) -> None:
    """Give a node whose disk is lost an empty one, and wait until it is in sync again.

    For brokers and controllers. Refused while the old directory can be read. Without --yes it only lists
    the partitions whose one copy in sync was on that disk: of those, records are lost.
    """
    from twinlog.ops import replacement

    home = home_of(ctx, warn=True)
    site, _, node = replacement.find_node(home, number)
    if not disk_lost:
        raise UsageError(
            "only a node whose disk is lost is replaced; one that is merely down is started",
            where=node.name,
            hint=f"twinlog up --site {site}; else: twinlog broker replace {number} --disk-lost",
        )
    with home.state_file.locked("broker replace"):
        in_danger = replacement.survey(home, site, node, timeout_s=timeout)
        if not ctx.yes:
            ctx.emit(_danger(in_danger))
            ctx.need_yes(f"{node.name} would begin again with an empty disk", where=f"site {site}")
        replaced = replacement.replace(home, site, node, ctx.progress, timeout_s=timeout)
    columns = [Column("node"), Column("lost", "made anew"), Column("partitions", "partitions in sync")]
    ctx.emit(
        Record([*columns, Column("seconds")], replaced, "replaced"),
        _danger(replaced.endangered),
    )


def _danger(found: list[Endangered] | tuple[Endangered, ...]) -> Table:
    columns = [Column("topic"), Column("partition", right=True), Column("loses")]
    return Table(
        columns, found, "endangered", empty="every partition has another copy in sync: nothing is lost"
    )


@frame.command(
    name="add",
    example="""
    twinlog broker add
    twinlog broker add --site b --rate 50MB/s
    """,
)
@_site_option
@rate_option
def add(ctx: frame.Context, site: str | None, rate: int | None) -> None:
    """Start the brokers that the file has and the site has not, and move partitions onto them.

    First raise `brokers:` in the file. This is `apply`, then `move run`: new brokers alone hold nothing.
    """
    from twinlog.ops import resizing

    home = home_of(ctx, warn=True)
    name = chosen_site(home, site)
    with home.state_file.locked("broker add"):
        done = resizing.add(home, name, ctx.progress, rate_bytes=rate)
    value = {"site": name, "added": done.brokers, "partitions": done.partitions}
    ctx.emit(Record([Column("site"), Column("added"), Column("partitions", "partitions moved")], value))


@frame.command(
    name="remove",
    example="""
    twinlog broker remove --yes
    twinlog broker remove --site b --rate 50MB/s --yes
    """,
    confirms=True,
)
@_site_option
@rate_option
def remove(ctx: frame.Context, site: str | None, rate: int | None) -> None:
    """Move partitions off the brokers that the file no longer has, and delete those brokers.

    First lower `brokers:` in the file: the last ones go. No partition loses a copy; the disks of the
    removed brokers are deleted when nothing is on them any more.
    """
    from twinlog.ops import resizing

    home = home_of(ctx, warn=True)
    name = chosen_site(home, site)
    with home.state_file.locked("broker remove"):
        names = ", ".join(node.name for node in resizing.leaving(home, name))
        ctx.need_yes(f"{names} and their disks would be deleted, once their partitions are elsewhere")
        done = resizing.remove(home, name, ctx.progress, rate_bytes=rate)
    value = {"site": name, "removed": done.brokers, "partitions": done.partitions}
    ctx.emit(Record([Column("site"), Column("removed"), Column("partitions", "partitions moved")], value))
