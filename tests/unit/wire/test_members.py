"""What tells who is in a group of the newer protocol, cut off or whole."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from twinlog.wire import members
from twinlog.wire.compact import text, varint
from twinlog.wire.members import Described, Member, Membership

NO_TAGS = b"\0"
ASSIGNMENT = (
    varint(2) + UUID(int=5).bytes + text("orders") + varint(3) + struct.pack(">ii", 0, 1) + NO_TAGS + NO_TAGS
)
NO_ASSIGNMENT = varint(1) + NO_TAGS
NULL = b"\0"


def a_member(number: int, instance_id: bytes, assigned: bytes) -> bytes:
    names = varint(3) + text("orders") + text("others")
    return b"".join(
        (
            text(f"member-{number}"),
            instance_id,
            NULL,
            struct.pack(">i", number),
            text("reader"),
            text("/192.0.2.1"),
            names,
            NULL,
            assigned,
            NO_ASSIGNMENT,
            NO_TAGS,
        )
    )


def a_group(name: str, code: int, message: bytes, *theirs: bytes) -> bytes:
    head = struct.pack(">h", code) + message + text(name) + text("Stable") + struct.pack(">ii", 3, 3)
    return (
        head + text("uniform") + varint(len(theirs) + 1) + b"".join(theirs) + struct.pack(">i", 0) + NO_TAGS
    )


ANSWER = b"".join(
    (
        struct.pack(">i", 0),
        varint(3),
        a_group("stock", 0, NULL, a_member(1, NULL, ASSIGNMENT), a_member(2, text("fixed"), NO_ASSIGNMENT)),
        a_group("gone", 69, text("not there")),
        NO_TAGS,
    )
)


def test_members_of_groups_are_read_past_all_that_is_not_asked_for() -> None:
    first = Member("member-1", "reader", "/192.0.2.1")
    second = Member("member-2", "reader", "/192.0.2.1", "fixed")
    assert members.decode(memoryview(ANSWER)) == [
        Described("stock", 0, "", Membership("Stable", (first, second))),
        Described("gone", 69, "not there", Membership("Stable", ())),
    ]


def test_an_answer_that_is_cut_off_is_not_read() -> None:
    for end in range(len(ANSWER) - len(NO_TAGS)):
        with pytest.raises((ValueError, IndexError, struct.error)):
            members.decode(memoryview(ANSWER[:end]))


def test_a_request_names_its_groups() -> None:
    assert members.encode(["a", "bc"]) == b"\x03\x02a\x03bc\0\0"
