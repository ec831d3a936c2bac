"""What several of these tests stand on: keys and certificates of a bus, and a thread that serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from twinlog.sites.pki import Pki
from twinlog.spec.model import Certificates
from twinlog.traffic.serving import Serving


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    pki = Pki(tmp_path_factory.mktemp("bus") / "pki", "orders", Certificates())
    pki.ensure()
    return pki


@pytest.fixture
def serving() -> Iterator[Serving]:
    made = Serving()
    yield made
    made.close()
