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


def a_share_member(number: int, assigned: bytes) -> bytes:
    names = varint(2) + text("orders")
    head = (text(f"member-{number}"), NULL, struct.pack(">i", number), text("reader"), text("/192.0.2.1"))
    return b"".join((*head, names, assigned, NO_TAGS))


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
    first = Member("member-1", "reader", "/192.0.2.1", assigned=(("orders", 0), ("orders", 1)))
    second = Member("member-2", "reader", "/192.0.2.1", "fixed")
    assert members.decode(memoryview(ANSWER)) == [
        Described("stock", 0, "", Membership("Stable", (first, second), "uniform")),
        Described("gone", 69, "not there", Membership("Stable", (), "uniform")),
    ]


def test_an_answer_that_is_cut_off_is_not_read() -> None:
    for end in range(len(ANSWER) - len(NO_TAGS)):
        with pytest.raises((ValueError, IndexError, struct.error)):
            members.decode(memoryview(ANSWER[:end]))


def test_a_request_names_its_groups() -> None:
    assert members.encode(["a", "bc"]) == b"\x03\x02a\x03bc\0\0"


def test_members_of_share_groups_are_read_with_what_they_have() -> None:
    group = a_group("shared", 0, NULL, a_share_member(1, ASSIGNMENT), a_share_member(2, NO_ASSIGNMENT))
    answer = struct.pack(">i", 0) + varint(2) + group + NO_TAGS
    first = Member("member-1", "reader", "/192.0.2.1", assigned=(("orders", 0), ("orders", 1)))
    second = Member("member-2", "reader", "/192.0.2.1")
    assert members.decode_share(memoryview(answer)) == [
        Described("shared", 0, "", Membership("Stable", (first, second), "uniform"))
    ]


def test_what_a_classic_member_has_is_read_from_the_bytes_of_its_leader() -> None:
    topic = struct.pack(">h", 6) + b"orders" + struct.pack(">iii", 2, 0, 7)
    assert members.classic_assignment(struct.pack(">hi", 1, 1) + topic + b"\xff\xff\xff\xff") == (
        ("orders", 0),
        ("orders", 7),
    )


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1\0\0\0\1\0\6ord", b"\0\1\0\0\0\1\0\1\xff\0\0\0\0"])
def test_bytes_that_are_no_assignment_of_a_consumer_give_nothing(data: bytes) -> None:
    assert members.classic_assignment(data) == ()
