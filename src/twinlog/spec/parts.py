"""What all models of the file share: the base of every section, and values that several sections have.

A section is a class with annotated fields; what is written behind a field is its default. Making one
checks nothing: what a file says is checked by `typed`, which reads the same annotations. It is so because
every command works on these models, and most of them on a file that was found right before: they need
neither the checks nor the time that it takes to load them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Annotated, Any, ClassVar, NamedTuple, Self, dataclass_transform

TOPIC_NAME = r"^[A-Za-z0-9._-]{1,249}$"


class Limits(NamedTuple):
    """What a value must be beside its type: the names are those of pydantic's `Field`."""

    given: tuple[tuple[str, Any], ...]  # pairs, because annotations must be hashable


class First(NamedTuple):
    """What is made of a value before its type is looked at."""

    change: Callable[[Any], Any]


def limited(**given: Any) -> Limits:
    """For an annotation: `Annotated[int, limited(ge=1)]`."""
    return Limits(tuple(given.items()))


def nothing_is_empty(value: Any) -> Any:
    """A section whose lines were all commented out is an empty section."""
    return {} if value is None else value


# Strict, because YAML says what is a number: `true` is not 1 and "3" is not 3.
STRICT = limited(strict=True)
EMPTY_ALLOWED = First(nothing_is_empty)
Whole = Annotated[int, STRICT]
TopicName = Annotated[str, limited(pattern=TOPIC_NAME)]


def names_of(part: type[Part]) -> tuple[str, ...]:
    """The fields of a section, in the order in which they stand there."""
    return tuple(part.__annotations__)


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Part:
    """Base of all parts of the file: immutable, and it knows which of its fields were given.

    A field that was not given is not in the instance; what is found instead is the class's, the default.
    """

    _known: ClassVar[frozenset[str]] = frozenset()
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        cls._known = frozenset(names_of(cls))
        cls._required = frozenset(name for name in cls._known if name not in cls.__dict__)

    def __init__(self, **given: Any) -> None:
        if wrong := (self._required - given.keys()) | (given.keys() - self._known):
            raise TypeError(f"{type(self).__name__}: missing or unknown: {', '.join(sorted(wrong))}")
        self.__dict__.update(given)

    @property
    def given(self) -> frozenset[str]:
        """The fields that were not left to their defaults."""
        return frozenset(self.__dict__)

    def but(self, **changes: Any) -> Self:
        """The same with other values in some fields."""
        return type(self)(**{**self.__dict__, **changes})

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({shown})"

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in names_of(type(self)))
