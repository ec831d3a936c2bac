"""From a command's options to one site: the options that all commands on Kafka share, and the way there.

`--site` is the active one unless named; `--user` lets a command act as a user of the file, with that
user's rights, instead of as the administrator; `--timeout` bounds everything that is asked, and writes
where it was given.
A change that the file does not know of is told with `file_differs`, with the line that belongs there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click
from click.core import ParameterSource

from twinlog.cli import frame
from twinlog.cli.buses import home_of, timeout_option
from twinlog.errors import Problem, UsageError

if TYPE_CHECKING:
    from twinlog.sites.home import Home
    from twinlog.wire.access import Access
    from twinlog.wire.acls import Operation
    from twinlog.wire.clientfiles.tuning import Tuning
    from twinlog.wire.cluster import Cluster
    from twinlog.wire.topics import TopicState

Body = TypeVar("Body", bound=Callable[..., None])
TIMEOUT_S = 10.0
SHORTEST_TIMEOUT_S = 0.1
WRITE_TIMEOUT_S = 30.0  # a record may have to wait for a new leader


@dataclass(frozen=True)
class Reached:
    """One site, and the connections to it."""

    home: Home
    site: str
    access: Access
    cluster: Cluster
    user: str | None = None  # the administrator, if nobody is named

    def topic(self, name: str, operation: Operation) -> TopicState:
        """A topic that is there, and with which the user of this call may do this."""
        from twinlog.ops import catalogue

        (found,) = catalogue.existing(self.cluster, [name])
        if self.user is not None:
            catalogue.insist(found, operation, self.user, f"site {self.site}")
        return found

    @property
    def is_standby(self) -> bool:
        """True if the site holds copies."""
        from twinlog.spec.model import Role

        return self.home.role(self.site) is Role.STANDBY

    @property
    def tuning(self) -> Tuning:
        """What the site allows, for clients that send and fetch records."""
        from twinlog.spec.effective import largest_message_bytes
        from twinlog.wire.clientfiles.tuning import Tuning

        return Tuning(message_max_bytes=largest_message_bytes(self.home.bus, self.site))


def site_options(body: Body) -> Body:
    """`--site`, `--user` and `--timeout`, for a command that calls `reached`."""
    with_timeout = timeout_option(default_s=TIMEOUT_S, help="Seconds until Kafka must have answered.")(body)
    with_user = click.option(
        "--user", metavar="NAME", help="Act as this user of the file, not as administrator."
    )(with_timeout)
    return click.option("--site", metavar="NAME", help="The site; by default the active one.")(with_user)


@contextmanager
def reached(ctx: frame.Context, site: str | None, user: str | None, timeout: float) -> Iterator[Reached]:
    """The site of this call, with a cluster that lives as long as the block."""
    from twinlog.wire.cluster import Cluster, Patience

    home = home_of(ctx)
    name = chosen_site(home, site)
    access = home.admin_access(name) if user is None else home.user_access(user, name)
    with Cluster(access, patience=Patience.within(timeout), client_id="twinlog-cli") as cluster:
        yield Reached(home, name, access, cluster, user)


def write_timeout_s(timeout: float) -> float:
    """How long a write of this call may take: `--timeout` if the user gave it, else 30 s."""
    if click.get_current_context().get_parameter_source("timeout") is ParameterSource.DEFAULT:
        return WRITE_TIMEOUT_S
    return max(SHORTEST_TIMEOUT_S, timeout)


def chosen_site(home: Home, site: str | None) -> str:
    """The named site, else the active one."""
    if site is not None:
        return home.chosen(site)[0]
    state = home.state_file.read()
    return state.active if state is not None else home.bus.active_site


def file_differs(ctx: frame.Context, home: Home, path: str, what: str, line: str = "") -> None:
    """Warn that a site now differs from the file, with the line to write there."""
    hint = f"put this under {path}: in the file:  {line}" if line else "twinlog plan"
    ctx.warn(Problem(0, 0, what, hint=hint, path=path, severity="warning"), str(home.file))


def refuse_copy(reach: Reached, topic: str, what: str) -> None:
    """Raise if a topic is a copy at this site: what is changed there differs from the original for ever."""
    from twinlog.mirror.following import Wanted

    if reach.is_standby and Wanted.of(reach.home.bus).means(topic):
        active = chosen_site(reach.home, None)
        raise UsageError(
            f"{what} at the standby, where topic '{topic}' is a copy",
            where=f"site {reach.site}",
            hint=f"do it at the active one: --site {active}",
        )
