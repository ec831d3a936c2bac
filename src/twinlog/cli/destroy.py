"""`twinlog destroy`: the sites and all that they held are deleted."""

from __future__ import annotations

from twinlog.cli import frame
from twinlog.cli.buses import dismiss_jobs, dismiss_orderers, home_as_it_is, site_option
from twinlog.cli.output import Column, Record


@frame.command(
    example="""
    twinlog destroy --yes
    twinlog destroy --site b --yes
    """,
    confirms=True,
)
@site_option
def command(ctx: frame.Context, site: str | None) -> None:
    """Stop the sites and delete their records, keys and passwords for good.

    With --site only that site's records go; keys and passwords stay with the bus. The file itself
    is never touched.
    """
    from twinlog.mirror import link
    from twinlog.sites import removal, supervisor
    from twinlog.traffic import staff

    home = home_as_it_is(ctx, site)
    if site is not None:
        home.chosen(site)
        home.must_run(site, "destroy")
    home.refuse_lost_state()  # its nodes may run, and have disks elsewhere
    state = home.state_file.read()
    names = [name for name in home.chosen(site) if state is not None and name in state.sites]
    deleted = []
    # Without a site there may still be keys and passwords, or what a killed command left.
    if names or (site is None and home.directory.exists()):
        removal.refuse_foreign(home.directory)  # before the lock, which leaves a mark
        records = f"every record of {', '.join(f'site {name}' for name in names)}"
        ctx.need_yes(
            f"this deletes {records if names else 'the keys and passwords of the bus'}",
            where=str(home.directory),
        )
        with home.state_file.locked("destroy"):
            if site is None:
                dismiss_orderers(home)
                dismiss_jobs(home)
                staff.dismiss(home)
                link.background(home).dismiss()
                supervisor.background(home).dismiss()
            deleted = removal.destroy(home, names, ctx.progress, whole=site is None)
    reached = [name for name in home.chosen(site) if name not in home.local_sites]
    columns = [Column("sites"), Column("deleted")]
    if reached:
        columns.append(Column("only_reached", "only reached, left alone"))
    ctx.emit(Record(columns, {"sites": names, "deleted": deleted, "only_reached": reached}))
