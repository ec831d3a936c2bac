"""What all models of the file share: the base of every section, and values that several sections have."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

TOPIC_NAME = r"^[A-Za-z0-9._-]{1,249}$"
TopicName = Annotated[str, StringConstraints(pattern=TOPIC_NAME)]
# Strict, because YAML says what is a number: `true` is not 1 and "3" is not 3.
Whole = Annotated[int, Field(strict=True)]


def nothing_is_empty(value: Any) -> Any:
    """A section whose lines were all commented out is an empty section."""
    return {} if value is None else value


class Part(BaseModel):
    """Base of all parts of the file: immutable, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _empty_section(cls, value: Any) -> Any:
        return nothing_is_empty(value)
