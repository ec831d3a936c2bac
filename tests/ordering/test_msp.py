"""Membership providers: whose certificates count, and as what."""

from __future__ import annotations

import hashlib
import tracemalloc
from base64 import encodebytes
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from twinlog.ordering import crypto, members
from twinlog.ordering.certification import der
from twinlog.ordering.crypto import Wanted
from twinlog.ordering.identity import expires_at, serialized
from twinlog.ordering.msp import Msp, Version
from twinlog.ordering.proto import common_pb2, msp_pb2

ORG = "Org1"
CA = crypto.new_authority("ca")
ADMIN = CA.issue(Wanted("admin", ["admin"]))
CLIENT = CA.issue(Wanted("client", ["client"]))
PEER = CA.issue(Wanted("peer", ["peer"]))
PLAIN = CA.issue(Wanted("plain"))
STRANGER = crypto.new_authority("ca").issue(Wanted("client", ["client"]))
Role = common_pb2.MSPRole
Principal = common_pb2.MSPPrincipal


def a_config(**changes: object) -> msp_pb2.FabricMSPConfig:
    fields: dict[str, object] = {"name": ORG, "root_certs": [CA.pem], "admins": [PLAIN.pem]}
    return msp_pb2.FabricMSPConfig(**(fields | changes))  # type: ignore[arg-type]


def node_units(**changes: object) -> msp_pb2.FabricNodeOUs:
    units = {
        f"{name}_ou_identifier": msp_pb2.FabricOUIdentifier(organizational_unit_identifier=name)
        for name in ("client", "peer", "admin", "orderer")
    }
    return msp_pb2.FabricNodeOUs(**({"enable": True} | units | changes))  # type: ignore[arg-type]


def role(kind: Role.MSPRoleType, mspid: str = ORG) -> Principal:
    wanted = Role(msp_identifier=mspid, role=kind)
    return Principal(principal_classification=Principal.ROLE, principal=wanted.SerializeToString())


def holds(msp: Msp, who: crypto.Issued, principal: Principal) -> bool:
    return msp.satisfies(msp.identity(who.pem), principal)


def test_a_certificate_of_the_authority_is_a_member_and_a_strangers_is_unknown() -> None:
    msp = Msp(a_config(), Version.V1_3)
    assert holds(msp, CLIENT, role(Role.MEMBER))
    assert not holds(msp, CLIENT, role(Role.MEMBER, "Org2"))
    with pytest.raises(ValueError, match="0 chains"):
        msp.identity(STRANGER.pem)


def test_an_authority_is_no_identity() -> None:
    msp = Msp(a_config(), Version.V1_3)
    assert not holds(msp, CA, role(Role.MEMBER))


def test_a_certificate_that_has_ended_is_still_known() -> None:
    begin = datetime(2020, 1, 1, tzinfo=UTC)
    root = crypto.new_authority("old")
    ended = root.issue(Wanted("late", not_after=datetime.now(UTC) - timedelta(seconds=1)))
    assert holds(Msp(a_config(root_certs=[root.pem], admins=[]), Version.V1_3), ended, role(Role.MEMBER))
    before = root.issue(Wanted("early", not_before=begin))
    with pytest.raises(ValueError, match="0 chains"):  # its authority did not exist yet when it began
        Msp(a_config(root_certs=[root.pem], admins=[]), Version.V1_3).identity(before.pem)
    assert expires_at(serialized(ORG, ended.pem)) == ended.certificate.not_valid_after_utc
    assert expires_at(b"\xff") is None
    assert expires_at(serialized(ORG, b"no certificate")) is None


def test_a_revoked_certificate_is_no_member_and_a_list_of_another_authority_says_nothing() -> None:
    revoked = Msp(a_config(revocation_list=[CA.revoke(CLIENT.certificate)]), Version.V1_3)
    assert not holds(revoked, CLIENT, role(Role.MEMBER))
    assert holds(revoked, PEER, role(Role.MEMBER))
    foreign = crypto.new_authority("ca").revoke(CLIENT.certificate)
    assert holds(Msp(a_config(revocation_list=[foreign]), Version.V1_3), CLIENT, role(Role.MEMBER))


def test_an_authority_below_signs_members_and_the_one_above_it_no_longer_does() -> None:
    below = CA.issue_authority("below")
    member = below.issue(Wanted("member"))
    config = a_config(intermediate_certs=[below.pem], admins=[member.pem])
    msp = Msp(config, Version.V1_3)
    assert holds(msp, member, role(Role.MEMBER))
    assert not holds(msp, CLIENT, role(Role.MEMBER))


def test_admins_are_named_or_since_v1_4_3_marked_by_their_unit() -> None:
    named = Msp(a_config(), Version.V1_3)
    assert holds(named, PLAIN, role(Role.ADMIN))
    assert not holds(named, ADMIN, role(Role.ADMIN))
    marked = Msp(a_config(admins=[], fabric_node_ous=node_units()), Version.V1_4_3)
    assert holds(marked, ADMIN, role(Role.ADMIN))
    assert not holds(marked, CLIENT, role(Role.ADMIN))


def test_an_admin_unit_counts_for_nothing_before_v1_4_3() -> None:
    msp = Msp(a_config(admins=[CLIENT.pem], fabric_node_ous=node_units()), Version.V1_3)
    assert holds(msp, CLIENT, role(Role.ADMIN))
    assert not holds(msp, ADMIN, role(Role.ADMIN))
    assert not holds(msp, ADMIN, role(Role.MEMBER))  # neither client nor peer


@pytest.mark.parametrize("version", [Version.V1_1, Version.V1_3, Version.V1_4_3])
def test_node_units_tell_clients_from_peers_and_shut_out_the_rest(version: Version) -> None:
    both = CA.issue(Wanted("both", ["client", "peer"]))
    msp = Msp(a_config(admins=[CLIENT.pem], fabric_node_ous=node_units()), version)
    assert holds(msp, CLIENT, role(Role.CLIENT)) and not holds(msp, CLIENT, role(Role.PEER))
    assert holds(msp, PEER, role(Role.PEER)) and not holds(msp, PEER, role(Role.CLIENT))
    assert not holds(msp, PLAIN, role(Role.MEMBER))
    assert not holds(msp, both, role(Role.MEMBER))


def test_node_units_do_not_hold_in_v1_0_and_where_they_are_not_enabled() -> None:
    first = Msp(a_config(fabric_node_ous=node_units()), Version.V1_0)
    off = Msp(a_config(fabric_node_ous=node_units(enable=False)), Version.V1_4_3)
    for msp in (first, off):
        assert holds(msp, PLAIN, role(Role.MEMBER))
        assert not holds(msp, CLIENT, role(Role.CLIENT))


def test_orderers_are_told_apart_since_v1_4_3() -> None:
    orderer = CA.issue(Wanted("orderer", ["orderer"]))
    config = a_config(admins=[CLIENT.pem], fabric_node_ous=node_units())
    assert holds(Msp(config, Version.V1_4_3), orderer, role(Role.ORDERER))
    assert not holds(Msp(config, Version.V1_3), orderer, role(Role.ORDERER))


def test_a_node_unit_that_another_authority_vouches_for_does_not_count() -> None:
    other = crypto.new_authority("other")
    client_unit = msp_pb2.FabricOUIdentifier(certificate=other.pem, organizational_unit_identifier="client")
    units = node_units(client_ou_identifier=client_unit)
    config = a_config(root_certs=[CA.pem, other.pem], admins=[], fabric_node_ous=units)
    msp = Msp(config, Version.V1_4_3)
    assert not holds(msp, CLIENT, role(Role.MEMBER))
    assert holds(msp, other.issue(Wanted("client", ["client"])), role(Role.CLIENT))


def test_units_of_the_provider_admit_only_their_members() -> None:
    unit = msp_pb2.FabricOUIdentifier(certificate=CA.pem, organizational_unit_identifier="client")
    msp = Msp(a_config(admins=[CLIENT.pem], organizational_unit_identifiers=[unit]), Version.V1_3)
    assert holds(msp, CLIENT, role(Role.MEMBER))
    assert not holds(msp, PEER, role(Role.MEMBER))


def test_a_unit_principal_asks_for_the_unit_and_for_who_vouches() -> None:
    msp = Msp(a_config(), Version.V1_3)
    root = der(CA.certificate)
    wanted = common_pb2.OrganizationUnit(
        msp_identifier=ORG,
        organizational_unit_identifier="client",
        certifiers_identifier=hashlib.sha256(root).digest(),
    )
    kind = Principal.ORGANIZATION_UNIT
    right = Principal(principal_classification=kind, principal=wanted.SerializeToString())
    assert holds(msp, CLIENT, right) and not holds(msp, PEER, right)
    wanted.certifiers_identifier = b"other"
    wrong = Principal(principal_classification=kind, principal=wanted.SerializeToString())
    assert not holds(msp, CLIENT, wrong)


def test_an_identity_principal_asks_for_one_certificate() -> None:
    wanted = Principal(principal_classification=Principal.IDENTITY, principal=serialized(ORG, CLIENT.pem))
    msp = Msp(a_config(), Version.V1_3)
    assert holds(msp, CLIENT, wanted) and not holds(msp, PEER, wanted)


def test_combined_and_nominal_principals_hold_since_v1_3() -> None:
    nominal = Principal(principal_classification=Principal.ANONYMITY)
    parts = common_pb2.CombinedPrincipal(principals=[role(Role.MEMBER), nominal])
    combined = Principal(principal_classification=Principal.COMBINED, principal=parts.SerializeToString())
    empty = Principal(principal_classification=Principal.COMBINED)
    assert holds(Msp(a_config(), Version.V1_3), CLIENT, combined)
    assert not holds(Msp(a_config(), Version.V1_3), CLIENT, empty)
    assert not holds(Msp(a_config(), Version.V1_1), CLIENT, combined)


def test_a_principal_that_cannot_be_read_is_not_satisfied() -> None:
    broken = Principal(principal_classification=Principal.ROLE, principal=b"\xff")
    assert not holds(Msp(a_config(), Version.V1_3), CLIENT, broken)


def test_the_two_forms_of_a_certificates_signature_are_one_identity() -> None:
    raw = der(CLIENT.certificate)
    r, s = decode_dss_signature(CLIENT.certificate.signature)
    other = encode_dss_signature(r, CA.key.curve.group_order - s)
    tail = b"\x03" + bytes((len(CLIENT.certificate.signature) + 1, 0)) + CLIENT.certificate.signature
    body = raw[4 : -len(tail)] + b"\x03" + bytes((len(other) + 1, 0)) + other
    twin = x509.load_der_x509_certificate(raw[:2] + len(body).to_bytes(2, "big") + body)
    assert twin != CLIENT.certificate
    msp = Msp(a_config(), Version.V1_3)
    forms = {msp.identity(each.public_bytes(Encoding.PEM)).certificate for each in (twin, CLIENT.certificate)}
    assert len(forms) == 1


def test_our_own_certificates_have_the_low_form() -> None:
    for issued in (CA, ADMIN, CLIENT, PEER, PLAIN, *(CA.issue_authority("a") for _ in range(4))):
        assert decode_dss_signature(issued.certificate.signature)[1] <= CA.key.curve.group_order // 2


@pytest.mark.parametrize(
    ("changes", "version", "why"),
    [
        ({"root_certs": []}, Version.V1_3, "at least one authority"),
        ({"root_certs": [b"no certificate"]}, Version.V1_3, "PEM"),
        ({"root_certs": [CLIENT.pem]}, Version.V1_3, "does not say that it is one"),
        ({"admins": [STRANGER.pem]}, Version.V1_3, "0 chains"),
        ({"admins": []}, Version.V1_4_3, "administrators must be named"),
        ({"admins": [CA.pem]}, Version.V1_3, "administrator 0 is not valid"),
        ({"fabric_node_ous": node_units(peer_ou_identifier=None)}, Version.V1_1, "must both be named"),
        ({"fabric_node_ous": node_units(), "admins": [PEER.pem]}, Version.V1_4_3, "neither as a client"),
        ({"fabric_node_ous": node_units(), "admins": [PEER.pem]}, Version.V1_3, "not marked as a client"),
        (
            {"organizational_unit_identifiers": [msp_pb2.FabricOUIdentifier(certificate=STRANGER.pem)]},
            Version.V1_3,
            "0 chains",
        ),
        (
            {"crypto_config": msp_pb2.FabricCryptoConfig(signature_hash_family="MD5")},
            Version.V1_3,
            "'MD5' is not known",
        ),
    ],
)
def test_a_provider_that_cannot_be_relied_on_is_refused(
    changes: dict[str, object], version: Version, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        Msp(a_config(**changes), version)


def test_members_finds_the_provider_and_remembers_whom_it_met() -> None:
    found = members.Members([Msp(a_config(), Version.V1_3), members.Anonymous("Hidden")])
    creator = serialized(ORG, CLIENT.pem)
    identity = found.identity(creator)
    assert identity is not None and identity is found.identity(creator)
    assert found.satisfies(identity, role(Role.MEMBER))
    for unknown in (b"", b"\xff", serialized("Org2", CLIENT.pem), serialized("Hidden", CLIENT.pem)):
        assert found.identity(unknown) is None


def test_bytes_that_are_no_certificate_are_not_kept_whatever_their_size() -> None:
    found = members.Members([Msp(a_config(), Version.V1_3)])
    tracemalloc.start()
    try:
        for number in range(32):
            noise = serialized(ORG, b"%d" % number + bytes(2**20))
            assert found.identity(noise) is None and expires_at(noise) is None
        assert tracemalloc.get_traced_memory()[0] < 4 * 2**20
    finally:
        tracemalloc.stop()


@given(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), min_size=1, max_size=4), st.booleans())
def test_a_spoiled_certificate_is_unknown_or_known_and_never_an_accident(
    changes: list[tuple[int, int]], is_whole: bool
) -> None:
    raw = bytearray(der(CLIENT.certificate))
    for place, value in changes:
        raw[place % len(raw)] = value
    pem = b"-----BEGIN CERTIFICATE-----\n%s-----END CERTIFICATE-----\n" % encodebytes(raw)
    creator = serialized(ORG, pem if is_whole else pem[: len(pem) // 2])
    found = members.Members([Msp(a_config(), Version.V1_4_3)]).identity(creator)
    assert found is None or (is_whole and found.certificate == der(CLIENT.certificate))
    expires_at(creator)


def test_a_provider_without_certificates_is_known_by_name_and_other_kinds_are_refused() -> None:
    hidden = msp_pb2.IdemixMSPConfig(name="Hidden").SerializeToString()
    assert members.from_config(msp_pb2.MSPConfig(type=1, config=hidden), Version.V1_3).mspid == "Hidden"
    with pytest.raises(ValueError, match="type 2"):
        members.from_config(msp_pb2.MSPConfig(type=2), Version.V1_3)
    with pytest.raises(ValueError, match="cannot be read"):
        members.from_config(msp_pb2.MSPConfig(config=b"\xff"), Version.V1_3)
