"""Rules for users: what they may do, and how they prove who they are. Pure."""

from __future__ import annotations

from twinlog.spec.document import Path
from twinlog.spec.finding import Finding, Findings, warning
from twinlog.spec.model import Auth, Bus, User
from twinlog.spec.patterns import matches
from twinlog.spec.wording import nearest

RESERVED_PREFIXES = ("standby.", "twinlog-")
# Kafka calls a client without a name ANONYMOUS; a certificate that is not a user's becomes nobody.
RESERVED_USERS = ("anonymous", "nobody")


def of_user(bus: Bus, name: str) -> Findings:
    """What can be said of a user without looking at topics."""
    user, path = bus.users[name], ("users", name)
    if name.lower() in RESERVED_USERS:
        what = f"{name} is what Kafka calls clients that are no user"
        yield Finding(path, what, "choose another name", at_key=True)
    if not (user.produce or user.consume):
        yield warning(path, f"{name} may do nothing", "add produce: or consume:", at_key=True)
    if user.consume and not user.groups:
        what = f"{name} may read but has no group to read in"
        yield warning((*path, "consume"), what, f"add groups: [{name}-*], unless it needs none")
    for field, patterns in (("groups", user.groups), ("transactions", user.transactions)):
        for index, pattern in enumerate(patterns):
            if pattern.startswith(RESERVED_PREFIXES):
                prefix = next(prefix for prefix in RESERVED_PREFIXES if pattern.startswith(prefix))
                what = f"names with {prefix} in front are kept for Twinlog"
                yield Finding((*path, field, index), what, "choose another name")
    yield from _password(user, path)
    for field, rate in (("produce", user.quota.produce), ("consume", user.quota.consume)):
        if rate == 0:
            yield Finding(
                (*path, "quota", field), "a quota of 0 lets nothing through", "leave it out for no limit"
            )


def _password(user: User, path: Path) -> Findings:
    if user.password is None:
        return
    here = (*path, "password")
    if user.auth is Auth.MTLS:
        what = "a user with auth: mtls has a certificate and no password"
        yield Finding(here, what, "remove password, or use auth: scram", at_key=True)
    given = [name for name in (user.password.file, user.password.env) if name is not None]
    if len(given) != 1:
        what = "a password comes from one place" if given else "where does the password come from?"
        yield Finding(here, what, "password: {file: shop.password} or {env: SHOP_PASSWORD}", at_key=True)
    elif not given[0].strip():
        yield Finding(here, "where does the password come from?", "name the file or the variable")


def topics(bus: Bus, name: str) -> Findings:
    """The topics that a user names exist."""
    user = bus.users[name]
    for field, patterns in (("produce", user.produce), ("consume", user.consume)):
        for index, pattern in enumerate(patterns):
            if any(matches(pattern, topic) for topic in bus.topics):
                continue
            path = ("users", name, field, index)
            if pattern.endswith("*"):
                yield warning(path, f"{pattern} matches no topic", "is the prefix right?")
            else:
                near = nearest(pattern, bus.topics)
                hint = f"did you mean {near}?" if near else f"declare {pattern} under topics:"
                yield Finding(path, f"there is no topic {pattern}", hint)
