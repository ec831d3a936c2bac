"""Parts of the file as the file would have them: the way back from the models. Pure.

For commands that print lines for the file, and for the schema, which shows defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from twinlog.spec.parts import Part, names_of
from twinlog.spec.units import Bytes, BytesPerSecond, Duration, format_bytes, format_duration, format_rate

FORMS: Mapping[type[Any], Callable[[Any], str]] = {
    Bytes: format_bytes,
    BytesPerSecond: format_rate,
    Duration: format_duration,
}


def written(value: Any) -> Any:
    """A value as YAML or JSON has it; of a part only what differs from its defaults."""
    if isinstance(value, Part):
        kind = type(value)
        stated = (name for name in names_of(kind) if getattr(value, name) != getattr(kind, name, ...))
        return {name: written(getattr(value, name)) for name in stated}
    if isinstance(value, Mapping):
        return {name: written(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [written(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return FORMS[type(value)](value) if type(value) in FORMS else value
