"""Keeps kafka-python's package from importing its clients before somebody wants one.

Only its protocol classes are used here, but importing them runs the package's own `__init__`, which
imports producer, consumer and admin client: a fifth of a second of every command. A package that stands
in its place has the same submodules, and runs that `__init__` when a name of it is asked for, so
`from kafka import KafkaConsumer` still works. Called once, before anything else of `wire` is imported.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

PACKAGE = "kafka"


class Deferred(ModuleType):
    """A package whose `__init__` has not run yet."""

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec.name)
        self.__spec__ = spec
        self.__loader__ = spec.loader
        self.__file__ = spec.origin
        self.__path__ = list(spec.submodule_search_locations or ())

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        # Python asks packages for such names on its own, and wants no client.
        own = name.startswith("__") and name != "__version__"
        if own or spec is None or spec.loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # type: ignore[assignment]  # from now on it is what it stood for
        spec.loader.exec_module(self)
        return getattr(self, name)


def defer() -> None:
    """Put the stand-in in the package's place, unless the package is there already."""
    if PACKAGE in sys.modules:
        return
    spec = find_spec(PACKAGE)
    if spec is not None:
        sys.modules[PACKAGE] = Deferred(spec)
