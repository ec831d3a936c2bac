"""From plain data to parts of the file, by the types that they are declared with.

For whoever has data that nobody has looked at: the loader, the schema for editors, words of a command
line. Pydantic does the work, on models that are made here of the annotations in `model` and `streams`;
what it found right becomes a `Part`, so that nobody else has to import it. Raises its ValidationError,
which `wording` puts into words.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import GenericAlias, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from twinlog.spec.parts import First, Limits, Part, names_of, nothing_is_empty
from twinlog.spec.units import DURATION_UNITS, SIZE_UNITS, Bytes, BytesPerSecond, Duration, UnitError
from twinlog.spec.written import FORMS

P = TypeVar("P", bound=Part)


def validated(part: type[P], data: Any) -> P:
    """A part of the file from data as YAML or JSON gives it."""
    found = _part(_model(part).model_validate(data))
    assert isinstance(found, part)
    return found


def takes(annotation: Any, value: Any) -> bool:
    """Whether a value is of a declared type just as it is."""
    try:
        TypeAdapter(_translated(annotation)).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def json_schema(part: type[Part]) -> dict[str, Any]:
    """The JSON schema of a part and of all that stands below it."""
    return _model(part).model_json_schema()


class _Model(BaseModel):
    """Base of the models: strict about unknown keys."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _as_mapping(cls, value: Any) -> Any:
        return vars(value) if isinstance(value, Part) else nothing_is_empty(value)


_MODELS: dict[type[Part], type[_Model]] = {}
_PARTS: dict[type[_Model], type[Part]] = {}


def _model(part: type[Part]) -> type[_Model]:
    if part in _MODELS:
        return _MODELS[part]
    hints = get_type_hints(part, include_extras=True)
    fields: dict[str, Any] = {
        name: (_translated(hints[name]), _default(getattr(part, name, ...))) for name in names_of(part)
    }
    made = create_model(part.__name__, __base__=_Model, __doc__=part.__doc__, **fields)
    _MODELS[part], _PARTS[made] = made, part
    return made


def _default(value: Any) -> Any:
    """A default as the schema shows it; nothing else looks at it, as a part has its own."""
    if isinstance(value, Part):
        return _model(type(value)).model_validate(vars(value))
    return FORMS[type(value)](value) if type(value) in FORMS else value


def _translated(annotation: Any) -> Any:
    """A declared type in terms of pydantic."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return _model(annotation)
    if isinstance(annotation, type) and annotation in _UNITS:
        return _UNITS[annotation]
    origin: Any = get_origin(annotation)
    inner = get_args(annotation)
    if origin is Annotated:
        whole = _translated(inner[0])
        for more in inner[1:]:
            whole = Annotated[whole, _constraint(more)]
        return whole
    if origin in (Union, UnionType):
        return Union[tuple(_translated(option) for option in inner)]  # noqa: UP007  of a tuple
    if origin is tuple:
        return origin[_translated(inner[0]), ...]
    if origin is Mapping:
        return GenericAlias(dict, (_translated(inner[0]), _translated(inner[1])))
    return annotation


def _constraint(declared: Any) -> Any:
    if isinstance(declared, First):
        return BeforeValidator(declared.change)
    assert isinstance(declared, Limits), declared
    return Field(**dict(declared.given))


def _part(value: Any) -> Any:
    """What pydantic made, with parts in place of its models."""
    if isinstance(value, _Model):
        part, given = _PARTS[type(value)], value.model_fields_set
        return part(**{name: _part(getattr(value, name)) for name in names_of(part) if name in given})
    if isinstance(value, dict):
        return {name: _part(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_part(item) for item in value)
    return value


def _unit(kind: type[Any], units: Mapping[str, int], after: str, *examples: str) -> Any:
    """How a number with a unit is read; the hint travels in the error's context."""

    def validate(value: Any) -> Any:
        try:
            return kind.parse(value)
        except UnitError as error:
            context = {"what": error.what, "hint": error.hint}
            raise PydanticCustomError("unit", "{what}", context) from None

    text = {
        "type": "string",
        "pattern": rf"^[0-9]+(\.[0-9]+)? *({'|'.join(units)}){after}$",
        "examples": list(examples),
    }
    number = {"const": 0} if kind is Duration else {"type": "integer", "minimum": 0}
    return Annotated[Any, PlainValidator(validate), WithJsonSchema({"anyOf": [text, number]})]


_UNITS: Mapping[type[Any], Any] = {
    Bytes: _unit(Bytes, SIZE_UNITS, "?", "15MB", "1GiB"),
    BytesPerSecond: _unit(BytesPerSecond, SIZE_UNITS, "?/s", "5MB/s"),
    Duration: _unit(Duration, DURATION_UNITS, "", "7d", "10s"),
}
