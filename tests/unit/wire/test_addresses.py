"""Addresses as people and Kafka write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import UsageError
from twinlog.wire.addresses import HostPort

hosts = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,30}", fullmatch=True) | st.ip_addresses().map(str)


@given(hosts, st.integers(1, 65535))
def test_an_address_that_was_written_reads_back_the_same(host: str, port: int) -> None:
    address = HostPort(host, port)
    assert HostPort.parse(str(address)) == address


def test_a_listener_name_in_front_is_left_out() -> None:
    assert HostPort.parse("CLIENT://127.0.0.1:9092") == HostPort("127.0.0.1", 9092)


@pytest.mark.parametrize("text", ["", "host", "host:", ":9092", "host:0", "host:65536", "host:x", "::1:9092"])
def test_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        HostPort.parse(text)
