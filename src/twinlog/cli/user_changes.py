"""What changes users at sites directly: `user add`, `grant`, `revoke`; and `user rights`.

The commands are added to their family by `user`. Each works at all sites of the bus unless one is
named, and prints the line for the file: without it the next apply takes the change back.
A site that cannot be changed keeps no other from it: what was done and what is left are both said.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of, site_option, timeout_option
from twinlog.cli.output import Column, Record, Table
from twinlog.cli.reach import TIMEOUT_S, file_differs
from twinlog.errors import SiteError, TwinlogError, UsageError

if TYPE_CHECKING:
    from twinlog.sites.home import Home
    from twinlog.spec.model import User
    from twinlog.wire.access import Access
    from twinlog.wire.cluster import Cluster

# Written out, because the module that defines them is too heavy for `--help`; a test compares them.
AUTHS = ["scram", "scram-sha-256", "mtls"]
UNDONE = "the file does not say this: the next apply takes it back"
each_timeout = timeout_option(default_s=TIMEOUT_S, help="Seconds until each site must have answered.")


class Patterns(NamedTuple):
    """What a user is to be let do, or no longer, as it was typed."""

    produce: tuple[str, ...]
    consume: tuple[str, ...]
    groups: tuple[str, ...]
    transactions: tuple[str, ...]

    def user(self, auth: str = "scram") -> User:
        """A user who may do this."""
        from pydantic import ValidationError

        from twinlog.spec.model import User
        from twinlog.spec.typed import validated

        try:
            return validated(User, {"auth": auth, **self._asdict()})
        except ValidationError as error:
            given = error.errors()[0]["input"]
            raise UsageError(
                f"'{given}' is no name and no prefix", hint="a name, or a prefix with *, or *"
            ) from None


def _patterns(body: Callable[..., None]) -> Callable[..., None]:
    """The options that name topics, groups and transactional ids, handed over together."""
    helps = {
        "transaction": "A transactional id that it may use, or a prefix with *.",
        "group": "A group that it may read in.",
        "consume": "A topic that it may read.",
        "produce": "A topic that it may write to.",
    }

    @functools.wraps(body)
    def call(*args: Any, **own: Any) -> None:
        patterns = Patterns(*(own.pop(name) for name in reversed(helps)))
        body(*args, patterns=patterns, **own)

    for option, help_text in helps.items():
        call = click.option(f"--{option}", multiple=True, metavar="NAME", help=help_text)(call)
    return call


@frame.command(
    name="add",
    example="twinlog user add billing --consume orders --group 'billing-*'",
)
@click.argument("name")
@click.option("--auth", type=click.Choice(AUTHS), default="scram", show_default=True)
@_patterns
@site_option
@each_timeout
def add(
    ctx: frame.Context,
    name: str,
    auth: str,
    patterns: Patterns,
    site: str | None,
    timeout: float,
) -> None:
    """Make a user at all sites, with a password that is invented and kept with the bus.

    Better is a line in the file and `twinlog apply`. This command prints that line; without it
    there, no client file can be printed for the user.
    """
    from twinlog.ops import granting

    home = home_of(ctx)
    user = patterns.user(auth)
    _check_name(name)
    if name in home.bus.users:
        raise UsageError(f"the file has user '{name}' already", where=str(home.file), hint="twinlog apply")

    def make(where: str, cluster: Cluster) -> None:
        granting.give_password(home, cluster, name, user)
        granting.grant(cluster, granting.given(home, where, name, user))

    with home.state_file.locked("user add"):
        changed = change_each(home, site, timeout, make)
    file_differs(ctx, home, "users", UNDONE, _line(name, user))
    value = {"user": name, "auth": auth, "sites": changed.done, "left": changed.reasons}
    columns = [Column("user"), Column("auth"), Column("sites"), Column("left", "not at", ", ".join)]
    ctx.emit(Record(columns, value))
    changed.insist_on_all(ctx)


@frame.command(name="grant", example="twinlog user grant billing --consume invoices")
@click.argument("name")
@_patterns
@site_option
@each_timeout
def grant(
    ctx: frame.Context,
    name: str,
    patterns: Patterns,
    site: str | None,
    timeout: float,
) -> None:
    """Let a user do more, at all sites at once."""
    _change(ctx, name, patterns, (site, timeout), gives=True)


@frame.command(name="revoke", example="twinlog user revoke billing --consume invoices")
@click.argument("name")
@_patterns
@site_option
@each_timeout
def revoke(
    ctx: frame.Context,
    name: str,
    patterns: Patterns,
    site: str | None,
    timeout: float,
) -> None:
    """Let a user do less, at all sites at once; connections that are open lose the right too."""
    _change(ctx, name, patterns, (site, timeout), gives=False)


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
@each_timeout
def rights(ctx: frame.Context, name: str | None, topic: str | None, site: str | None, timeout: float) -> None:
    """List what sites let users do (their ACLs): of all users, of one, or about one topic."""
    from twinlog.ops import granting
    from twinlog.wire import acls

    found = []
    for where, cluster in each_site(home_of(ctx), site, timeout):
        found += granting.rows(where, granting.about(acls.describe(cluster), user=name, topic=topic))
    keys = ("site", "principal", "allow", "operation", "resource", "name", "host")
    ctx.emit(Table([Column(key) for key in keys], found, empty="no rules"))


def _change(
    ctx: frame.Context, name: str, patterns: Patterns, where: tuple[str | None, float], *, gives: bool
) -> None:
    from twinlog.ops import granting
    from twinlog.wire import acls

    if not any(patterns):
        raise UsageError("say which right", hint=f"{ctx.command_path} NAME --consume TOPIC")
    wanted = patterns.user()
    home = home_of(ctx)
    _check_name(name)
    rows: list[granting.RuleRow] = []

    def change(site: str, cluster: Cluster) -> None:
        if gives:
            rules = granting.given(home, site, name, wanted)
            granting.grant(cluster, rules)
        else:
            rules = granting.taken(home.bus, name, wanted, acls.describe(cluster))
            granting.revoke(cluster, rules)
        rows.extend(granting.rows(site, rules))

    changed = change_each(home, *where, change)
    file_differs(ctx, home, "users", UNDONE, _line(name, wanted) if gives else "")
    keys = ("site", "principal", "operation", "resource", "name")
    ctx.emit(Table([Column(key) for key in keys], rows, empty="no such rule was there"))
    changed.insist_on_all(ctx)


def _check_name(name: str) -> None:
    from twinlog.spec.model import USER_NAME

    if re.fullmatch(USER_NAME, name) is None:
        raise UsageError(
            f"'{name}' is no name of a user", hint="letters, digits, dots, dashes and underscores, at most 64"
        )


class Changed(NamedTuple):
    """At which sites a change was made, and why nobody can say so of the others."""

    done: list[str]
    left: dict[str, TwinlogError]

    @property
    def reasons(self) -> dict[str, str]:
        """Why it is not known to be made, by site."""
        return {site: str(error) for site, error in self.left.items()}

    def insist_on_all(self, ctx: frame.Context) -> None:
        """Raise if a site is left, with the call that finishes the work."""
        if not self.left:
            return
        # Where it was done it may be done again: leaving those sites out only saves time.
        only = ["--site", *self.left] if len(self.left) == 1 and "--" not in ctx.words else []
        raise SiteError(
            f"done at {_sites(self.done)}, and not confirmed everywhere: {_listed(self.reasons)}",
            hint=f"twinlog {shlex.join([*ctx.words, *only])}",
        )


def change_each(
    home: Home, site: str | None, timeout: float, change: Callable[[str, Cluster], None]
) -> Changed:
    """Change all sites, or the named one; raises if none could be changed."""
    changed = Changed([], {})
    for name in home.chosen(site):
        try:
            with reached_site(home.admin_access(name), timeout) as cluster:
                change(name, cluster)
            changed.done.append(name)
        except TwinlogError as error:
            if isinstance(error, UsageError) and not changed.done:
                raise  # most often as wrong at every other site, and nothing was changed yet
            changed.left[name] = error
    if not changed.done:
        first = next(iter(changed.left.values()))
        if len(changed.left) == 1:
            raise first
        raise SiteError(f"no site has confirmed it: {_listed(changed.reasons)}", hint=first.hint)
    return changed


def each_site(home: Home, site: str | None, timeout: float) -> Iterator[tuple[str, Cluster]]:
    """All sites, or the named one, each with connections that are open until the next one's turn."""
    for name in home.chosen(site):
        with reached_site(home.admin_access(name), timeout) as cluster:
            yield name, cluster


@contextmanager
def reached_site(access: Access, timeout: float) -> Iterator[Cluster]:
    """A site, with connections that are open as long as the block."""
    from twinlog.wire.cluster import Cluster, Patience

    with Cluster(access, patience=Patience.within(timeout), client_id="twinlog-cli") as cluster:
        yield cluster


def _sites(names: list[str]) -> str:
    return f"site {names[0]}" if len(names) == 1 else f"sites {', '.join(names)}"


def _listed(reasons: dict[str, str]) -> str:
    return "; ".join(f"site {site}: {why}" for site, why in reasons.items())


def _line(name: str, user: User) -> str:
    from twinlog.ops.lines import user_line
    from twinlog.spec.written import written

    return user_line(name, written(user))
