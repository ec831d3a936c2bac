"""Takes the steps of a plan, one after the other, so that the world becomes what the file says.

Called by `twinlog apply` and, after the nodes are up, by `twinlog up`. Every step may be taken
twice; a command killed in between plans again and takes the rest. Rights are waited for until
every broker has them, because a client may come to any.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from twinlog.errors import SiteError, UsageError
from twinlog.ops import steps
from twinlog.ops.plan import plan
from twinlog.ops.world import observe
from twinlog.progress import Progress
from twinlog.sites import local, rolling
from twinlog.sites.home import Home
from twinlog.spec.model import Role
from twinlog.wire import acls, configs, quorum, quotas, roles, topics, users
from twinlog.wire.cluster import Cluster


def plan_all(home: Home, names: Sequence[str], *, prune: bool = False) -> list[steps.Step]:
    """The steps for these sites; nothing is written, and no password invented, to find them."""
    fingerprints = {
        name: known
        for name, user in home.bus.users.items()
        if user.auth.value != "mtls"
        and (known := home.passwords.known_fingerprint(name, user.password)) is not None
    }
    term = home.remembered().term
    found: list[steps.Step] = []
    for name in names:
        found += plan(home.bus, home.role(name), observe(home, name), fingerprints, term=term, prune=prune)
    return found


def apply_all(
    home: Home, names: Sequence[str], progress: Progress, *, yes: bool, prune: bool = False
) -> list[steps.Step]:
    """Make these sites what the file says; returns the steps that were taken."""
    planned = plan_all(home, names, prune=prune)
    refuse_impossible(planned)
    # A raise of the metadata may wait for as long as the old version may have to come back.
    at_once = [step for step in planned if not isinstance(step, steps.RaiseLevel)]
    _refuse_destructive([step for step in at_once if step.destructive and not yes])
    starting = sorted({step.site for step in planned if isinstance(step, steps.Start)})
    taken: list[steps.Step] = [step for step in planned if isinstance(step, steps.Start)]
    if starting:
        local.up(home, starting, progress)
        # A new broker changes what its neighbours are told: how many copies Kafka's own topics have.
        planned = plan_all(home, names, prune=prune)
    # The standby first: what is wrong with a new setting, or a new Kafka, shows where no client is.
    for name in sorted(names, key=lambda name: home.role(name) is Role.ACTIVE):
        restarts = [step for step in planned if isinstance(step, steps.Restart) and step.site == name]
        if restarts:
            rolling.roll(home, name, [step.node for step in restarts], progress)
            taken += restarts
    return taken + settle(home, names, progress, yes=yes, prune=prune)


def settle(
    home: Home, names: Sequence[str], progress: Progress, *, yes: bool, prune: bool = False
) -> list[steps.Step]:
    """Topics, users, rights, quotas and the role of running sites; what is destructive only with `yes`."""
    taken: list[steps.Step] = []
    for name in names:
        contents = _contents(home, name, prune)
        due = [step for step in contents if yes or not step.destructive]
        for step in contents:
            if step not in due:
                progress.note(f"site {name}: left alone without --yes: {step.what}")
        if due:
            task = f"site {name}: applying {len(due)} change{'' if len(due) == 1 else 's'}"
            progress.begin(task, total=len(due))
            with Cluster(home.admin_access(name)) as cluster:
                for number, step in enumerate(due):
                    if isinstance(step, steps.SetRole):
                        _wait_for_rights(due[:number], cluster)  # a role is true when it is written
                    take(step, cluster, home)
                    progress.advance(task)
                _wait_for_rights(due, cluster)
                # Brokers hear of a change a little after the controller has it.
                cluster.wait_until(lambda: _still_due(home, name, prune, yes), f"settling site {name}")  # noqa: B023
            progress.end(task)
        taken += due
    return taken


def _contents(home: Home, name: str, prune: bool) -> list[steps.Step]:
    contents = [step for step in plan_all(home, [name], prune=prune) if not isinstance(step, _OF_NODES)]
    refuse_impossible(contents)
    for step in contents:
        if isinstance(step, steps.Unknown):
            raise SiteError(f"site {name} cannot be read: {step.why}", hint=f"twinlog status --site {name}")
    return contents


def _still_due(home: Home, name: str, prune: bool, yes: bool) -> str:
    left = [step.what for step in _contents(home, name, prune) if yes or not step.destructive]
    return left[0] if left else ""


_OF_NODES = (steps.Start, steps.Restart)


def refuse_impossible(planned: Sequence[steps.Step]) -> None:
    """Stop before anything is done if the file wants what cannot be done."""
    wrong = [step for step in planned if isinstance(step, steps.Impossible)]
    if wrong:
        listed = "; ".join(f"site {step.site}, {step.what}" for step in wrong)
        raise UsageError(f"the file wants what cannot be done: {listed}", hint=wrong[0].hint)


def _refuse_destructive(planned: Sequence[steps.Step]) -> None:
    if planned:
        listed = "; ".join(f"site {step.site}: {step.what}" for step in planned)
        raise UsageError(
            f"nothing was done, because this cannot be taken back: {listed}", hint="twinlog apply --yes"
        )


def _wait_for_rights(taken: Sequence[steps.Step], cluster: Cluster) -> None:
    present = [rule for step in taken if isinstance(step, steps.Grant) for rule in step.rules]
    absent = [rule for step in taken if isinstance(step, steps.Revoke) for rule in step.rules]
    if present or absent:
        acls.wait_until_everywhere(cluster, present=present, absent=absent)


@singledispatch
def take(step: steps.Step, cluster: Cluster, home: Home) -> None:
    """Take one step."""
    raise AssertionError(f"no way to take {type(step).__name__}")


@take.register
def _(step: steps.RaiseLevel, cluster: Cluster, home: Home) -> None:
    quorum.raise_feature(cluster, quorum.METADATA_VERSION, step.level)


@take.register
def _(step: steps.SetCluster, cluster: Cluster, home: Home) -> None:
    configs.alter(cluster, configs.Kind.BROKER, configs.EVERY_BROKER, values=step.values)


@take.register
def _(step: steps.CreateTopic, cluster: Cluster, home: Home) -> None:
    topics.create(cluster, step.topic)


@take.register
def _(step: steps.WidenTopic, cluster: Cluster, home: Home) -> None:
    topics.add_partitions(cluster, step.name, step.total)


@take.register
def _(step: steps.SetTopic, cluster: Cluster, home: Home) -> None:
    configs.alter(cluster, configs.Kind.TOPIC, step.name, values=step.values, unset=step.unset)


@take.register
def _(step: steps.DeleteTopic, cluster: Cluster, home: Home) -> None:
    topics.delete(cluster, step.name)


@take.register
def _(step: steps.SetPassword, cluster: Cluster, home: Home) -> None:
    given = home.bus.users[step.user].password
    users.upsert(cluster, step.user, home.passwords.password_of(step.user, given), step.mechanism)
    state = home.remembered()
    state.applied.setdefault(step.site, {})[step.user] = home.passwords.fingerprint(step.user, given)
    home.state_file.write(state)


@take.register
def _(step: steps.RemovePassword, cluster: Cluster, home: Home) -> None:
    users.delete(cluster, step.user, step.mechanism)


@take.register
def _(step: steps.Grant, cluster: Cluster, home: Home) -> None:
    acls.add(cluster, step.rules)


@take.register
def _(step: steps.Revoke, cluster: Cluster, home: Home) -> None:
    acls.remove(cluster, step.rules)


@take.register
def _(step: steps.SetRole, cluster: Cluster, home: Home) -> None:
    roles.write(cluster, step.standing)


@take.register
def _(step: steps.SetQuota, cluster: Cluster, home: Home) -> None:
    quotas.alter(cluster, quotas.Owner(user=step.user), values=step.values, unset=step.unset)
