"""`twinlog user`: who may use the bus, and their passwords."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame, user_changes, user_quota
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Record, Table
from twinlog.errors import Findings, TwinlogError, UsageError

if TYPE_CHECKING:
    from twinlog.sites.home import Home
    from twinlog.spec.model import User

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
def list_users(ctx: frame.Context) -> None:
    """List the users of the file, and the sites that have their present password.

    A user with a certificate needs nothing at a site; its rights are those of `twinlog plan`.
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
        }
        for name, user in home.bus.users.items()
    ]
    columns = [Column("user"), Column("auth"), Column("produce"), Column("consume"), Column("groups")]
    columns += [Column("quota", show=_limits), Column("applied", "at sites")]
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


def _limits(value: Any) -> str:
    return ", ".join(f"{name} {limit}" for name, limit in value.items())


def _names(value: Any) -> str:
    return ", ".join(value)
