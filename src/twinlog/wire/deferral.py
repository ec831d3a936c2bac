"""Keeps kafka-python's packages from importing all that they have before somebody wants it.

Only its protocol classes are used here, but importing them runs the package's own `__init__`, which
imports producer, consumer and admin client: a fifth of a second of every command. In the same way the
packages of messages import every message there is, and each is made of its schema when it is imported.
A package that stands in such a one's place has the same submodules, and runs that `__init__` when a name
of it is asked for, so `from kafka import KafkaConsumer` still works. What should be quick imports from
submodules: `from kafka.protocol.admin.topics import ...`. Called once, before anything else of `wire`.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

PACKAGES = (
    "kafka",
    "kafka.protocol.admin",
    "kafka.protocol.consumer",
    "kafka.protocol.metadata",
    "kafka.protocol.producer",
)  # parents first


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
    """Put stand-ins in the packages' places, where a package is not there already."""
    for name in PACKAGES:
        if name in sys.modules:
            continue
        spec = find_spec(name)
        if spec is not None:
            sys.modules[name] = Deferred(spec)
