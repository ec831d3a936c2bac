"""What `--timeout` bounds."""

from __future__ import annotations

import click
import pytest

from twinlog.cli import reach


@pytest.mark.parametrize(
    ("words", "seconds"),
    [([], 30.0), (["--timeout", "3"], 3.0), (["--timeout", "10"], 10.0), (["--timeout", "0"], 0.1)],
)
def test_a_write_has_its_own_time_unless_the_user_gives_one(words: list[str], seconds: float) -> None:
    found: list[float] = []

    def body(site: str | None, user: str | None, timeout: float) -> None:
        found.append(reach.write_timeout_s(timeout))

    click.command()(reach.site_options(body)).main(words, standalone_mode=False)
    assert found == [seconds]
