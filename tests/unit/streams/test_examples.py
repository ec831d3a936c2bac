"""Every example that is a file of a bus can be planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.spec.load import load
from twinlog.streams import checking, planning

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_example_is_right_and_every_job_has_a_plan(file: Path) -> None:
    loaded = load(file, {})
    checking.check(loaded)
    assert planning.plans(loaded.bus)
