"""The role record's value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.spec.model import Role
from twinlog.wire.roles import Standing, decode, encode

standings = st.builds(
    Standing, bus=st.text(), site=st.text(), role=st.sampled_from(Role), term=st.integers(1, 2**40)
)


@given(standings)
def test_what_was_written_is_read(standing: Standing) -> None:
    assert decode(encode(standing)) == standing


@pytest.mark.parametrize(
    "value", [None, b"", b"{}", b"[]", b"\xff", b'{"bus":"x","site":"a","role":"king","term":1}']
)
def test_a_record_that_says_nothing_we_understand_is_no_role(value: bytes | None) -> None:
    assert decode(value) is None
