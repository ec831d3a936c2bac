"""Certificates that were judged good are shown without being judged again, until something changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from twinlog.errors import SiteError
from twinlog.sites.authorities import Kind, Realm
from twinlog.sites.credentials import Credentials, credentials
from twinlog.sites.pki import Pki
from twinlog.spec.model import Bus, Certificates, Site
from twinlog.spec.units import Duration

DAY_S = 86400.0
BUS = Bus(bus="orders", sites={"a": Site()})


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    made = Pki(tmp_path, "orders", BUS.certificates)
    made.ensure()
    made.issue(Kind.LINK, "admin")
    return made


class Asked:
    """A judge that counts how often it was needed."""

    def __init__(self, pki: Pki) -> None:
        self.times = 0
        self._pki = pki

    def __call__(self) -> Pki:
        self.times += 1
        return self._pki


def shown(
    directory: Path, asked: Asked, bus: Bus = BUS, now_s: Callable[[], float] = time.time
) -> Credentials:
    return credentials(directory, bus, Kind.LINK, "admin", asked, now_s=now_s)


def test_good_certificate_is_judged_once(tmp_path: Path, pki: Pki) -> None:
    asked = Asked(pki)
    first, second = shown(tmp_path, asked), shown(tmp_path, asked)
    issued = pki.issue(Kind.LINK, "admin")
    assert first == second == (pki.trust_pem(Realm.LINK), issued.chain_pem, issued.key_pem)
    assert asked.times == 1


def test_certificate_made_just_now_is_judged_by_the_next(tmp_path: Path, pki: Pki) -> None:
    pki.remove(Kind.LINK, "admin")
    asked = Asked(pki)
    for times in (1, 2, 2):
        shown(tmp_path, asked)
        assert asked.times == times


def test_certificate_that_is_to_be_renewed_is_judged_again(tmp_path: Path, pki: Pki) -> None:
    asked = Asked(pki)
    shown(tmp_path, asked)
    rules = BUS.certificates
    due_s = time.time() + rules.validity - rules.renew_before
    shown(tmp_path, asked, now_s=lambda: due_s - DAY_S)
    assert asked.times == 1
    shown(tmp_path, asked, now_s=lambda: due_s + DAY_S)
    assert asked.times == 2


@pytest.mark.parametrize("suffix", [".pem", ".crt", ".key"])
def test_another_text_is_judged(tmp_path: Path, pki: Pki, suffix: str) -> None:
    asked = Asked(pki)
    before = shown(tmp_path, asked)
    file = pki.paths(Kind.LINK, "admin").store.with_suffix(suffix)
    file.write_text(file.read_text() + "\n")
    after = shown(tmp_path, asked)
    assert asked.times == 2
    assert after.key_pem == before.key_pem  # the store is good as it is; its parts are made of it again


def test_missing_part_is_made_again(tmp_path: Path, pki: Pki) -> None:
    asked = Asked(pki)
    before = shown(tmp_path, asked)
    pki.paths(Kind.LINK, "admin").key.unlink()
    assert shown(tmp_path, asked) == before
    assert pki.paths(Kind.LINK, "admin").is_whole


def test_other_rules_and_another_bus_are_judged(tmp_path: Path, pki: Pki) -> None:
    asked = Asked(pki)
    shown(tmp_path, asked)
    shown(tmp_path, asked, BUS.but(certificates=Certificates(renew_before=Duration(40 * DAY_S))))
    assert asked.times == 2
    shown(tmp_path, asked, BUS.but(bus="others"))
    assert asked.times == 3


def test_exchanged_authority_signs_anew_and_is_trusted(tmp_path: Path, pki: Pki) -> None:
    asked = Asked(pki)
    before = shown(tmp_path, asked)
    pki.begin_rotation(Realm.LINK)
    begun = shown(tmp_path, asked)
    assert begun.ca_pem.count("BEGIN CERTIFICATE") == 2  # trusted at once, though nothing was judged
    assert (begun.cert_pem, asked.times) == (before.cert_pem, 1)
    pki.switch_rotation(Realm.LINK)
    assert shown(tmp_path, asked).cert_pem != before.cert_pem


def test_bus_without_authorities_says_so(tmp_path: Path, pki: Pki) -> None:
    with pytest.raises(SiteError, match="does not exist yet"):
        shown(tmp_path / "nowhere", Asked(pki))


def test_removed_certificate_leaves_nothing(tmp_path: Path, pki: Pki) -> None:
    shown(tmp_path, Asked(pki))
    pki.remove(Kind.LINK, "admin")
    assert not any((tmp_path / "link" / "link").iterdir())
