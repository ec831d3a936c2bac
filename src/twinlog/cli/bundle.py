"""`twinlog bundle`: one directory to run one node on another machine."""

from __future__ import annotations

from pathlib import Path

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Record


@frame.command(
    example="""
    twinlog bundle a 2
    twinlog bundle a 901 --directory out/controller --root /opt/twinlog --with-jars
    """
)
@click.argument("site")
@click.argument("broker", type=int)
@click.option("--directory", type=click.Path(path_type=Path), help="Where to write it: ./bundle-SITE-BROKER.")
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    help="Where it will lie on the other machine; if left out, it can lie anywhere and be moved.",
)
@click.option("--with-jars", is_flag=True, help="Copy Kafka's jars into it.")
def command(
    ctx: frame.Context, site: str, broker: int, directory: Path | None, root: Path | None, with_jars: bool
) -> None:
    """Write one directory to run one node, a broker or controller by its id, on another machine.

    The file calls such nodes `remote: true`, and `up` and `down` leave them alone. The directory
    holds configuration, keys, a start script that formats the node's disks on its first start, a
    systemd unit and a README. Called again, it writes what has changed, renewed certificates for one.
    """
    from twinlog.sites import bundle, local

    home = home_of(ctx)
    home.chosen(site)
    target = (directory or Path(f"bundle-{site}-{broker}")).absolute()
    kafka = local.ensure_kafka(ctx.progress, home.bus.kafka_version_of(site), with_archive=False)
    with home.state_file.locked("bundle"):
        made = bundle.write(home, site, broker, target, kafka, ctx.progress, root=root, with_jars=with_jars)
    shown = {
        "node": made.node.name,
        "directory": target,
        "machine": made.node.advertise,
        "start": str((root or target) / bundle.START),
        "jars": made.with_jars,
    }
    ctx.emit(Record([Column(name) for name in shown], shown))
