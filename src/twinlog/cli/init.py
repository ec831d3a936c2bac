"""`twinlog init`: a commented file to start from."""

from __future__ import annotations

import re
from pathlib import Path

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Record
from twinlog.durable import write_text
from twinlog.errors import UsageError

FILE_NAME = "twinlog.yaml"  # as in spec.file, which would take longer to import than this to run
LONGEST_NAME = 40


def bus_name(text: str) -> str:
    """The nearest text that can be the name of a bus; a name that can stays as it is."""
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:LONGEST_NAME].strip("-") or "bus"


@frame.command(
    example="""
    twinlog init
    twinlog init orders -f orders/twinlog.yaml
    """,
    confirms=True,
)
@click.argument("bus", required=False)
def command(ctx: frame.Context, bus: str | None) -> None:
    """Write a commented twinlog.yaml to start from.

    BUS is the name of the bus; the directory's name is taken where it is left out.
    """
    from twinlog.spec.template import starter

    file = (ctx.file or Path(FILE_NAME)).absolute()
    name = bus if bus is not None else bus_name(file.parent.name)
    if name != bus_name(name):
        raise UsageError(f"{name!r} cannot be the name of a bus", hint=f"{ctx.command_path} {bus_name(name)}")
    if file.exists():
        ctx.need_yes("the file is there already and would be overwritten", where=str(file))
    if not file.parent.is_dir():
        raise UsageError(
            "the directory does not exist", where=str(file.parent), hint=f"mkdir -p {file.parent}"
        )
    write_text(file, starter(name))
    ctx.emit(Record([Column("bus"), Column("file")], {"bus": name, "file": file}))
