"""Who belongs to a cluster: forgetting a broker that has gone, replacing a voter of the quorum.

For `sites`, when a node is removed or its disk was lost. A voter is an id together with the id of its
metadata directory (KIP-853), so one with a new disk is a new voter. The bytes are written here by hand
because kafka-python has no classes for these requests. All may be repeated: what is the case
already is no error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from twinlog.wire import codes
from twinlog.wire.addresses import HostPort
from twinlog.wire.cluster import Cluster
from twinlog.wire.compact import read_text, text, varint
from twinlog.wire.connection import RawRequest
from twinlog.wire.deadlines import Deadline
from twinlog.wire.versions import Range

UNREGISTER, UNREGISTER_KEY = "UnregisterBrokerRequest", 64
ADD_VOTER, ADD_VOTER_KEY = "AddRaftVoterRequest", 80
REMOVE_VOTER, REMOVE_VOTER_KEY = "RemoveRaftVoterRequest", 81
VERSION = 0
CONTROLLER_LISTENER = "CONTROLLER"

_DUPLICATE_VOTER, _VOTER_NOT_FOUND = "DUPLICATE_VOTER", "VOTER_NOT_FOUND"
_UNKNOWN_BROKER = "BROKER_ID_NOT_REGISTERED"
_ID = struct.Struct(">i")
_PORT = struct.Struct(">H")
_CODE = struct.Struct(">h")
_THROTTLE_BYTES = 4
_NO_TAGS = b"\0"


class Said(NamedTuple):
    """What the controller answered."""

    code: int
    message: str


# The bytes


def encode_unregister(broker_id: int) -> bytes:
    """A request to forget a broker."""
    return _ID.pack(broker_id) + _NO_TAGS


def encode_add_voter(
    cluster_id: str, voter_id: int, directory: UUID, address: HostPort, timeout_ms: int
) -> bytes:
    """A request to let a controller vote."""
    listener = text(CONTROLLER_LISTENER) + text(address.host) + _PORT.pack(address.port) + _NO_TAGS
    return (
        text(cluster_id)
        + _ID.pack(timeout_ms)
        + _ID.pack(voter_id)
        + directory.bytes
        + varint(2)  # an array of one
        + listener
        + _NO_TAGS
    )


def encode_remove_voter(cluster_id: str, voter_id: int, directory: UUID) -> bytes:
    """A request to let a controller vote no more."""
    return text(cluster_id) + _ID.pack(voter_id) + directory.bytes + _NO_TAGS


def decode(data: memoryview) -> Said:
    """The answer to any of them, behind its header."""
    (code,) = _CODE.unpack_from(data, _THROTTLE_BYTES)
    message, _ = read_text(data, _THROTTLE_BYTES + _CODE.size)
    return Said(code, message)


# The hands


def unregister_broker(cluster: Cluster, broker_id: int) -> None:
    """Have the controller forget a broker that will not come back."""
    _ask(
        cluster,
        RawRequest(UNREGISTER, UNREGISTER_KEY, VERSION, [encode_unregister(broker_id)], decode),
        f"forgetting broker {broker_id}",
        harmless=_UNKNOWN_BROKER,
    )


def add_voter(cluster: Cluster, voter_id: int, directory: UUID, address: HostPort) -> None:
    """Let a controller that has caught up vote."""
    timeout_ms = int(cluster.patience.request_s * 900)
    body = encode_add_voter(cluster.cluster_id, voter_id, directory, address, timeout_ms)
    _ask(
        cluster,
        RawRequest(ADD_VOTER, ADD_VOTER_KEY, VERSION, [body], decode),
        f"letting controller {voter_id} vote",
        harmless=_DUPLICATE_VOTER,
    )


def remove_voter(cluster: Cluster, voter_id: int, directory: UUID) -> None:
    """Let the controller with that disk vote no more."""
    body = encode_remove_voter(cluster.cluster_id, voter_id, directory)
    _ask(
        cluster,
        RawRequest(REMOVE_VOTER, REMOVE_VOTER_KEY, VERSION, [body], decode),
        f"taking the vote from controller {voter_id}",
        harmless=_VOTER_NOT_FOUND,
    )


def _ask(cluster: Cluster, request: RawRequest[Said], what: str, *, harmless: str) -> None:
    cluster.retry(_attempt(cluster, request, what, harmless), repeatable=True)


def _attempt(cluster: Cluster, request: RawRequest[Said], what: str, harmless: str) -> Callable[[], None]:
    def attempt() -> None:
        connection = cluster.any_broker()
        connection.agree(request.name, request.api_key, Range(request.version, request.version))
        deadline = Deadline(cluster.patience.request_s)
        said = connection.receive(connection.send_raw(request, deadline), deadline)
        if codes.name_of(said.code) != harmless:
            codes.check_change(said.code, said.message, what, cluster.where)

    return attempt
