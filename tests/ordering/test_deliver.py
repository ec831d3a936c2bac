"""Deliver from outside: every row of the specification's table, and who may read."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.ordering.front import CHANNEL, DEADLINE_S, Front, running, with_tls
from tests.ordering.network import Network
from twinlog.ordering import callers, frames, messages
from twinlog.ordering.callers import SeekInfo, SeekPosition, Target, at, newest
from twinlog.ordering.connection import Connection
from twinlog.ordering.crypto import Wanted, new_authority
from twinlog.ordering.deliver import DeliverSession, Desk
from twinlog.ordering.localconfig import Authentication, Pem, ServerTls
from twinlog.ordering.metrics import Figures
from twinlog.ordering.proto import common_pb2, orderer_pb2

SUCCESS, BAD_REQUEST, FORBIDDEN, NOT_FOUND, UNAVAILABLE = 200, 400, 403, 404, 503
HEIGHT = 5
WAIT, FAIL = SeekInfo.BLOCK_UNTIL_READY, SeekInfo.FAIL_IF_NOT_READY
EMPTY = SeekPosition()


@pytest.fixture(scope="module")
def front(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """An orderer with a channel of five blocks."""
    with running(network, tmp_path_factory.mktemp("front")) as found:
        assert found.create() == SUCCESS
        assert (
            found.status(*[found.transaction(b"%d" % number) for number in range(1, HEIGHT)]) == [SUCCESS] * 4
        )
        assert found.chain.ledger.height == HEIGHT
        yield found


def oldest() -> SeekPosition:
    return SeekPosition(oldest=orderer_pb2.SeekOldest())


def _seek(
    start: SeekPosition | None, stop: SeekPosition | None, behaviour: Any = FAIL, **more: Any
) -> SeekInfo:
    return SeekInfo(start=start, stop=stop, behavior=behaviour, **more)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (_seek(newest(), newest()), [4, SUCCESS]),
        (_seek(oldest(), oldest()), [0, SUCCESS]),
        (_seek(newest(), oldest()), [4, SUCCESS]),
        (_seek(oldest(), newest()), [0, 1, 2, 3, 4, SUCCESS]),
        (_seek(at(1), at(3)), [1, 2, 3, SUCCESS]),
        (_seek(at(2), at(1)), [BAD_REQUEST]),
        (_seek(at(HEIGHT), at(HEIGHT)), [NOT_FOUND]),
        (_seek(at(HEIGHT + 1), at(HEIGHT + 1), WAIT), [NOT_FOUND]),
        (_seek(at(HEIGHT + 1), at(HEIGHT + 1)), [NOT_FOUND]),
        (_seek(at(HEIGHT - 1), at(HEIGHT)), [4, NOT_FOUND]),
        (_seek(None, at(1)), [BAD_REQUEST]),
        (_seek(at(1), None), [BAD_REQUEST]),
        (_seek(EMPTY, at(1)), [NOT_FOUND]),
        (_seek(oldest(), EMPTY), [0, SUCCESS]),
        (_seek(SeekPosition(next_commit=orderer_pb2.SeekNextCommit()), at(HEIGHT)), [NOT_FOUND]),
    ],
)
def test_request_gives_the_blocks_and_the_status_of_the_table(
    front: Front, wanted: SeekInfo, found: list[int]
) -> None:
    assert front.seek(wanted) == found


def test_unknown_channel_is_not_found(front: Front) -> None:
    assert front.seek(_seek(oldest(), newest()), channel_id="nowhere") == [NOT_FOUND]


def _request(front: Front, age_s: float, data: bytes | None = None, **more: Any) -> bytes:
    wanted = _seek(newest(), newest()).SerializeToString() if data is None else data
    stamp = int(time.time() - age_s)
    return messages.signed(more.pop("kind", 5), CHANNEL, wanted, front.member, stamp, **more)


@pytest.mark.parametrize(
    ("age_s", "found"), [(16 * 60, [BAD_REQUEST]), (14 * 60, [4, SUCCESS]), (-16 * 60, [BAD_REQUEST])]
)
def test_request_from_another_time_is_a_bad_request(front: Front, age_s: float, found: list[int]) -> None:
    assert front.ask(_request(front, age_s)) == found


def test_request_without_a_timestamp_is_a_bad_request(front: Front) -> None:
    header = common_pb2.Header(
        channel_header=common_pb2.ChannelHeader(channel_id=CHANNEL).SerializeToString(),
        signature_header=front.member.header().SerializeToString(),
    )
    payload = common_pb2.Payload(header=header, data=_seek(newest(), newest()).SerializeToString())
    raw = payload.SerializeToString()
    envelope = common_pb2.Envelope(payload=raw, signature=front.member.sign(raw))
    assert front.ask(envelope.SerializeToString()) == [BAD_REQUEST]


def test_type_of_the_request_is_not_looked_at(front: Front) -> None:
    assert front.ask(_request(front, 0, kind=common_pb2.MESSAGE)) == [4, SUCCESS]


@pytest.mark.parametrize("raw", [b"", b"\xff\xff", b"\x0a\x00"])
def test_request_that_cannot_be_decoded_is_a_bad_request(front: Front, raw: bytes) -> None:
    assert front.ask(raw) == [BAD_REQUEST]


def test_request_without_a_seek_is_a_bad_request(front: Front) -> None:
    assert front.ask(_request(front, 0, b"\xff\xff")) == [BAD_REQUEST]


def test_stranger_is_forbidden(front: Front) -> None:
    stranger = new_authority("ca").issue(Wanted("stranger", ["client"])).signer("Org1")
    assert front.seek(_seek(oldest(), newest()), signer=stranger) == [FORBIDDEN]


def test_wrong_signature_is_forbidden(front: Front) -> None:
    envelope = common_pb2.Envelope.FromString(_request(front, 0))
    envelope.signature = front.member.sign(b"something else")
    assert front.ask(envelope.SerializeToString()) == [FORBIDDEN]


def test_several_requests_on_one_stream_are_served_one_after_another(front: Front) -> None:
    requests = [callers.seek(CHANNEL, _seek(at(n), at(n)), front.member) for n in (1, 3, 0)]
    with front.target.channel() as channel:
        answers = [
            orderer_pb2.DeliverResponse.FromString(raw)
            for raw in channel.stream_stream(callers.DELIVER)(iter(requests), timeout=DEADLINE_S)
        ]
    shown = [one.block.header.number if one.HasField("block") else int(one.status) for one in answers]
    assert shown == [1, SUCCESS, 3, SUCCESS, 0, SUCCESS]


def test_headers_alone_come_without_data_but_for_configs(front: Front) -> None:
    wanted = _seek(oldest(), at(1), content_type=SeekInfo.HEADER_WITH_SIG_BYTES)
    first, second, status = callers.deliver(
        front.target, callers.seek(CHANNEL, wanted, front.member), DEADLINE_S
    )
    assert isinstance(first, common_pb2.Block) and isinstance(second, common_pb2.Block)
    assert first.data.data and not second.HasField("data")
    assert second.metadata.metadata[common_pb2.SIGNATURES]
    assert status == SUCCESS


def test_block_to_come_is_waited_for_by_many_readers(network: Network, tmp_path: Path) -> None:
    with running(network, tmp_path) as front:
        front.create()
        wanted = _seek(oldest(), at(2), WAIT)
        found: list[list[Any]] = []
        readers = [threading.Thread(target=lambda: found.append(front.seek(wanted))) for _ in range(20)]
        for reader in readers:
            reader.start()
        assert front.status(front.transaction(b"1"), front.transaction(b"2")) == [SUCCESS] * 2
        for reader in readers:
            reader.join(DEADLINE_S)
        assert found == [[0, 1, 2, SUCCESS]] * 20


def test_channel_that_lost_its_log_serves_only_those_who_take_what_there_is(
    network: Network, tmp_path: Path
) -> None:
    with running(network, tmp_path) as front:
        front.create()
        waiting: list[list[Any]] = []
        strict = _seek(oldest(), at(9), WAIT)
        reader = threading.Thread(target=lambda: waiting.append(front.seek(strict)))
        reader.start()
        # The reader waits when it has had its block.
        _until(lambda: front.orderer._figures._sent._values.get((CHANNEL, "false", "block")) == 1)
        front.chain.errored.set()
        front.chain.ledger.wake()
        reader.join(DEADLINE_S)
        assert waiting == [[0, UNAVAILABLE]]
        assert front.seek(strict) == [UNAVAILABLE]
        lenient = _seek(oldest(), oldest(), error_response=SeekInfo.BEST_EFFORT)
        assert front.seek(lenient) == [0, SUCCESS]
        assert front.orderer.health() == {CHANNEL: "the channel cannot follow the log"}
        assert front.status(front.transaction()) == [SUCCESS]


def test_slow_reader_holds_up_nobody_and_gets_all(network: Network, tmp_path: Path) -> None:
    with running(network, tmp_path) as front:
        front.create()
        big = [front.transaction(b"x" * 900_000) for _ in range(20)]
        assert front.status(*big) == [SUCCESS] * 20
        with front.target.channel() as channel:
            request = callers.seek(CHANNEL, _seek(oldest(), newest()), front.member)
            slow = channel.stream_stream(callers.DELIVER)(iter([request]), timeout=DEADLINE_S)
            next(slow)
            assert len(front.seek(_seek(oldest(), newest()))) == 22
            assert len(list(slow)) == 21


def _until(condition: Any) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.01)


def _pem(path: Path) -> Pem:
    return Pem(path=path)


def _tls(network: Network, *, mutual: bool) -> ServerTls:
    own = network.directory / "OrdererOrg/orderer1/tls"
    return ServerTls(
        enabled=True, private_key=_pem(own / "server.key"), certificate=_pem(own / "server.crt"),
        client_auth_required=mutual,
    )  # fmt: skip


def _reached(front: Front, client: str | None) -> Target:
    directory = front.network.directory
    root = (directory / "OrdererOrg/tlsca/ca.pem").read_bytes()
    if client is None:
        return Target(front.target.address, root)
    tls = directory / client / "client/tls"
    return Target(
        front.target.address, root, (tls / "server.crt").read_bytes(), (tls / "server.key").read_bytes()
    )


def test_port_with_tls_is_reached_by_whoever_trusts_its_root(network: Network, tmp_path: Path) -> None:
    with running(network, tmp_path, with_tls(_tls(network, mutual=False))) as front:
        front.target = _reached(front, None)
        assert front.create() == SUCCESS
        assert front.seek(_seek(newest(), newest())) == [0, SUCCESS]


def test_mutual_tls_lets_members_of_channels_in_and_binds_requests_to_the_connection(
    network: Network, tmp_path: Path
) -> None:
    with running(network, tmp_path, with_tls(_tls(network, mutual=True))) as front:
        front.target = _reached(front, None)
        with pytest.raises(Exception, match="the call to the orderer failed"):
            front.create()
        front.target = _reached(front, "Org1")
        assert front.create() == SUCCESS
        assert front.ask(_request(front, 0)) == [BAD_REQUEST]
        assert front.target.cert_pem is not None
        certificate = x509.load_pem_x509_certificate(front.target.cert_pem)
        digest = hashlib.sha256(certificate.public_bytes(Encoding.DER)).digest()
        assert front.ask(_request(front, 0, certificate_hash=digest)) == [0, SUCCESS]
        assert front.ask(_request(front, 0, certificate_hash=b"x" * 32)) == [BAD_REQUEST]


def test_client_that_leaves_in_the_middle_is_forgotten(front: Front) -> None:
    opened = front.orderer._figures._closed._values.get((), 0)
    with front.target.channel() as channel:
        request = callers.seek(CHANNEL, _seek(oldest(), at(99), WAIT), front.member)
        call = channel.stream_stream(callers.DELIVER)(iter([request]), timeout=DEADLINE_S)
        next(call)
        call.cancel()
        assert call.code() is grpc.StatusCode.CANCELLED
    _until(lambda: front.orderer._figures._closed._values.get((), 0) > opened)
    assert not front.chain.ledger._listeners
    assert front.orderer._figures._completed._values[CHANNEL, "false", "block", "false"] > 0


def test_client_that_asks_on_while_its_first_request_waits_is_not_read_for_ever(front: Front) -> None:
    desk = Desk(lambda _: front.channel, Authentication(), False, Figures(), lambda call: call())
    connection = Connection(lambda _, stream: DeliverSession(stream, desk), now_s=time.monotonic)
    headers = frames.header_block([(":method", "POST"), (":path", callers.DELIVER)])
    connection.receive(frames.PREFACE + frames.frame(frames.HEADERS, frames.END_HEADERS, 1, headers))
    waiting = callers.seek(CHANNEL, _seek(at(HEIGHT), at(HEIGHT), WAIT), front.member)
    for request in (waiting, *[bytes(500_000)] * 40):
        framed = b"\x00" + len(request).to_bytes(4, "big") + request
        connection.receive(frames.frame(frames.DATA, 0, 1, framed))
        connection.take()
    assert connection.is_over  # it sent more than it had leave to
    assert not front.chain.ledger._listeners


def test_block_on_disk_is_damaged_ends_its_stream_and_no_other(network: Network, tmp_path: Path) -> None:
    with running(network, tmp_path) as front:
        front.create()
        assert front.status(front.transaction(b"1"), front.transaction(b"2")) == [SUCCESS] * 2
        blocks = tmp_path / "ledger/chains" / CHANNEL / "blocks"
        ledger = front.chain.ledger
        raw = bytearray(blocks.read_bytes())
        raw[ledger._ends[0] + 20] ^= 1
        blocks.write_bytes(raw)
        assert front.seek(_seek(oldest(), newest())) == [0, UNAVAILABLE]
        assert front.seek(_seek(newest(), newest())) == [2, SUCCESS]
