"""The file's shape, read off the models: which keys a place has and what stands under them.

Used by `environment` to find the value that a variable names, and by `wording` to name the key
that was probably meant. There is no second list of keys to keep in step with the models.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from twinlog.spec.document import Path
from twinlog.spec.model import Bus
from twinlog.spec.parts import Part, names_of


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The types that a value may have: a union taken apart, annotations taken off."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return alternatives(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return tuple(part for option in get_args(annotation) for part in alternatives(option))
    return (annotation,)


def types_of(section: type[Part]) -> dict[str, Any]:
    """The fields of a section and their types, in the order in which they stand there."""
    hints = get_type_hints(section, include_extras=True)
    return {name: hints[name] for name in names_of(section)}


def section_of(annotation: Any) -> type[Part] | None:
    """The model of a section, or None for a value."""
    for option in alternatives(annotation):
        if isinstance(option, type) and issubclass(option, Part):
            return option
    return None


def mapping_of(annotation: Any) -> Any | None:
    """What stands under the names of a mapping (sites, topics, settings), or None."""
    for option in alternatives(annotation):
        if get_origin(option) is Mapping:
            return get_args(option)[1]
    return None


def item_of(annotation: Any) -> Any | None:
    """What a list holds, or None."""
    for option in alternatives(annotation):
        if get_origin(option) is tuple:
            return get_args(option)[0]
    return None


def under(annotation: Any, part: str | int) -> Any | None:
    """What stands under one key or index of a place, or None if nothing can."""
    if isinstance(part, int):
        return item_of(annotation)
    section = section_of(annotation)
    if section is not None:
        return types_of(section).get(part)
    return mapping_of(annotation)


def at(path: Path) -> Any | None:
    """What stands at a path of the file, or None if nothing can."""
    annotation: Any = Bus
    for part in path:
        if annotation is None:
            return None
        annotation = under(annotation, part)
    return annotation


def keys_at(path: Path) -> tuple[str, ...]:
    """The keys that the section at a path has."""
    section = section_of(at(path))
    return names_of(section) if section is not None else ()
