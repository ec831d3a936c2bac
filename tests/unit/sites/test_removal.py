"""What is deleted for good, and what is not Twinlog's to delete."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.errors import UsageError
from twinlog.sites.removal import MARKS, refuse_foreign


def test_link_to_elsewhere_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "state.json").touch()
    (tmp_path / ".twinlog").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="this is a link"):
        refuse_foreign(tmp_path / ".twinlog")


def test_directory_that_somebody_else_filled_is_not_deleted(tmp_path: Path) -> None:
    refuse_foreign(tmp_path)  # empty: nothing is lost
    (tmp_path / "keep").touch()
    with pytest.raises(UsageError, match="made nothing here"):
        refuse_foreign(tmp_path)


@pytest.mark.parametrize("mark", MARKS)
def test_what_a_killed_command_left_can_be_deleted(tmp_path: Path, mark: str) -> None:
    (tmp_path / mark).touch()
    (tmp_path / "half-made").touch()
    refuse_foreign(tmp_path)
