"""Fixtures of the ordering service's tests."""

from __future__ import annotations

import pytest

from tests.ordering.network import Network, make_network


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    """Three organisations and a system channel; made once, read only."""
    return make_network(tmp_path_factory.mktemp("network"))
