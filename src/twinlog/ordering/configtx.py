"""Fabric's `configtx.yaml`: profiles of channels, with their organisations, policies and batch sizes.

Read by `genesis` for `twinlog order genesis` and channel creation. Keys are taken without regard to
capitals, an unknown one is a problem, and what is absent or zero gets Fabric's default. A variable such as
`CONFIGTX_ORDERER_BATCHSIZE_MAXMESSAGECOUNT` stands over the profile, for sections that it has. Paths are
seen from the file's directory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.alias_generators import to_pascal
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from twinlog.errors import FileProblems, Problem, UsageError
from twinlog.ordering.durations import parse_duration_ns

PREFIX: Final = "CONFIGTX"
_SIZE: Final = re.compile(r"\s*([0-9]+)\s*([kmg]?)b?\s*", re.IGNORECASE)
_FACTORS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_LEAVES: Final = (str, int, list[str])  # what a variable of the environment can hold
_TOP: Final = ("profiles", "organizations", "channel", "application", "orderer", "capabilities", "resources")
_HINT: Final = "does Fabric's configtxgen read it?"


def size_bytes(value: Any) -> int:
    """The bytes that `10 MB`, `512k` or a number stand for, counted in powers of 1024."""
    match = _SIZE.fullmatch(str(value))
    if match is None:
        raise ValueError(f"{value!r} is no size: write one as in 512 KB or 10 MB")
    size = int(match[1]) * _FACTORS[match[2].lower()]
    if size >= 2**32:
        raise ValueError(f"{value!r} is too large: less than 4 GB")
    return size


def _listed(value: Any) -> Any:
    """A list, or `[a, b]` of the environment."""
    if isinstance(value, str):
        return [item.strip() for item in value.strip("[] ").split(",") if item.strip()]
    return [] if value is None else value


def _from_directory(path: Path, info: ValidationInfo) -> Path:
    return info.context / path if isinstance(info.context, Path) else path


def _duration_ns(value: Any) -> int:
    return parse_duration_ns(str(value))


_Size = Annotated[int, BeforeValidator(size_bytes)]
_Texts = Annotated[list[str], BeforeValidator(_listed)]
_Flags = dict[str, bool]


class _Section(BaseModel):
    """A section of the file."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_pascal,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _know_keys(cls, data: Any) -> Any:
        """Bring keys to their own capitals, and drop what is absent or zero: a default holds instead."""
        if not isinstance(data, dict):
            return {} if data is None else data
        known = {str(each.alias).lower(): str(each.alias) for each in cls.model_fields.values()}
        named = {known.get(str(key).lower(), str(key)): value for key, value in data.items()}
        return {key: value for key, value in named.items() if value not in (None, "", 0) or value is False}


class Policy(_Section):
    """A policy in words."""

    type: str
    rule: str


class AnchorPeer(_Section):
    """A peer that other organisations' peers find first."""

    host: str
    port: int


class Organization(_Section):
    """An organisation and where its certificates lie."""

    name: str
    id: str = Field(alias="ID")
    msp_dir: Annotated[Path, AfterValidator(_from_directory)] = Field(alias="MSPDir")
    msp_type: str = Field("bccsp", alias="MSPType")
    policies: dict[str, Policy] = {}
    anchor_peers: list[AnchorPeer] = []
    orderer_endpoints: _Texts = []
    admin_principal: str = "Role.ADMIN"


_Organizations = Annotated[list[Organization], BeforeValidator(_listed)]


class BatchSize(_Section):
    """How much a block may hold."""

    max_message_count: int = Field(500, lt=2**32)
    absolute_max_bytes: _Size = 10 * 2**20
    preferred_max_bytes: _Size = 2 * 2**20


class Kafka(_Section):
    """The log."""

    brokers: _Texts = ["127.0.0.1:9092"]


class Orderer(_Section):
    """The ordering service of a channel."""

    orderer_type: str = "solo"
    addresses: _Texts = ["127.0.0.1:7050"]
    batch_timeout_ns: Annotated[int, BeforeValidator(_duration_ns)] = Field(2 * 10**9, alias="BatchTimeout")
    batch_size: BatchSize = BatchSize()
    kafka: Kafka = Kafka()
    etcd_raft: Any = None  # of another way to agree; the usual file has it
    organizations: _Organizations = []
    max_channels: int = 0
    capabilities: _Flags = {}
    policies: dict[str, Policy] = {}


class Application(_Section):
    """Those who use a channel."""

    organizations: _Organizations = []
    capabilities: _Flags = {}
    resources: Any = None
    policies: dict[str, Policy] = {}
    acls: dict[str, str] = Field({}, alias="ACLs")


class Consortium(_Section):
    """Organisations that may make channels together."""

    organizations: _Organizations = []


class Profile(_Section):
    """A channel to be."""

    consortium: str = ""
    application: Application | None = None
    orderer: Orderer | None = None
    consortiums: dict[str, Consortium] | None = None
    capabilities: _Flags = {}
    policies: dict[str, Policy] = {}


def load(file: Path, profile: str, env: Mapping[str, str]) -> Profile:
    """One profile of a file, under an environment."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the file of profiles: {error}", where=str(file)) from None
    return parse(text, file, profile, env)


def parse(text: str, file: Path, profile: str, env: Mapping[str, str]) -> Profile:
    """As `load`, for text that was read already."""
    try:
        content = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise UsageError(f"is not YAML: {error}", where=str(file), hint=_HINT) from None
    content = {str(key).lower(): value for key, value in content.items()} if isinstance(content, dict) else {}
    unknown = [Problem(0, 0, "is not known", path=key) for key in content if key not in _TOP]
    if unknown:
        raise FileProblems(str(file), unknown, hint=_HINT)
    profiles = content.get("profiles")
    if not isinstance(profiles, dict) or profile not in profiles:
        known = ", ".join(sorted(map(str, profiles))) if isinstance(profiles, dict) else "none at all"
        raise UsageError(
            f"the file has no profile {profile!r}", where=str(file), hint=f"one of these? {known}"
        )
    data = _under_environment(Profile, profiles[profile], env, PREFIX)
    try:
        return Profile.model_validate(data, context=file.absolute().parent)
    except ValidationError as error:
        problems = [
            Problem(0, 0, each["msg"].removeprefix("Value error, "), path=_path(profile, each["loc"]))
            for each in error.errors()
        ]
        raise FileProblems(str(file), problems, hint=_HINT) from None


def _under_environment(kind: type[_Section], data: Any, env: Mapping[str, str], prefix: str) -> Any:
    """The data of a section with what the environment says instead."""
    if not isinstance(data, dict):
        return data
    keys = {str(key).lower(): key for key in data}
    result = dict(data)
    for field in kind.model_fields.values():
        alias = str(field.alias)
        key = keys.get(alias.lower(), alias)
        name = f"{prefix}_{alias.upper()}"
        below = _section_in(field.annotation)
        if below is not None:
            result |= {key: _under_environment(below, data[key], env, name)} if key in data else {}
        elif name in env and field.annotation in _LEAVES:
            result[key] = env[name]
    return result


def _section_in(annotation: Any) -> type[_Section] | None:
    for each in (annotation, *get_args(annotation)):
        if isinstance(each, type) and not get_args(each) and issubclass(each, _Section):
            return each if get_origin(annotation) not in (list, dict) else None
    return None


def _path(profile: str, place: tuple[int | str, ...]) -> str:
    return ".".join(("Profiles", profile, *map(str, place)))
