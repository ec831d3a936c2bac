"""Keys and certificates of a bus, made once for all tests of this directory."""

from __future__ import annotations

import pytest

from twinlog.sites.pki import Pki
from twinlog.spec.model import Certificates


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    pki = Pki(tmp_path_factory.mktemp("bus") / "pki", "orders", Certificates())
    pki.ensure()
    return pki
