"""`twinlog drill`: scripted disasters on a bus of their own, and what survived."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Table
from twinlog.errors import Findings

command = frame.group("drill", "Break a bus on purpose, and see what survives.")


@frame.command(parent=command, name="list", example="twinlog drill list")
def list_(ctx: frame.Context) -> None:
    """List the scenarios."""
    from twinlog.drills.scenarios import SCENARIOS

    rows = [
        {"name": one.name, "says": one.says, "promises": len(one.promises), "seconds": one.seconds}
        for one in SCENARIOS.values()
    ]
    ctx.emit(Table([Column("name"), Column("says", "what happens")], rows))


@frame.command(
    parent=command,
    name="run",
    example="""
    twinlog drill run switchover-and-back --times 3
    twinlog drill run site-dies --promote automatic --report report.html
    twinlog drill run random --seed 7 --seconds 600
    """,
)
@click.argument("name")
@click.option("--seed", type=int, help="What decides where chance does; by default a new one.")
@click.option(
    "--seconds", type=click.FloatRange(min=1), metavar="S", help="How long the load runs beside the moves."
)
@click.option(
    "--rate",
    type=click.FloatRange(min=1, max=10_000),
    default=30.0,
    show_default=True,
    help="Records a second of each writer.",
)
@click.option("--times", type=click.IntRange(min=1), default=1, show_default=True, help="Repeat the moves.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the HTML report goes; by default beside the history.",
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("drills"),
    show_default=True,
    help="Where the drill has its own directory.",
)
@click.option(
    "--promote",
    type=click.Choice(["ask", "automatic"]),
    default="ask",
    show_default=True,
    help="Who promotes the standby: the drill, as a person would, or two of three voters.",
)
@click.option(
    "--brokers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Brokers of each site; by default as few as show the thing.",
)
@click.option("--keep", is_flag=True, help="Do not delete the bus of a drill that passed.")
def run(
    ctx: frame.Context,
    name: str,
    seed: int | None,
    seconds: float | None,
    rate: float,
    times: int,
    report: Path | None,
    directory: Path,
    promote: str,
    brokers: int | None,
    keep: bool,
) -> None:
    """Run a scenario and judge it.

    It makes a bus of its own, as small as shows the thing, and takes it down at the end; the bus of the
    file is not touched. Real clients write and read meanwhile. Exit code 3 says that a promise was
    broken, or that the story did not come to its end; then the bus's directory stays, with all logs,
    beside the history.
    """
    from twinlog.drills import report as reports
    from twinlog.drills.running import Options, run
    from twinlog.drills.scenarios import scenario
    from twinlog.spec.model import Promote

    chosen = scenario(name) if brokers is None else scenario(name).with_brokers(brokers)
    options = Options(
        directory,
        secrets.randbelow(1_000_000) if seed is None else seed,
        seconds,
        rate,
        times,
        report,
        keep,
        Promote(promote),
    )
    ran = run(chosen, options, ctx.progress)
    verdict = ran.verdict
    told = f"\nreport: {ran.report}\njson: {ran.json_file}\nhistory: {ran.directory / 'history'}\n"
    ctx.write(reports.terminal(verdict) + told, as_json=ran.as_json())
    if not verdict.passed:
        broken = next(one for one in verdict.judged if not one.kept)
        promise = f"a promise was broken: {broken.says} ({broken.measured})"
        cut_short = f"the story did not come to its end: {verdict.cut_short}"
        raise Findings(
            cut_short if verdict.cut_short else promise,
            where=str(ran.directory),
            hint=f"twinlog drill run {name} --seed {options.seed}",
        )
