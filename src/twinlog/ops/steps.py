"""The steps between the file and the world: what each one is, in data and in one sentence.

Made by `plan`, shown by `twinlog plan`, taken by `apply`. A step that loses records, or takes a
way in from somebody, is destructive and taken only when the user said so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from twinlog.wire.access import Mechanism
from twinlog.wire.acls import Acl
from twinlog.wire.quotas import Limit
from twinlog.wire.roles import Standing
from twinlog.wire.topics import NewTopic


@dataclass(frozen=True)
class Step:
    """Base of all steps."""

    kind: ClassVar[str] = "site"  # what it is about, in a word
    site: str

    @property
    def destructive(self) -> bool:
        """True if something is lost by it, so that the user must say so."""
        return False

    @property
    def is_final(self) -> bool:
        """True if it cannot be taken back, whether or not something is lost."""
        return self.destructive

    @property
    def what(self) -> str:
        """The step as a sentence without its site."""
        raise NotImplementedError


@dataclass(frozen=True)
class Start(Step):
    """Nodes that do not run are started, new ones formatted first."""

    nodes: tuple[str, ...]

    @property
    def what(self) -> str:
        return f"start {', '.join(self.nodes)}"


@dataclass(frozen=True)
class Restart(Step):
    """A running node was configured otherwise than the file says now."""

    kind: ClassVar[str] = "node"
    node: int
    name: str
    changed: Mapping[str, tuple[str | None, str | None]] = field(hash=False)

    @property
    def what(self) -> str:
        changes = ", ".join(
            f"{name} {_shown(old)} → {_shown(new)}" for name, (old, new) in self.changed.items()
        )
        return f"restart {self.name}: {changes}"


@dataclass(frozen=True)
class Unknown(Step):
    """The rest of a site cannot be compared before it runs."""

    why: str

    @property
    def what(self) -> str:
        return f"topics, users and rights are not known: {self.why}"


@dataclass(frozen=True)
class Impossible(Step):
    """What the file wants and `apply` cannot do."""

    kind: ClassVar[str] = "cannot"
    subject: str
    problem: str
    hint: str = ""

    @property
    def what(self) -> str:
        return f"{self.subject}: {self.problem}"


@dataclass(frozen=True)
class RaiseLevel(Step):
    """All nodes of a site run a version of Kafka whose metadata could do more than the site's does."""

    kind: ClassVar[str] = "version"
    before: int
    level: int
    version: str

    @property
    def destructive(self) -> bool:
        return True

    @property
    def what(self) -> str:
        levels = f"from level {self.before} to {self.level}"
        return f"raise the metadata {levels}, which takes Kafka {self.version} to read"


@dataclass(frozen=True)
class SetCluster(Step):
    """Settings that a whole site shares and its controllers keep."""

    kind: ClassVar[str] = "setting"
    values: Mapping[str, str] = field(hash=False)

    @property
    def what(self) -> str:
        return "set " + ", ".join(f"{name}={value}" for name, value in self.values.items())


@dataclass(frozen=True)
class CreateTopic(Step):
    """A declared topic does not exist."""

    kind: ClassVar[str] = "topic"
    topic: NewTopic

    @property
    def what(self) -> str:
        topic = self.topic
        return f"create {topic.name}: {topic.partitions} partitions, {topic.replication} copies"


@dataclass(frozen=True)
class WidenTopic(Step):
    """A topic has fewer partitions than declared."""

    kind: ClassVar[str] = "topic"
    name: str
    before: int
    total: int

    @property
    def is_final(self) -> bool:
        return True  # Kafka never takes a partition away

    @property
    def what(self) -> str:
        return f"widen {self.name} from {self.before} to {self.total} partitions (keys move to other ones)"


@dataclass(frozen=True)
class SetTopic(Step):
    """A topic's settings differ."""

    kind: ClassVar[str] = "topic"
    name: str
    values: Mapping[str, str] = field(hash=False)
    unset: tuple[str, ...]
    before: Mapping[str, str] = field(hash=False)
    loses_records: bool = False

    @property
    def destructive(self) -> bool:
        return self.loses_records

    @property
    def what(self) -> str:
        changes = [f"{name} {_shown(self.before.get(name))} → {value}" for name, value in self.values.items()]
        changes += [f"{name} {_shown(self.before.get(name))} → default" for name in self.unset]
        return f"change {self.name}: {', '.join(changes)}"


@dataclass(frozen=True)
class DeleteTopic(Step):
    """A topic is there that the file does not have, and the user asked to prune."""

    kind: ClassVar[str] = "topic"
    name: str

    @property
    def destructive(self) -> bool:
        return True

    @property
    def what(self) -> str:
        return f"delete {self.name} with all its records"


@dataclass(frozen=True)
class SetPassword(Step):
    """A user has no password at the site yet, or another one."""

    kind: ClassVar[str] = "user"
    user: str
    mechanism: Mechanism
    why: str
    is_new: bool = False  # Twinlog has none for this user yet and invents one
    is_foreign: bool = False  # somebody else gave it the one that it has, and may log in with it

    @property
    def destructive(self) -> bool:
        return self.is_foreign

    @property
    def what(self) -> str:
        doing = "invent and set a password for" if self.is_new else "set the password of"
        return f"{doing} {self.user} ({self.mechanism}): {self.why}"


@dataclass(frozen=True)
class RemovePassword(Step):
    """Somebody can log in who is not, or not so, in the file."""

    kind: ClassVar[str] = "user"
    user: str
    mechanism: Mechanism
    why: str

    @property
    def destructive(self) -> bool:
        return True

    @property
    def what(self) -> str:
        return f"remove the password of {self.user} ({self.mechanism}): {self.why}"


@dataclass(frozen=True)
class Grant(Step):
    """A user lacks rights that the file gives."""

    kind: ClassVar[str] = "rights"
    principal: str
    rules: frozenset[Acl]

    @property
    def what(self) -> str:
        return f"let {self.principal} {_rules(self.rules)}"


@dataclass(frozen=True)
class Revoke(Step):
    """A user has rights that the file does not give. Narrowing loses no record: not destructive."""

    kind: ClassVar[str] = "rights"
    principal: str
    rules: frozenset[Acl]

    @property
    def what(self) -> str:
        return f"no longer let {self.principal} {_rules(self.rules)}"


@dataclass(frozen=True)
class SetRole(Step):
    """The site's role record is not there, or says something else."""

    kind: ClassVar[str] = "role"
    standing: Standing
    before: Standing | None

    @property
    def destructive(self) -> bool:
        """True if another bus relies on the record that would be replaced."""
        return self.before is not None and self.before.bus != self.standing.bus

    @property
    def what(self) -> str:
        before = f" (it says {self.before})" if self.before else ""
        return f"say that it is the {self.standing}{before}"


@dataclass(frozen=True)
class SetQuota(Step):
    """A user's limits differ."""

    kind: ClassVar[str] = "quota"
    user: str
    values: Mapping[Limit, float] = field(hash=False)
    unset: tuple[Limit, ...]

    @property
    def what(self) -> str:
        changes = [f"{limit}={value:g}" for limit, value in self.values.items()]
        changes += [f"{limit} unlimited" for limit in self.unset]
        return f"limit {self.user}: {', '.join(changes)}"


def _rules(rules: frozenset[Acl]) -> str:
    texts = []
    for rule in sorted(rules):
        star = "*" if rule.prefixed else ""
        texts.append(f"{rule.operation.name.lower()} {rule.resource.name.lower()} {rule.name}{star}")
    return ", ".join(texts)


def _shown(value: str | None) -> str:
    return "default" if value is None else value
