"""How far the standby is believed, and when no longer."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from twinlog.errors import SiteError, TwinlogError
from twinlog.ordering import coverage
from twinlog.ordering.coverage import Coverage
from twinlog.spec.model import Role
from twinlog.wire.access import Access
from twinlog.wire.roles import Standing

_STANDBY = Standing("bus", "b", Role.STANDBY, 3)


class Site:
    """A standby as its client sees it."""

    def __init__(self, access: Access) -> None:
        self.answer: int | TwinlogError = 7
        self.role = _STANDBY
        self.is_closed = False

    def admit(self, topic: str) -> Standing:
        if self.role.role is not Role.STANDBY:
            raise SiteError("not the standby")
        return self.role

    def watermarks(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int | TwinlogError]:
        return dict.fromkeys(places, self.answer)

    def standing(self) -> Standing:
        return self.role

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(Access(("b:1",)))
    monkeypatch.setattr(coverage, "Standby", lambda access: made)
    return made


def test_standby_stays_the_standby_is_believed(site: Site) -> None:
    covered = Coverage(Access(("b:1",)), "foo")
    assert covered() == 7
    site.answer = 9
    assert covered() == 9
    covered.close()
    assert site.is_closed


def test_standby_cannot_say_raises_its_reason(site: Site) -> None:
    site.answer = SiteError("no leader")
    with pytest.raises(SiteError, match="no leader"):
        Coverage(Access(("b:1",)), "foo")()


@pytest.mark.parametrize(
    "role", [Standing("bus", "b", Role.ACTIVE, 4), Standing("bus", "b", Role.STANDBY, 5)]
)
def test_roles_have_moved_believes_the_site_no_more(site: Site, role: Standing) -> None:
    covered = Coverage(Access(("b:1",)), "foo")
    covered()
    site.role = role
    with pytest.raises(SiteError, match="was the standby of term 3"):
        covered()


def test_site_is_no_standby_at_first_may_become_one(site: Site) -> None:
    site.role = Standing("bus", "b", Role.ACTIVE, 2)
    covered = Coverage(Access(("b:1",)), "foo")
    with pytest.raises(SiteError, match="not the standby"):
        covered()
    site.role = _STANDBY
    assert covered() == 7
