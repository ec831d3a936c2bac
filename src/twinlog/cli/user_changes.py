"""What changes users at sites directly: `user add`, `grant`, `revoke`, `quota`; and `user rights`.

The commands are added to their family by `user`. Each works at all sites of the bus unless one is
named, and prints the line for the file: without it the next apply takes the change back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of, site_option, timeout_option
from twinlog.cli.output import Column, Record, Table
from twinlog.cli.reach import TIMEOUT_S, file_differs
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlog.sites.home import Home
    from twinlog.spec.model import User
    from twinlog.wire.cluster import Cluster
    from twinlog.wire.quotas import Limit, Owner

# Written out, because the modules that define them are too heavy for `--help`; a test compares them.
AUTHS = ["scram", "scram-sha-256", "mtls"]
LIMITS = ["produce", "consume", "request", "mutation"]
UNDONE = "the file does not say this: the next apply takes it back"
_timeout = timeout_option(default_s=TIMEOUT_S, help="Seconds until each site must have answered.")


def _patterns(body: Callable[..., None]) -> Callable[..., None]:
    helps = {
        "transaction": "A transactional id that it may use, or a prefix with *.",
        "group": "A group that it may read in.",
        "consume": "A topic that it may read.",
        "produce": "A topic that it may write to.",
    }
    for option, help_text in helps.items():
        body = click.option(f"--{option}", multiple=True, metavar="NAME", help=help_text)(body)
    return body


@frame.command(
    name="add",
    example="twinlog user add billing --consume orders --group 'billing-*'",
)
@click.argument("name")
@click.option("--auth", type=click.Choice(AUTHS), default="scram", show_default=True)
@_patterns
@site_option
@_timeout
def add(
    ctx: frame.Context,
    name: str,
    auth: str,
    produce: tuple[str, ...],
    consume: tuple[str, ...],
    group: tuple[str, ...],
    transaction: tuple[str, ...],
    site: str | None,
    timeout: float,
) -> None:
    """Make a user at all sites, with a password that is invented and kept with the bus.

    Better is a line in the file and `twinlog apply`. This command prints that line; without it
    there, no client file can be printed for the user.
    """
    from twinlog.ops import granting

    home = home_of(ctx)
    user = _user(auth, produce, consume, group, transaction)
    _check_name(name)
    if name in home.bus.users:
        raise UsageError(f"the file has user '{name}' already", where=str(home.file), hint="twinlog apply")
    done = []
    with home.state_file.locked("user add"):
        for where, cluster in _sites(home, site, timeout):
            granting.give_password(home, cluster, name, user)
            granting.grant(cluster, granting.given(home, where, name, user))
            done.append(where)
    file_differs(ctx, home, "users", UNDONE, _line(name, user))
    ctx.emit(
        Record([Column("user"), Column("auth"), Column("sites")], {"user": name, "auth": auth, "sites": done})
    )


@frame.command(name="grant", example="twinlog user grant billing --consume invoices")
@click.argument("name")
@_patterns
@site_option
@_timeout
def grant(
    ctx: frame.Context,
    name: str,
    produce: tuple[str, ...],
    consume: tuple[str, ...],
    group: tuple[str, ...],
    transaction: tuple[str, ...],
    site: str | None,
    timeout: float,
) -> None:
    """Let a user do more, at all sites at once."""
    _change(ctx, name, _some(ctx, produce, consume, group, transaction), (site, timeout), gives=True)


@frame.command(name="revoke", example="twinlog user revoke billing --consume invoices")
@click.argument("name")
@_patterns
@site_option
@_timeout
def revoke(
    ctx: frame.Context,
    name: str,
    produce: tuple[str, ...],
    consume: tuple[str, ...],
    group: tuple[str, ...],
    transaction: tuple[str, ...],
    site: str | None,
    timeout: float,
) -> None:
    """Let a user do less, at all sites at once; connections that are open lose the right too."""
    _change(ctx, name, _some(ctx, produce, consume, group, transaction), (site, timeout), gives=False)


@frame.command(
    name="rights",
    example="""
    twinlog user rights shop
    twinlog user rights --topic orders
    """,
)
@click.argument("name", required=False)
@click.option("--topic", help="Only rules that are about this topic.")
@site_option
@_timeout
def rights(ctx: frame.Context, name: str | None, topic: str | None, site: str | None, timeout: float) -> None:
    """List what sites let users do (their ACLs): of all users, of one, or about one topic."""
    from twinlog.ops import granting
    from twinlog.wire import acls

    found = []
    for where, cluster in _sites(home_of(ctx), site, timeout):
        found += granting.rows(where, granting.about(acls.describe(cluster), user=name, topic=topic))
    keys = ("site", "principal", "allow", "operation", "resource", "name", "host")
    ctx.emit(Table([Column(key) for key in keys], found, empty="no rules"))


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
@_timeout
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
    found = []
    for where, cluster in _sites(home, site, timeout):
        if values or gone:
            now = granting.set_quota(cluster, owner, values, gone)
            found += granting.quota_rows(where, {owner: now})
        else:
            told = quotas.describe(cluster)
            chosen = told if owner == quotas.Owner() else {one: told[one] for one in told if one == owner}
            found += granting.quota_rows(where, chosen)
    if values or gone:
        file_differs(ctx, home, "users", "the file does not say this of quotas")
    columns = [Column("site"), Column("user"), Column("client_id"), Column("limits", show=_shown)]
    ctx.emit(Table(columns, found, empty="no quotas"))


def _change(
    ctx: frame.Context, name: str, wanted: User, where: tuple[str | None, float], *, gives: bool
) -> None:
    from twinlog.ops import granting
    from twinlog.wire import acls

    home = home_of(ctx)
    _check_name(name)
    rows = []
    for site, cluster in _sites(home, *where):
        if gives:
            rules = granting.given(home, site, name, wanted)
            granting.grant(cluster, rules)
        else:
            rules = granting.taken(home.bus, name, wanted, acls.describe(cluster))
            granting.revoke(cluster, rules)
        rows += granting.rows(site, rules)
    file_differs(ctx, home, "users", UNDONE, _line(name, wanted) if gives else "")
    keys = ("site", "principal", "operation", "resource", "name")
    ctx.emit(Table([Column(key) for key in keys], rows, empty="no such rule was there"))


def _check_name(name: str) -> None:
    from twinlog.spec.model import USER_NAME

    if re.fullmatch(USER_NAME, name) is None:
        raise UsageError(
            f"'{name}' is no name of a user", hint="letters, digits, dots, dashes and underscores, at most 64"
        )


def _sites(home: Home, site: str | None, timeout: float) -> Iterator[tuple[str, Cluster]]:
    from twinlog.wire.cluster import Cluster, Patience

    patience = Patience(connect_s=min(5.0, timeout), request_s=min(15.0, timeout), total_s=max(0.1, timeout))
    for name in home.chosen(site):
        with Cluster(home.admin_access(name), patience=patience, client_id="twinlog-cli") as cluster:
            yield name, cluster


def _user(auth: str, produce: Any, consume: Any, groups: Any, transactions: Any) -> User:
    from pydantic import ValidationError

    from twinlog.spec.model import User

    try:
        return User.model_validate(
            {
                "auth": auth,
                "produce": produce,
                "consume": consume,
                "groups": groups,
                "transactions": transactions,
            }
        )
    except ValidationError as error:
        given = error.errors()[0]["input"]
        raise UsageError(
            f"'{given}' is no name and no prefix", hint="a name, or a prefix with *, or *"
        ) from None


def _some(ctx: frame.Context, produce: Any, consume: Any, groups: Any, transactions: Any) -> User:
    if not (produce or consume or groups or transactions):
        raise UsageError("say which right", hint=f"{ctx.command_path} NAME --consume TOPIC")
    return _user("scram", produce, consume, groups, transactions)


def _line(name: str, user: User) -> str:
    from twinlog.ops.lines import user_line

    fields = user.model_dump(mode="json", exclude_defaults=True)
    return user_line(name, fields)


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
