"""How commands end where something is wrong with a site: rows of what is called and what must come of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.cluster.conftest import Bus

AT_ONCE = 3


class Row(NamedTuple):
    """A command line, its exit code, and what it says on stderr."""

    words: tuple[str, ...]
    code: int
    said: str = ""


def check_ends(bus: Bus, rows: Iterable[Row], *, within_s: float) -> None:
    """Each must end in time, with its code, and say what it should, with a hint beside every error."""

    def ask(row: Row) -> str:
        called = " ".join(row.words)
        try:
            ended = bus.run(*row.words, timeout_s=within_s)
        except subprocess.TimeoutExpired:
            return f"{called}: hangs"
        told = f"{called}: {ended.returncode} instead of {row.code}\n{ended.stdout}{ended.stderr}"
        is_told = row.said in ended.stderr and (not row.code or "hint:" in ended.stderr)
        return "" if ended.returncode == row.code and is_told and "bug in Twinlog" not in told else told

    with ThreadPoolExecutor(AT_ONCE) as pool:
        wrong = [told for told in pool.map(ask, rows) if told]
    assert wrong == [], "\n".join(wrong)
