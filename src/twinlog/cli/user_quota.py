"""`twinlog user quota`: limits of users and client ids, at all sites unless one is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of, site_option
from twinlog.cli.output import Column, Table
from twinlog.cli.reach import file_differs
from twinlog.cli.user_changes import change_each, each_site, each_timeout
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from twinlog.wire.cluster import Cluster
    from twinlog.wire.quotas import Limit, Owner

# Written out, because the module that defines them is too heavy for `--help`; a test compares them.
LIMITS = ["produce", "consume", "request", "mutation"]


@frame.command(
    name="quota",
    example="""
    twinlog user quota
    twinlog user quota shop --produce 5MB/s --request 50
    twinlog user quota --client-id importer --consume 1MB/s
    twinlog user quota --default-user --produce 10MB/s
    twinlog user quota shop --unset produce
    """,
)
@click.argument("name", required=False)
@click.option("--default-user", is_flag=True, help="For every user that has no quota of its own.")
@click.option("--client-id", metavar="ID", help="For clients that call themselves so.")
@click.option("--default-client-id", is_flag=True, help="For every client id that has no quota of its own.")
@click.option("--produce", metavar="RATE", help="What may be sent, as in 5MB/s, to each broker.")
@click.option("--consume", metavar="RATE", help="What may be fetched, as in 5MB/s, from each broker.")
@click.option(
    "--request", type=click.FloatRange(min=0, min_open=True), help="Per cent of one thread of each broker."
)
@click.option(
    "--mutation", type=click.FloatRange(min=0, min_open=True), help="Partitions made or deleted a second."
)
@click.option("--unset", multiple=True, type=click.Choice(LIMITS), help="Take a limit away; may be repeated.")
@site_option
@each_timeout
def quota(
    ctx: frame.Context,
    name: str | None,
    default_user: bool,
    client_id: str | None,
    default_client_id: bool,
    produce: str | None,
    consume: str | None,
    request: float | None,
    mutation: float | None,
    unset: tuple[str, ...],
    site: str | None,
    timeout: float,
) -> None:
    """Show quotas, or set those of a user, of a client id, of both together, or the defaults."""
    from twinlog.ops import granting
    from twinlog.wire import quotas

    owner = _owner(name, default_user, client_id, default_client_id)
    values = _limits(produce, consume, request, mutation)
    gone = [_limit(one) for one in unset]
    if (values or gone) and owner == quotas.Owner():
        raise UsageError("say whose quota", hint="twinlog user quota shop --produce 5MB/s")
    home = home_of(ctx)
    found: list[granting.QuotaRow] = []
    columns = [Column("site"), Column("user"), Column("client_id"), Column("limits", show=_shown)]
    if not values and not gone:
        for where, cluster in each_site(home, site, timeout):
            told = quotas.describe(cluster)
            chosen = told if owner == quotas.Owner() else {one: told[one] for one in told if one == owner}
            found += granting.quota_rows(where, chosen)
        ctx.emit(Table(columns, found, empty="no quotas"))
        return

    def change(where: str, cluster: Cluster) -> None:
        now = granting.set_quota(cluster, owner, values, gone)
        found.extend(granting.quota_rows(where, {owner: now}))

    changed = change_each(home, site, timeout, change)
    file_differs(ctx, home, "users", "the file does not say this of quotas")
    ctx.emit(Table(columns, found, empty="no quotas"))
    changed.insist_on_all(ctx)


def _owner(name: str | None, default_user: bool, client_id: str | None, default_client_id: bool) -> Owner:
    from twinlog.wire.quotas import DEFAULT, Owner

    if (name is not None and default_user) or (client_id is not None and default_client_id):
        raise UsageError(
            "a default is for those that are not named", hint="leave the name or the default out"
        )
    return Owner(DEFAULT if default_user else name, DEFAULT if default_client_id else client_id)


def _limits(
    produce: str | None, consume: str | None, request: float | None, mutation: float | None
) -> dict[Limit, float]:
    from twinlog.spec.units import UnitError, parse_rate
    from twinlog.wire.quotas import Limit

    try:
        rates = {Limit.PRODUCE: produce, Limit.CONSUME: consume}
        found = {limit: float(parse_rate(text)) for limit, text in rates.items() if text is not None}
    except UnitError as error:
        raise UsageError(error.what, hint=error.hint) from None
    counts = {Limit.REQUEST: request, Limit.MUTATION: mutation}
    return found | {limit: count for limit, count in counts.items() if count is not None}


def _limit(name: str) -> Limit:
    from twinlog.wire.quotas import Limit

    return Limit[name.upper()]


def _shown(limits: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.12g}" for name, value in limits.items())
