"""Broadcast from outside: every row of the status table, and that what is refused changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.ordering.front import CHANNEL, Front, running
from tests.ordering.network import SYSTEM, Network
from twinlog.ordering import callers, genesis, messages
from twinlog.ordering.crypto import Authority, Wanted, new_authority
from twinlog.ordering.localconfig import Authentication, LocalConfig
from twinlog.ordering.proto import common_pb2, orderer_pb2
from twinlog.ordering.support import Refused
from twinlog.ordering.update import difference

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
SUCCESS, BAD_REQUEST, FORBIDDEN, NOT_FOUND, UNAVAILABLE = 200, 400, 403, 404, 503


@pytest.fixture(scope="module")
def front(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with running(network, tmp_path_factory.mktemp("front")) as found:
        assert found.create() == SUCCESS
        yield found


def _refused(front: Front, raw: bytes) -> tuple[int, str]:
    """The one answer to an envelope, which leaves the log as it was."""
    before = len(front.chain.log), len(front.system.log)
    ((status, info),) = front.send(raw)
    assert (len(front.chain.log), len(front.system.log)) == before
    return status, info


def _payload(**header: bytes) -> bytes:
    return common_pb2.Payload(header=common_pb2.Header(**header)).SerializeToString()


def _enveloped(payload: bytes, signature: bytes = b"s") -> bytes:
    return common_pb2.Envelope(payload=payload, signature=signature).SerializeToString()


def test_good_message_is_acknowledged_and_in_a_block(front: Front) -> None:
    raw = front.transaction(b"good")
    height = front.chain.ledger.height
    assert front.send(raw) == [(SUCCESS, "")]
    assert front.chain.ledger.block(height).data.data == [raw]


def test_many_messages_of_one_stream_are_answered_and_ordered_as_they_were_sent(front: Front) -> None:
    sent = [front.transaction(b"%d" % number) for number in range(200)]
    height = front.chain.ledger.height
    assert front.status(*sent) == [SUCCESS] * 200
    blocks = [front.chain.ledger.block(number) for number in range(height, front.chain.ledger.height)]
    assert [entry for block in blocks for entry in block.data.data] == sent


def test_message_of_a_type_that_nobody_knows_is_taken(front: Front) -> None:
    assert front.status(front.transaction(kind=77)) == [SUCCESS]


def test_message_with_an_old_timestamp_is_taken(front: Front) -> None:
    assert front.status(front.transaction(timestamp_s=1)) == [SUCCESS]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xff\xff",
        b"\x0a\x05ab",
        _enveloped(b""),
        _enveloped(b"\xff\xff"),
        _enveloped(common_pb2.Payload(data=b"x").SerializeToString()),
        _enveloped(_payload(channel_header=b"\xff\xff", signature_header=b"")),
        _enveloped(_payload(channel_header=b"", signature_header=b"\xff\xff")),
    ],
    ids=["empty", "garbage", "truncated", "no payload", "garbled payload", "no header", "channel", "creator"],
)
def test_message_that_cannot_be_decoded_is_a_bad_request(front: Front, raw: bytes) -> None:
    assert _refused(front, raw)[0] == BAD_REQUEST


@pytest.mark.parametrize("kind", [common_pb2.CONFIG, common_pb2.ORDERER_TRANSACTION])
def test_config_that_a_client_sends_itself_is_a_bad_request(front: Front, kind: int) -> None:
    assert _refused(front, front.transaction(kind=kind)) == (
        BAD_REQUEST,
        "message is of type that cannot be processed directly",
    )


def test_message_over_the_size_limit_is_a_bad_request(front: Front) -> None:
    limit = front.network.system.batch_size.absolute_max_bytes
    assert _refused(front, front.transaction(b"x" * limit))[0] == BAD_REQUEST
    overhead = len(front.transaction(b"x" * 100_000)) - 100_000
    assert front.status(front.transaction(b"x" * (limit - overhead))) == [SUCCESS]


def test_message_for_an_unknown_channel_is_not_found(front: Front) -> None:
    raw = front.transaction(channel_id="nowhere")
    assert _refused(front, raw) == (NOT_FOUND, "channel does not exist")


def test_update_of_an_unknown_channel_that_creates_none_is_a_bad_request(front: Front) -> None:
    raw = front.transaction(kind=common_pb2.CONFIG_UPDATE, channel_id="nowhere")
    assert _refused(front, raw)[0] == BAD_REQUEST


def test_message_with_a_wrong_signature_is_forbidden(front: Front) -> None:
    envelope = common_pb2.Envelope.FromString(front.transaction())
    envelope.signature = front.member.sign(b"something else")
    assert _refused(front, envelope.SerializeToString())[0] == FORBIDDEN


def test_message_without_a_signature_is_forbidden(front: Front) -> None:
    envelope = common_pb2.Envelope.FromString(front.transaction())
    envelope.signature = b""
    assert _refused(front, envelope.SerializeToString())[0] == FORBIDDEN


def test_signature_with_a_high_s_is_forbidden(front: Front) -> None:
    envelope = common_pb2.Envelope.FromString(front.transaction())
    r, s = decode_dss_signature(envelope.signature)
    envelope.signature = encode_dss_signature(r, P256_ORDER - s)
    assert _refused(front, envelope.SerializeToString())[0] == FORBIDDEN


def test_member_of_an_unknown_organisation_is_forbidden(front: Front) -> None:
    stranger = new_authority("ca").issue(Wanted("stranger", ["client"])).signer("Nobody")
    assert _refused(front, front.transaction(signer=stranger))[0] == FORBIDDEN


def test_certificate_of_another_authority_is_forbidden(front: Front) -> None:
    stranger = new_authority("ca.Org1").issue(Wanted("client", ["client"])).signer("Org1")
    assert _refused(front, front.transaction(signer=stranger))[0] == FORBIDDEN


def _authority(network: Network, mspid: str) -> Authority:
    directory = network.directory / mspid / "ca"
    key = load_pem_private_key((directory / "ca.key").read_bytes(), None)
    certificate = x509.load_pem_x509_certificate((directory / "ca.pem").read_bytes())
    return Authority(certificate, key)  # type: ignore[arg-type]


def test_certificate_that_has_ended_is_a_bad_request(front: Front) -> None:
    now = datetime.now(UTC)
    ended = Wanted("late", ["client"], not_before=now - timedelta(2), not_after=now - timedelta(1))
    late = _authority(front.network, "Org1").issue(ended).signer("Org1")
    assert _refused(front, front.transaction(signer=late)) == (BAD_REQUEST, "identity expired")


def test_envelope_in_another_order_of_fields_is_put_in_order(front: Front) -> None:
    raw = front.transaction()
    envelope = common_pb2.Envelope.FromString(raw)
    payload = common_pb2.Envelope(payload=envelope.payload).SerializeToString()
    signature = common_pb2.Envelope(signature=envelope.signature).SerializeToString()
    assert front.status(signature + payload) == [SUCCESS]
    assert front.chain.ledger.block(front.chain.ledger.height - 1).data.data == [raw]


def test_envelope_with_unknown_fields_is_a_bad_request(front: Front) -> None:
    assert _refused(front, front.transaction() + b"\x7a\x01x")[0] == BAD_REQUEST


def test_names_and_types_that_clients_make_up_are_counted_as_unknown(front: Front) -> None:
    for number in range(3):
        front.send(front.transaction(channel_id=f"made-up-{number}"))
        front.send(front.transaction(kind=1000 + number))
    front.send(b"\xff")
    counted = set(front.orderer._figures._processed._values)
    assert ("unknown", "ENDORSER_TRANSACTION", "NOT_FOUND") in counted
    assert (CHANNEL, "unknown", "SUCCESS") in counted
    assert ("unknown", "unknown", "BAD_REQUEST") in counted
    assert {channel for channel, _, _ in counted} <= {CHANNEL, SYSTEM, "unknown"}
    assert not [kind for _, kind, _ in counted if kind.isdigit()]


def test_refusal_ends_the_stream_and_what_follows_is_not_read(front: Front) -> None:
    before = len(front.chain.log)
    good, bad = front.transaction(), b"\xff"
    assert front.status(good, bad, good, good) == [SUCCESS, BAD_REQUEST]
    assert len([one for one in front.chain.log[before:] if len(one) > 100]) == 1


def test_brokers_that_do_not_answer_make_the_service_unavailable(front: Front) -> None:
    front.chain.failure = "cannot enqueue: timed out"
    try:
        assert front.send(front.transaction()) == [(UNAVAILABLE, "cannot enqueue: timed out")]
    finally:
        front.chain.failure = ""
    assert front.status(front.transaction()) == [SUCCESS]


def test_channel_that_has_not_started_is_unavailable(front: Front) -> None:
    front.chain.refusal = "backing Kafka cluster has not completed booting; try again later"
    try:
        assert front.send(front.transaction()) == [(UNAVAILABLE, front.chain.refusal)]
        assert front.status(b"\xff") == [BAD_REQUEST]  # checked first
    finally:
        front.chain.refusal = ""


def test_closed_gate_lets_messages_wait_and_keeps_their_order(front: Front) -> None:
    front.chain.is_gate_open = False
    height = front.chain.ledger.height
    sent = [front.transaction(b"%d" % number) for number in range(5)]
    answers: list[int] = []
    waiting = threading.Thread(target=lambda: answers.extend(front.status(*sent)))
    waiting.start()
    # Another channel goes on meanwhile, and shows that the orderer has had its turn.
    assert _refused(front, front.transaction(channel_id="nowhere"))[0] == NOT_FOUND
    assert front.chain.ledger.height == height
    front.chain.open_gate()
    waiting.join(30)
    assert answers == [SUCCESS] * 5
    blocks = [front.chain.ledger.block(number) for number in range(height, front.chain.ledger.height)]
    assert [entry for block in blocks for entry in block.data.data] == sent


def _update(front: Front, signed_by: str, **change: int) -> bytes:
    """An update of the channel's batch size."""
    size = front.channel.batch_size
    wanted = orderer_pb2.BatchSize(
        max_message_count=size.max_message_count,
        absolute_max_bytes=size.absolute_max_bytes,
        preferred_max_bytes=size.preferred_max_bytes,
    )
    for name, number in change.items():
        setattr(wanted, name, number)
    return _change(front, signed_by, "BatchSize", wanted.SerializeToString())


def _change(front: Front, signed_by: str, name: str, value: bytes) -> bytes:
    """An update of a value in the channel's orderer group."""
    current = front.channel.bundle.config.channel_group
    wanted = common_pb2.ConfigGroup()
    wanted.CopyFrom(current)
    wanted.groups["Orderer"].values[name].value = value
    found = difference(current, wanted)
    assert found is not None
    found.channel_id = CHANNEL
    return genesis.signed_update(found, [front.network.signer(signed_by)])


def test_update_by_an_administrator_takes_effect_in_a_block_of_its_own(
    network: Network, tmp_path: Path
) -> None:
    with running(network, tmp_path) as front:
        front.create()
        assert front.status(_update(front, "OrdererOrg", max_message_count=7)) == [SUCCESS]
        assert (front.channel.sequence, front.channel.batch_size.max_message_count) == (2, 7)
        block = front.chain.ledger.block(front.chain.ledger.height - 1)
        assert len(block.data.data) == 1
    # It holds after a restart, and so does the channel.
    with running(network, tmp_path) as front:
        assert (front.channel.sequence, front.channel.batch_size.max_message_count) == (2, 7)
        assert front.status(front.transaction()) == [SUCCESS]


def test_update_that_its_signers_may_not_make_is_a_bad_request(front: Front) -> None:
    assert _refused(front, _update(front, "Org1", max_message_count=7))[0] == BAD_REQUEST


def test_update_to_an_impossible_config_is_a_bad_request(front: Front) -> None:
    assert _refused(front, _update(front, "OrdererOrg", max_message_count=0))[0] == BAD_REQUEST


def test_update_of_an_old_config_is_a_bad_request(front: Front) -> None:
    first, second = (_update(front, "OrdererOrg", max_message_count=count) for count in (8, 9))
    assert front.status(first) == [SUCCESS]
    assert _refused(front, second)[0] == BAD_REQUEST


def test_channel_that_exists_already_is_not_created_again(front: Front) -> None:
    assert front.create() == BAD_REQUEST


def test_new_channel_is_there_for_messages_and_keeps_its_creation_in_both_ledgers(
    network: Network, tmp_path: Path
) -> None:
    with running(network, tmp_path) as front:
        assert front.create("alpha") == SUCCESS
        created = front.system.ledger.block(front.system.ledger.height - 1)
        first = front.chains["alpha"].ledger.block(0)
        assert messages.read(created.data.data[0]).data == first.data.data[0]
        assert first.header.previous_hash == b""
        assert [front.create(name) for name in ("beta", "gamma", "delta")] == [SUCCESS, SUCCESS, BAD_REQUEST]
    with running(network, tmp_path) as front:
        assert sorted(front.chains) == ["alpha", "beta", "gamma", SYSTEM]


def test_message_of_an_old_config_sequence_in_the_log_is_checked_again(front: Front) -> None:
    assert front.channel.revalidate(front.transaction()) == front.channel.sequence
    stranger = new_authority("ca").issue(Wanted("stranger", ["client"])).signer("Org1")
    with pytest.raises(Refused):
        front.channel.revalidate(front.transaction(signer=stranger))


def test_config_of_an_old_sequence_in_the_log_is_made_anew_from_its_update(
    network: Network, tmp_path: Path
) -> None:
    with running(network, tmp_path) as front:
        front.create()
        old = _update(front, "OrdererOrg", preferred_max_bytes=1000)
        made = front.channel.config_update(messages.read(old)).envelope
        assert front.status(_change(front, "OrdererOrg", "BatchTimeout", _timeout("3s"))) == [SUCCESS]
        again, sequence = front.channel.reprocess_config(made)
        assert sequence == front.channel.sequence
        assert front.channel.bundle.next(_config(again)).batch_size.preferred_max_bytes == 1000
        assert front.status(_update(front, "OrdererOrg", preferred_max_bytes=2000)) == [SUCCESS]
        with pytest.raises(Refused):  # what it would change has changed meanwhile
            front.channel.reprocess_config(made)


def _timeout(text: str) -> bytes:
    return orderer_pb2.BatchTimeout(timeout=text).SerializeToString()


def _config(envelope: bytes) -> common_pb2.ConfigEnvelope:
    return common_pb2.ConfigEnvelope.FromString(messages.read(envelope).data)


def _consensus(state: orderer_pb2.ConsensusType.State, kind: str = "kafka") -> bytes:
    return orderer_pb2.ConsensusType(type=kind, state=state).SerializeToString()


def test_maintenance_takes_no_transactions_and_lets_only_orderers_read(
    network: Network, tmp_path: Path
) -> None:
    normal, maintenance = orderer_pb2.ConsensusType.STATE_NORMAL, orderer_pb2.ConsensusType.STATE_MAINTENANCE
    with running(network, tmp_path) as front:
        front.create()
        moved = _change(front, "OrdererOrg", "ConsensusType", _consensus(normal, "etcdraft"))
        assert _refused(front, moved)[0] == BAD_REQUEST
        enter = _change(front, "OrdererOrg", "ConsensusType", _consensus(maintenance))
        assert front.status(enter) == [SUCCESS]
        assert _refused(front, front.transaction())[0] == UNAVAILABLE
        newest = callers.span(None, None)
        assert front.seek(newest) == [FORBIDDEN]
        assert front.seek(newest, signer=network.signer("OrdererOrg", "orderer1"))[-1] == SUCCESS
        leave = _change(front, "OrdererOrg", "ConsensusType", _consensus(normal))
        assert front.status(leave) == [SUCCESS]
        assert front.status(front.transaction()) == [SUCCESS]


def test_orderer_that_does_not_look_at_expiry_takes_a_certificate_that_has_ended(
    network: Network, tmp_path: Path
) -> None:
    def lenient(config: LocalConfig) -> LocalConfig:
        authentication = Authentication(no_expiration_checks=True)
        return replace(config, general=replace(config.general, authentication=authentication))

    with running(network, tmp_path, lenient) as front:
        front.create()
        # The authority, too, is looked at as it was when the certificate began: it is a few minutes old.
        begin, end = (datetime.now(UTC) - timedelta(minutes=age) for age in (4, 1))
        ended = Wanted("late", ["client"], not_before=begin, not_after=end)
        late = _authority(network, "Org1").issue(ended).signer("Org1")
        assert front.status(front.transaction(signer=late)) == [SUCCESS]


def test_message_without_a_signature_is_a_bad_request_where_the_policy_lets_it_pass(
    network: Network, tmp_path: Path
) -> None:
    block = genesis.genesis_block(network.profile("Insecure"), SYSTEM)
    with running(replace(network, genesis=block), tmp_path) as front:
        envelope = common_pb2.Envelope.FromString(front.transaction(channel_id=SYSTEM))
        assert front.status(envelope.SerializeToString()) == [SUCCESS]
        envelope.signature = b""
        assert front.send(envelope.SerializeToString()) == [(BAD_REQUEST, "the message is not signed")]
