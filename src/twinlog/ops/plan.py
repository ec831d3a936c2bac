"""The difference between file and world, as steps. Pure.

Called by `twinlog plan`, `apply` and `up`. On our own sites the file is the whole truth about
settings, users and rights, and what it does not have goes; topics that it does not have are only
named, because records hang on them, and go with `--prune`. On clusters that exist already only what
the file itself may have given is ever taken away: other people use them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twinlog.ops import steps, throttles
from twinlog.ops.rights import EVERYBODY, OWN_PRINCIPALS, rights
from twinlog.ops.world import VERSION, World
from twinlog.sites import levels
from twinlog.spec.effective import topic_settings
from twinlog.spec.model import Auth, Bus, Role, Topic
from twinlog.spec.roles import settings_in
from twinlog.wire.access import Mechanism
from twinlog.wire.acls import Acl
from twinlog.wire.quotas import Limit
from twinlog.wire.roles import Standing
from twinlog.wire.topics import NewTopic

MECHANISMS = {Auth.SCRAM: Mechanism.SCRAM_SHA_512, Auth.SCRAM_256: Mechanism.SCRAM_SHA_256}
SHRINKING = ("retention.ms", "retention.bytes")
KEEP_ALL = -1
OF_A_MOVE = set(throttles.COPIES)  # there while partitions move, and taken away by whoever moves them
_OTHER = {Role.ACTIVE: Role.STANDBY, Role.STANDBY: Role.ACTIVE}
SALVAGE_SUFFIX = ".salvage"  # topics with what only a lost site had


def plan(
    bus: Bus, role: Role, world: World, fingerprints: Mapping[str, str], *, term: int, prune: bool = False
) -> list[steps.Step]:
    """All steps for one site, in the order in which they are to be taken.

    `fingerprints` are those of the users' present passwords, without those that are still to be invented;
    `world.applied` has those of the passwords that the site was given.
    """
    wanted = Standing(bus.bus, world.site, role, term)
    return [
        *_nodes(bus, world),
        *([] if world.unreachable else _contents(bus, wanted, world, fingerprints, prune)),
    ]


def _nodes(bus: Bus, world: World) -> Iterator[steps.Step]:
    site = bus.sites[world.site]
    if not site.exists_already:
        yield from _declared_nodes(bus, world)
    if world.unreachable:
        yield steps.Unknown(world.site, world.unreachable)


def _declared_nodes(bus: Bus, world: World) -> Iterator[steps.Step]:
    site = bus.sites[world.site]
    known = [node for node in world.nodes if node.declared]
    new = len(site.broker_specs) + site.controllers - len(known)
    controllers = sum(1 for node in known if "controller" in node.name)
    if known and controllers != site.controllers:
        problem = f"the site was formatted with {controllers} and the file says {site.controllers}"
        yield steps.Impossible(world.site, "controllers", problem, f"controllers: {controllers}")
        new -= site.controllers - controllers
    version = bus.kafka_version_of(world.site)
    if world.level is not None and (problem := levels.problem(version, world.level)):
        yield steps.Impossible(world.site, VERSION, problem, levels.hint(world.level))
    for node in world.nodes:
        if not node.declared:
            problem = "the file no longer has it, and its partitions would have to move first"
            hint = f"twinlog broker remove --site {world.site} --yes"
            yield steps.Impossible(world.site, node.name, problem, hint)
    for node in known:
        for kept in node.keeps:
            problem = f"keeps {kept.what}, which was settled when it was formatted"
            yield steps.Impossible(world.site, node.name, problem, kept.hint)
    idle = [node.name for node in known if not node.running and not node.remote]
    if idle and not world.unreachable and not any(node.running or node.remote for node in known):
        idle = []  # a site that answers runs, although we see none of its processes
    names = (*idle, *([f"{new} new node{'' if new == 1 else 's'}"] if new > 0 else []))
    if names:
        yield steps.Start(world.site, names)
    for node in known:
        if node.changed:
            yield steps.Restart(world.site, node.id, node.name, node.changed)


def _contents(
    bus: Bus, wanted: Standing, world: World, fingerprints: Mapping[str, str], prune: bool
) -> Iterator[steps.Step]:
    ours, role = not bus.sites[world.site].exists_already, wanted.role
    if ours:
        yield from _level(bus, world)
        yield from _cluster_settings(world)
    yield from _topics(bus, role, world, ours, prune)
    yield from _passwords(bus, world, ours, fingerprints)
    # An active site says so before clients may write there, a standby when they may no more: who
    # reads "standby" can then be sure that only the mirror writes.
    if role is Role.ACTIVE:
        yield from _role(wanted, world)
    yield from _rights(bus, role, world, ours)
    if role is Role.STANDBY:
        yield from _role(wanted, world)
    yield from _quotas(bus, world, ours)


def _level(bus: Bus, world: World) -> Iterator[steps.Step]:
    """The end of an upgrade: when every node runs the new version, its metadata may be what that can."""
    version = bus.kafka_version_of(world.site)
    runs = all((node.running or node.remote) and VERSION not in node.changed for node in world.nodes)
    if runs and world.level is not None and world.level < levels.LEVELS[version]:
        yield steps.RaiseLevel(world.site, world.level, levels.LEVELS[version], version)


def _cluster_settings(world: World) -> Iterator[steps.Step]:
    wanted = {"min.insync.replicas": str(max(1, min(3, world.brokers) - 1))}
    if any(world.settings.get(name) != value for name, value in wanted.items()):
        yield steps.SetCluster(world.site, wanted)


def _topics(bus: Bus, role: Role, world: World, ours: bool, prune: bool) -> Iterator[steps.Step]:
    for name, topic in bus.topics.items():
        present = world.topics.get(name)
        declared = topic_settings(bus, topic, world.site) if ours else _given_settings(bus, topic, world)
        wanted = settings_in(role, topic, declared)
        if present is None:
            copies = topic.replication_on(world.brokers)
            new = NewTopic(name, topic.partitions, copies, configs=wanted)
            yield steps.CreateTopic(world.site, new)
            continue
        if topic.partitions > present.partitions:
            yield steps.WidenTopic(world.site, name, present.partitions, topic.partitions)
        elif topic.partitions < present.partitions:
            problem = f"has {present.partitions} partitions and Kafka cannot take any away"
            yield steps.Impossible(world.site, f"topic {name}", problem, f"partitions: {present.partitions}")
        copies = topic.replication_on(world.brokers)
        if copies != present.replication:
            problem = f"has {present.replication} copies and the file says {copies}"
            hint = f"replication: {present.replication}"
            yield steps.Impossible(world.site, f"topic {name}", problem, hint)
        # A role that changes brings its own retention along: that is no decision of the file's.
        other = settings_in(_OTHER[role], topic, declared)
        changes_role = all(present.settings.get(key) == value for key, value in other.items())
        yield from _settings(world.site, name, wanted, present.settings, ours, changes_role)
    if prune and ours:
        for name in sorted(set(world.topics) - set(bus.topics)):
            yield steps.DeleteTopic(world.site, name)


def _given_settings(bus: Bus, topic: Topic, world: World) -> dict[str, str]:
    settings = topic_settings(bus, topic, world.site)
    settings["min.insync.replicas"] = str(topic.min_insync_on(world.brokers))
    return settings


def _settings(
    site: str,
    name: str,
    wanted: Mapping[str, str],
    present: Mapping[str, str],
    ours: bool,
    changes_role: bool,
) -> Iterator[steps.Step]:
    values = {key: value for key, value in wanted.items() if present.get(key) != value}
    unset = tuple(sorted(set(present) - set(wanted) - OF_A_MOVE)) if ours else ()
    if values or unset:
        loses = not changes_role and loses_records(values, unset, present)
        yield steps.SetTopic(site, name, values, unset, dict(present), loses)


def loses_records(values: Mapping[str, str], unset: tuple[str, ...], present: Mapping[str, str]) -> bool:
    """True if the change lets Kafka delete records that it would have kept."""
    for key in SHRINKING:
        before = present.get(key)
        after = values.get(key, None if key in unset else before)
        if before != after and _is_shorter(before, after):
            return True
    before_policy = present.get("cleanup.policy", "delete")
    after_policy = values.get("cleanup.policy", before_policy)
    return set(after_policy.split(",")) - set(before_policy.split(",")) != set()


def _is_shorter(before: str | None, after: str | None) -> bool:
    # Without a value of its own a topic follows the brokers' default, which is finite for time.
    if after is None:
        return before is not None
    if int(after) == KEEP_ALL:
        return False
    return before is None or int(before) == KEEP_ALL or int(after) < int(before)


def _passwords(bus: Bus, world: World, ours: bool, fingerprints: Mapping[str, str]) -> Iterator[steps.Step]:
    if world.credentials is None:
        return
    present = {(found.user, found.mechanism) for found in world.credentials}
    wanted = {(name, MECHANISMS[user.auth]) for name, user in bus.users.items() if user.auth in MECHANISMS}
    for user, mechanism in sorted(wanted):
        is_new = user not in fingerprints
        if (user, mechanism) not in present:
            yield steps.SetPassword(world.site, user, mechanism, "it has none there", is_new)
        elif not ours and user not in world.applied:
            why = "it has one there that Twinlog did not set"
            yield steps.SetPassword(world.site, user, mechanism, why, is_new, is_foreign=True)
        elif is_new or world.applied.get(user) != fingerprints[user]:
            yield steps.SetPassword(world.site, user, mechanism, "it was changed", is_new)
    if ours:
        for user, mechanism in sorted(present - wanted):
            why = "the file has no such user" if user not in bus.users else "the file gives it another way in"
            yield steps.RemovePassword(world.site, user, mechanism, why)


def _rights(bus: Bus, role: Role, world: World, ours: bool) -> Iterator[steps.Step]:
    if world.rules is None:
        return
    wanted = rights(bus, role)
    missing, extra = wanted - world.rules, world.rules - wanted
    extra = frozenset(
        rule for rule in extra if not rule.principal.startswith(OWN_PRINCIPALS) and not _keeps_salvage(rule)
    )
    if not ours:
        # What no role of the site would give, somebody else gave.
        extra &= rights(bus, Role.ACTIVE) | rights(bus, Role.STANDBY)
    for who in sorted({rule.principal for rule in missing}):
        yield steps.Grant(world.site, who, frozenset(rule for rule in missing if rule.principal == who))
    for who in sorted({rule.principal for rule in extra}):
        yield steps.Revoke(world.site, who, frozenset(rule for rule in extra if rule.principal == who))


def _keeps_salvage(rule: Acl) -> bool:
    """True for the rule that keeps every user, whatever the file lets it read, from salvaged records."""
    return not rule.allow and rule.principal == EVERYBODY and rule.name.endswith(SALVAGE_SUFFIX)


def _role(wanted: Standing, world: World) -> Iterator[steps.Step]:
    if world.standing != wanted:
        yield steps.SetRole(world.site, wanted, world.standing)


def _quotas(bus: Bus, world: World, ours: bool) -> Iterator[steps.Step]:
    if world.quotas is None:
        return
    for name, user in bus.users.items():
        limits = {
            Limit.PRODUCE: user.quota.produce,
            Limit.CONSUME: user.quota.consume,
            Limit.REQUEST: user.quota.request,
        }
        wanted = {limit: float(value) for limit, value in limits.items() if value is not None}
        present = world.quotas.get(name, {})
        values = {limit: value for limit, value in wanted.items() if present.get(limit) != value}
        unset = tuple(sorted(set(present) - set(wanted))) if ours else ()
        if values or unset:
            yield steps.SetQuota(world.site, name, values, unset)
    if ours:
        for name in sorted(set(world.quotas) - set(bus.users)):
            yield steps.SetQuota(world.site, name, {}, tuple(sorted(world.quotas[name])))
