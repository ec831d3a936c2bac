"""`twinlog user`: who may use the bus, and their passwords."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame, user_changes, user_quota
from twinlog.cli.buses import home_of, timeout_option
from twinlog.cli.output import Column, Record, Table, plain
from twinlog.errors import Findings, Problem, TwinlogError, UsageError

if TYPE_CHECKING:
    from twinlog.ops.strangers import Known, Stranger
    from twinlog.sites.home import Home
    from twinlog.spec.model import User
    from twinlog.wire.access import Access

LIST_TIMEOUT_S = 2.0

command = frame.group("user", "Users: passwords, rights and quotas.")
for _change in (
    user_changes.add,
    user_changes.grant,
    user_changes.revoke,
    user_changes.rights,
    user_quota.quota,
):
    command.add_command(_change)


@frame.command(parent=command, name="list", example="twinlog user list -o json")
@timeout_option(default_s=LIST_TIMEOUT_S, help="Seconds until sites must have said who else they know.")
def list_users(ctx: frame.Context, timeout: float) -> None:
    """List the users of the file, the sites that have their present password, and who else sites know.

    A user with a certificate needs nothing at a site; its rights are those of `twinlog plan`. One that is
    not in the file was made at sites directly: at sites that Twinlog runs, `twinlog apply` takes it away.
    """
    from twinlog.spec.written import written

    home = home_of(ctx)
    state = home.state_file.read()
    applied = state.applied if state is not None else {}
    rows = [
        {
            "user": name,
            "auth": user.auth,
            "produce": user.produce,
            "consume": user.consume,
            "create": user.create,
            "groups": user.groups,
            "transactions": user.transactions,
            "quota": written(user.quota),
            "applied": _applied(home, name, user, applied),
            "in_file": True,
        }
        for name, user in home.bus.users.items()
    ]
    rows += [_row(found) for found in _strangers(ctx, home, timeout)]
    columns = [Column("user"), Column("auth"), Column("produce"), Column("consume"), Column("groups")]
    columns += [Column("quota", show=_limits), Column("applied", "at sites"), Column("in_file")]
    ctx.emit(Table(columns, rows, empty="the file declares no users"))


@frame.command(parent=command, name="show-password", example="twinlog user show-password shop")
@click.argument("user")
def show_password(ctx: frame.Context, user: str) -> None:
    """Print the password of USER and nothing else; no other command shows one."""
    home = home_of(ctx)
    with_password(home, user)
    password = home.password(user)
    ctx.write(password + "\n", as_json={"user": user, "password": password})


@frame.command(parent=command, name="rotate", example="twinlog user rotate shop")
@click.argument("user")
def rotate(ctx: frame.Context, user: str) -> None:
    """Give USER a new password at every site.

    The old one is refused from then on; connections that are open stay open. Hand out new client
    files afterwards. A site that cannot be reached keeps the old password until `twinlog apply`.
    """
    from twinlog.ops import apply

    home = home_of(ctx)
    declared = with_password(home, user)
    done: list[str] = []
    left: dict[str, str] = {}
    with home.state_file.locked("user rotate"):
        home.passwords.rotate(user, declared.password)
        for site in home.bus.sites:
            try:
                apply.settle(home, [site], ctx.progress, yes=False)
                done.append(site)
            except TwinlogError as error:
                left[site] = str(error)
    value = {"user": user, "sites": done, "left": left}
    columns = [Column("user"), Column("sites", "new password at"), Column("left", "old password at", _names)]
    ctx.emit(Record(columns, value))
    if left:
        listed = "; ".join(f"site {site}: {why}" for site, why in left.items())
        raise Findings(
            f"user {user} has a new password, and not every site knows it yet: {listed}", hint="twinlog apply"
        )


def with_password(home: Home, user: str) -> User:
    """A user of the file that has a password."""
    declared = home.declared_user(user)
    if declared.auth.value == "mtls":
        raise UsageError(
            f"user {user} has a certificate and no password",
            where=str(home.file),
            hint=f"twinlog client {user}",
        )
    return declared


def _applied(home: Home, name: str, user: User, applied: dict[str, dict[str, str]]) -> list[str] | None:
    given = {site: users[name] for site, users in applied.items() if name in users}
    if user.auth.value == "mtls" or not given:
        return []
    try:
        present = home.passwords.fingerprint(name, user.password)
    except UsageError:  # given by a file or a variable that is not there for this command
        return None
    return [site for site, fingerprint in given.items() if fingerprint == present]


def _strangers(ctx: frame.Context, home: Home, timeout: float) -> list[Stranger]:
    """Who sites know beside the file's users; a site that does not say is named in a warning."""
    from twinlog.ops import strangers

    # Sites of our own that were never brought up are not there to be asked.
    never_up = home.state_file.read() is None
    sites = [name for name, site in home.bus.sites.items() if site.exists_already or not never_up]
    told: dict[str, strangers.Known] = {}
    for site, answer in _asked(home, sites, timeout).items():
        if isinstance(answer, strangers.Known):
            told[site] = answer
            continue
        what = f"site {site} does not say which users it knows beside those of the file: {answer}"
        problem = Problem(0, 0, what, hint=answer.hint, path="users", severity="warning")
        ctx.warn(problem, str(home.file))
    return strangers.strangers(home.bus.users, told)


def _asked(home: Home, sites: list[str], timeout: float) -> dict[str, Known | TwinlogError]:
    """What each site says, or why it does not; all at once, so that one that is down costs no more."""
    from concurrent.futures import ThreadPoolExecutor

    from twinlog.ops import strangers

    def ask(access: Access) -> Known | TwinlogError:
        try:
            with user_changes.reached_site(access, timeout) as cluster:
                return strangers.ask(cluster)
        except TwinlogError as error:
            return error

    answers: dict[str, Known | TwinlogError] = {}
    accesses: dict[str, Access] = {}
    for site in sites:
        try:
            accesses[site] = home.admin_access(site)  # not in the threads: it may renew a certificate
        except TwinlogError as error:
            answers[site] = error
    with ThreadPoolExecutor() as pool:
        return answers | dict(zip(accesses, pool.map(ask, accesses.values()), strict=True))


def _row(found: Stranger) -> dict[str, Any]:
    # What quotas it has is another question to every site: `twinlog user quota NAME`.
    own = {item.name: getattr(found, item.name) for item in fields(found) if item.name != "sites"}
    return {**own, "quota": None, "applied": found.sites, "in_file": False}


def _limits(value: Any) -> str:
    if value is None:
        return plain(value)
    return ", ".join(f"{name} {limit}" for name, limit in value.items())


def _names(value: Any) -> str:
    return ", ".join(value)
