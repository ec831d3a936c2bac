"""The membership provider (MSP) of one organisation: whose certificates count, and as what.

Made by `members` from the configuration that stands in a channel's config. Setting one up checks everything
that it will rely on and raises ValueError with the first fault; afterwards it never changes. What is asked
of organizational units (OU) grew with the versions, so a channel's capabilities say which version holds.
Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf.message import DecodeError

from twinlog.ordering import certification
from twinlog.ordering.certification import Authorities, Chain, der
from twinlog.ordering.identity import Identity
from twinlog.ordering.proto import common_pb2, msp_pb2
from twinlog.ordering.signatures import HASH_FAMILIES

_Role = common_pb2.MSPRole


class Version(IntEnum):
    """Which rules hold for units and roles; later ones are greater."""

    V1_0 = 0
    V1_1 = 1
    V1_3 = 2
    V1_4_3 = 3


@dataclass(frozen=True)
class _NodeUnit:
    """The unit that marks a role, and who must vouch for it; nobody in particular if empty."""

    unit: str
    certifiers: bytes


class Msp:
    """One organisation's membership provider."""

    def __init__(self, config: msp_pb2.FabricMSPConfig, version: Version) -> None:
        self.mspid = config.name
        self.version = version
        self.tls_roots = tuple(config.tls_root_certs) + tuple(config.tls_intermediate_certs)
        self._family = config.crypto_config.signature_hash_family or "SHA2"
        if self._family not in HASH_FAMILIES:
            raise ValueError(f"the hash family {self._family!r} is not known")
        self._revocations = tuple(_revocation_list(raw) for raw in config.revocation_list)
        self._authorities = _authorities(config.root_certs, config.intermediate_certs)
        if not self._authorities.roots:
            raise ValueError("a membership provider needs the certificate of at least one authority")
        self._check_authorities(self._authorities)
        self._check_authorities(_authorities(config.tls_root_certs, config.tls_intermediate_certs))
        self._inner = self._inner_authorities()
        self._units = frozenset(
            (named.organizational_unit_identifier, self._certifiers_of(named.certificate))
            for named in config.organizational_unit_identifiers
        )
        self._node_units = self._read_node_units(config)
        self._admins = frozenset(self.identity(raw).certificate for raw in config.admins)
        self._check_admins(config.admins)

    def identity(self, pem: bytes) -> Identity:
        """Read an identity's certificate; raises ValueError if it is none of ours."""
        certificate = certification.first_certificate(pem)
        key = certificate.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise ValueError("the certificate's key is not one for ECDSA")
        chain = self._authorities.chain_of(certificate)
        own = certification.with_low_s(certificate, chain[1] if len(chain) > 1 else certificate)
        fault = self._fault_of_chain(own, chain)
        known = () if fault else certification.units(own)  # nobody vouches for them
        certifiers = _hash(chain[1:])
        return Identity(
            mspid=self.mspid,
            certificate=der(own),
            key=key,
            hash_family=self._family,
            units=frozenset(known),
            certifiers=certifiers,
            fault=fault or self._fault(own, chain, known, certifiers),
        )

    def satisfies(self, identity: Identity, principal: common_pb2.MSPPrincipal) -> bool:
        """True if an identity of this provider is what a principal asks for."""
        kind = principal.principal_classification
        try:
            if kind == common_pb2.MSPPrincipal.ROLE:
                role = _Role.FromString(principal.principal)
                return role.msp_identifier == self.mspid and self._has_role(identity, role.role)
            if kind == common_pb2.MSPPrincipal.ORGANIZATION_UNIT:
                unit = common_pb2.OrganizationUnit.FromString(principal.principal)
                return (
                    unit.msp_identifier == self.mspid
                    and not identity.fault
                    and unit.organizational_unit_identifier in identity.units
                    and unit.certifiers_identifier == identity.certifiers
                )
            if kind == common_pb2.MSPPrincipal.IDENTITY:
                return self._is_the_one(identity, principal.principal)
            return self.version >= Version.V1_3 and self._satisfies_newer(identity, principal)
        except (DecodeError, ValueError):
            return False

    def _satisfies_newer(self, identity: Identity, principal: common_pb2.MSPPrincipal) -> bool:
        if principal.principal_classification == common_pb2.MSPPrincipal.ANONYMITY:
            wanted = common_pb2.MSPIdentityAnonymity.FromString(principal.principal)
            return wanted.anonymity_type == common_pb2.MSPIdentityAnonymity.NOMINAL
        if principal.principal_classification == common_pb2.MSPPrincipal.COMBINED:
            parts = common_pb2.CombinedPrincipal.FromString(principal.principal).principals
            return bool(parts) and all(self.satisfies(identity, part) for part in parts)
        return False

    def _is_the_one(self, identity: Identity, serialized: bytes) -> bool:
        wanted = msp_pb2.SerializedIdentity.FromString(serialized)
        if wanted.mspid != self.mspid or identity.fault:
            return False
        return self.identity(wanted.id_bytes).certificate == identity.certificate

    def _has_role(self, identity: Identity, role: int) -> bool:
        if role == _Role.MEMBER:
            return not identity.fault
        if role == _Role.ADMIN:
            # Admins were checked when this provider was set up.
            return identity.certificate in self._admins or (
                self.version >= Version.V1_4_3 and not identity.fault and self._has_node_unit(identity, role)
            )
        if role == _Role.ORDERER and self.version < Version.V1_4_3:
            return False
        return not identity.fault and self._has_node_unit(identity, role)

    def _has_node_unit(self, identity: Identity, role: int) -> bool:
        node_unit = self._node_units.get(role)
        return node_unit is not None and node_unit.unit in identity.units

    def _fault_of_chain(self, own: x509.Certificate, chain: Chain) -> str:
        if certification.is_authority(own) or len(chain) < 2:
            return "an authority's certificate is no identity"
        if der(chain[1]) in self._inner:
            return "the authority that signed it signs other authorities"
        return ""

    def _fault(self, own: x509.Certificate, chain: Chain, known: tuple[str, ...], certifiers: bytes) -> str:
        """Why a certificate is no valid member's; empty for one that is."""
        if certification.is_revoked(own, chain[1], self._revocations):
            return "the certificate has been revoked"
        if self._units and not any((unit, certifiers) in self._units for unit in known):
            return "none of its organizational units is one of the provider's"
        if not self._node_units:
            return ""
        by_name = {node_unit.unit: node_unit for node_unit in self._node_units.values()}
        marks = [by_name[unit] for unit in known if unit in by_name]
        if len(marks) != 1:
            return "it must be marked as exactly one kind of node by its organizational units"
        if marks[0].certifiers not in (b"", certifiers):
            return "its organizational unit is vouched for by another authority"
        return ""

    def _read_node_units(self, config: msp_pb2.FabricMSPConfig) -> Mapping[int, _NodeUnit]:
        declared = config.fabric_node_ous
        if self.version is Version.V1_0 or not config.HasField("fabric_node_ous"):
            return {}
        fields = {_Role.CLIENT: "client_ou_identifier", _Role.PEER: "peer_ou_identifier"}
        if self.version >= Version.V1_4_3:
            fields |= {_Role.ADMIN: "admin_ou_identifier", _Role.ORDERER: "orderer_ou_identifier"}
        found: dict[int, _NodeUnit] = {}
        for role, name in fields.items():
            named: msp_pb2.FabricOUIdentifier = getattr(declared, name)
            if declared.HasField(name):
                certifiers = self._certifiers_of(named.certificate) if named.certificate else b""
                found[role] = _NodeUnit(named.organizational_unit_identifier, certifiers)
            if self.version < Version.V1_4_3 and not named.organizational_unit_identifier:
                raise ValueError("the units of clients and of peers must both be named")
        return found if declared.enable else {}

    def _check_admins(self, pems: Iterable[bytes]) -> None:
        admins = [self.identity(raw) for raw in pems]
        if self.version >= Version.V1_4_3 and not admins and _Role.ADMIN not in self._node_units:
            raise ValueError("administrators must be named, or a unit that marks them")
        for number, admin in enumerate(admins):
            if not self._node_units:
                fault = admin.fault
            elif self.version >= Version.V1_4_3:
                marked = any(self._has_node_unit(admin, role) for role in (_Role.CLIENT, _Role.ADMIN))
                fault = "" if marked else "it is marked neither as a client nor as an administrator"
            else:
                fault = admin.fault or (
                    "" if self._has_node_unit(admin, _Role.CLIENT) else "it is not marked as a client"
                )
            if fault:
                raise ValueError(f"administrator {number} is not valid: {fault}")

    def _check_authorities(self, authorities: Authorities) -> None:
        for certificate in authorities.roots + authorities.intermediates:
            serial = f"(serial {certificate.serial_number:x})"
            if not certification.is_authority(certificate):
                raise ValueError(f"an authority's certificate does not say that it is one {serial}")
            if certification.key_identifier(certificate) is None:
                raise ValueError(f"an authority's certificate does not name its key {serial}")
            chain = authorities.chain_of(certificate)
            if len(chain) > 1 and certification.is_revoked(certificate, chain[1], self._revocations):
                raise ValueError(f"an authority's certificate has been revoked {serial}")

    def _inner_authorities(self) -> frozenset[bytes]:
        """Authorities that sign other authorities, and therefore no members."""
        chains = [self._authorities.chain_of(certificate) for certificate in self._authorities.intermediates]
        return frozenset(der(above) for chain in chains for above in chain[1:])

    def _certifiers_of(self, pem: bytes) -> bytes:
        certificate = certification.first_certificate(pem)
        chain = self._authorities.chain_of(certificate)
        own = certification.with_low_s(certificate, chain[1] if len(chain) > 1 else certificate)
        chain = self._authorities.chain_of(own)  # a root in its high form leads to itself in the low one
        if own not in self._authorities.roots + self._authorities.intermediates:
            raise ValueError("a unit names an authority that is none of the provider's")
        if own not in self._authorities.roots and der(own) in self._inner:
            raise ValueError("a unit names an authority that signs other authorities")
        return _hash(chain)


def _authorities(roots: Iterable[bytes], intermediates: Iterable[bytes]) -> Authorities:
    given = Authorities(
        [certification.first_certificate(raw) for raw in roots],
        [certification.first_certificate(raw) for raw in intermediates],
    )
    return Authorities(
        [certification.with_low_s(root, root) for root in given.roots],
        [certification.with_low_s(each, given.chain_of(each)[1]) for each in given.intermediates],
    )


def _revocation_list(raw: bytes) -> x509.CertificateRevocationList:
    load = x509.load_pem_x509_crl if raw.lstrip().startswith(b"-----") else x509.load_der_x509_crl
    return load(raw)


def _hash(chain: Iterable[x509.Certificate]) -> bytes:
    return hashlib.sha256(b"".join(der(certificate) for certificate in chain)).digest()
