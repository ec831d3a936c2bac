"""How long work tells what it is doing, without knowing who watches.

Lower layers take a `Progress` and never print. The command line has a live display for terminals
and plain lines for everything else; tests use `Silent`. Tasks may overlap: a name is a task's
identity from `begin` to `end`.
"""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Who watches long work."""

    def begin(self, name: str, total: int | None = None) -> None:
        """A task starts; `total` is how many times `advance` will be called, where known."""

    def advance(self, name: str, count: int = 1) -> None:
        """A part of the task is done."""

    def end(self, name: str, outcome: str = "") -> None:
        """The task is done; `outcome` is a word or two worth showing."""

    def note(self, text: str) -> None:
        """Something worth a line of its own."""


class Silent:
    """Nobody watches."""

    def begin(self, name: str, total: int | None = None) -> None:
        """Nothing."""

    def advance(self, name: str, count: int = 1) -> None:
        """Nothing."""

    def end(self, name: str, outcome: str = "") -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""
