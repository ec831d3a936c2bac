"""From the options of the perf commands to a cluster: one that the command line names, or a site of the bus.

The options are those of Kafka's own tools, so a cluster is named by addresses and properties of a
client. Where neither is given the command measures the bus: `--site` and `--user` as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.reach import chosen_site
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from twinlog.wire.access import Access
    from twinlog.wire.clientfiles.tuning import Role, Tuning
    from twinlog.wire.driver import Settings

Body = TypeVar("Body", bound=Callable[..., None])
ADDRESSES = "bootstrap.servers"


@dataclass(frozen=True)
class Target:
    """A cluster to measure, and the properties that its clients were given."""

    where: str
    access: Access
    properties: dict[str, str]
    tuning: Tuning

    def base(self, role: Role) -> Settings:
        """What every client of this cluster has: its access, and what the cluster allows."""
        from twinlog.wire.driver import usual

        return usual(self.access, self.tuning, role)


def client_options(config_name: str) -> Callable[[Body], Body]:
    """`--bootstrap-server`, properties and their file, `--site` and `--user`."""
    options = [
        click.option("--bootstrap-server", metavar="HOST:PORT", help="The cluster, if it is not the bus."),
        click.option(
            "--command-config",
            config_name,
            "config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Properties of the client, in a file.",
        ),
        click.option("--site", metavar="NAME", help="The site of the bus; by default the active one."),
        click.option("--user", metavar="NAME", help="Act as this user of the file, not as administrator."),
    ]

    def decorate(body: Body) -> Body:
        for option in reversed(options):
            body = option(body)
        return body

    return decorate


def target(
    ctx: frame.Context,
    *,
    bootstrap: str | None,
    config: Path | None,
    pairs: tuple[str, ...],
    site: str | None,
    user: str | None,
) -> Target:
    """The cluster of this call."""
    from twinlog.perf.properties import given
    from twinlog.wire.clientfiles.read import read_client_file, read_client_properties
    from twinlog.wire.clientfiles.tuning import Tuning

    properties = _consistent(given(pairs) | ({ADDRESSES: bootstrap} if bootstrap is not None else {}))
    named_here = ADDRESSES in properties
    if config is None and not named_here:
        return _of_bus(ctx, properties, site, user)
    if site is not None or user is not None:
        raise UsageError(
            "the cluster is named twice: by its addresses, and as a site of the bus",
            hint="leave --site and --user out, or --bootstrap-server and --command-config",
        )
    found = read_client_file(config, properties) if config is not None else read_client_properties(properties)
    if not found.access.bootstrap:
        raise UsageError(
            "the cluster's addresses are missing",
            where=str(config or ""),
            hint="--bootstrap-server HOST:PORT",
        )
    for problem in found.warnings:
        ctx.warn(problem, str(config or "properties"))
    return Target(",".join(found.access.bootstrap), found.access, found.extra, Tuning())


def _consistent(properties: dict[str, str]) -> dict[str, str]:
    """Properties of a command line, with what follows from them for those of a client file.

    Files that `twinlog client` prints ask for idempotence, which needs every replica's answer: who asks for
    less on the command line means that.
    """
    weaker = properties.get("acks", "all") not in ("all", "-1")
    return ({"enable.idempotence": "false"} if weaker else {}) | properties


def _of_bus(ctx: frame.Context, properties: dict[str, str], site: str | None, user: str | None) -> Target:
    from twinlog.spec.effective import largest_message_bytes
    from twinlog.wire.clientfiles.tuning import Tuning

    home = home_of(ctx)
    name = chosen_site(home, site)
    access = home.admin_access(name) if user is None else home.user_access(user, name)
    return Target(f"site {name}", access, properties, Tuning(largest_message_bytes(home.bus, name)))
