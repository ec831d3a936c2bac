"""Client files as values, before they are on disk.

Made by `write`, printed or written by `twinlog client`. Each may hold a secret, so each is written
for its owner only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from twinlog.durable import write_secret


@dataclass(frozen=True)
class ClientFile:
    """One file, not written yet."""

    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class ClientFiles:
    """A main file, and those that it refers to by their paths in the chosen directory."""

    main: ClientFile
    beside: tuple[ClientFile, ...] = ()

    @property
    def text(self) -> str:
        """The main file as it is printed."""
        return self.main.data.decode()

    def write_beside(self, directory: Path) -> None:
        """Write the files that the main one refers to, for a main file that is printed."""
        for file in self.beside:
            write_secret(directory / file.name, file.data)

    def write(self, directory: Path) -> None:
        """Write all files, the main one last."""
        self.write_beside(directory)
        write_secret(directory / self.main.name, self.main.data)
