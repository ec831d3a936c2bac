"""`twinlog host check`: this host beside what sites far apart need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Table
from twinlog.errors import Findings, UsageError

if TYPE_CHECKING:
    from twinlog.ops.host_tuning import Compared

command = frame.group("host", "Compare this host with what sites far apart need.")
LOCAL = "127.0.0.1"


@frame.command(
    parent=command,
    example="""
    twinlog host check
    twinlog host check --to broker-1.site-b.example --write 90-kafka.conf
    """,
)
@click.option(
    "--to", "hosts", multiple=True, metavar="HOST", help="A host of the other site; by default of the file's."
)
@click.option(
    "--write",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write what differs as a file for /etc/sysctl.d.",
)
def check(ctx: frame.Context, hosts: tuple[str, ...], write: Path | None) -> None:
    """Compare kernel settings, interfaces and limits of files with what sites far apart need.

    Nothing is changed: every line has the command that would. Exit code 3: something is less or other.
    """
    from twinlog.ops import host_tuning
    from twinlog.sites import host

    compared = host_tuning.compare_sysctls(host.sysctl)
    found = {one.name: one for name in hosts or _hosts(ctx) for one in host.interfaces_towards(name)}
    for one in found.values():
        compared += host_tuning.compare_interface(one.name, one.mtu_bytes, one.queue_length)
    compared += host_tuning.compare_limits(host.limits())
    if write is not None:
        from twinlog.durable import write_text

        try:
            write_text(write, host_tuning.sysctl_file(compared))
        except OSError as error:
            raise UsageError(
                f"the file cannot be written: {error.strerror}", where=str(write), hint="--write FILE"
            ) from error
    columns = [Column("kind"), Column("key"), Column("here"), Column("wanted"), Column("verdict")]
    ctx.emit(Table([*columns, Column("command")], compared))
    _conclude(compared, write)


def _conclude(compared: list[Compared], write: Path | None) -> None:
    from twinlog.ops.host_tuning import Verdict

    found = [one for one in compared if one.verdict in (Verdict.BELOW, Verdict.DIFFERS)]
    if found:
        raise Findings(
            f"{len(found)} of {len(compared)} values are not what sites far apart need",
            hint=f"sysctl -p {write}" if write is not None else "twinlog host check --write 90-kafka.conf",
        )


def _hosts(ctx: frame.Context) -> list[str]:
    """Hosts of the file's sites; the loopback where they listen everywhere and name no address."""
    from twinlog.wire.addresses import HostPort

    try:
        bus = frame.load_bus(ctx).bus
    except UsageError:
        return []  # no file: the kernel can be looked at all the same
    found: list[str] = []
    for site in bus.sites.values():
        found += [HostPort.parse(address).host for address in site.bootstrap]
        if not site.exists_already:
            found.append(site.advertise or site.listen)
    return [host for host in dict.fromkeys(found) if host not in ("0.0.0.0", "::")] or [LOCAL]
