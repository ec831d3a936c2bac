"""Membership providers and signers from directories, laid out as Fabric's tools write them.

    cacerts/ intermediatecerts/ admincerts/ crls/ tlscacerts/ tlsintermediatecerts/    PEM files
    signcerts/ keystore/        the certificate and key of whoever the directory belongs to
    config.yaml                 units (OU) and what they mark

Read by genesis (an organisation's directory) and by every process that signs (its own). Files that hold no
PEM are passed over. Keys are read here and nowhere shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from twinlog.errors import UsageError
from twinlog.ordering.certification import first_certificate
from twinlog.ordering.identity import Signer
from twinlog.ordering.proto import msp_pb2

_BEGIN: Final = b"-----BEGIN "
_NODE_UNITS: Final = {
    "ClientOUIdentifier": "client_ou_identifier",
    "PeerOUIdentifier": "peer_ou_identifier",
    "AdminOUIdentifier": "admin_ou_identifier",
    "OrdererOUIdentifier": "orderer_ou_identifier",
}


def read_msp(directory: Path, mspid: str) -> msp_pb2.MSPConfig:
    """An organisation's membership provider, as it stands in a channel's config."""
    roots = _pems(directory / "cacerts")
    if not roots:
        raise UsageError(
            "the directory of a membership provider has no authority's certificate",
            where=str(directory / "cacerts"),
            hint="is MSPDir right, seen from the file's directory?",
        )
    tls_roots = _pems(directory / "tlscacerts")
    config = msp_pb2.FabricMSPConfig(
        name=mspid,
        root_certs=roots,
        intermediate_certs=_pems(directory / "intermediatecerts"),
        admins=_pems(directory / "admincerts"),
        revocation_list=_pems(directory / "crls"),
        crypto_config=msp_pb2.FabricCryptoConfig(
            signature_hash_family="SHA2", identity_identifier_hash_function="SHA256"
        ),
        tls_root_certs=tls_roots,
        tls_intermediate_certs=_pems(directory / "tlsintermediatecerts") if tls_roots else [],
    )
    _read_units(directory, config)
    return msp_pb2.MSPConfig(config=config.SerializeToString(deterministic=True))


def read_signer(directory: Path, mspid: str) -> Signer:
    """Whoever a directory belongs to, with the key that fits the certificate."""
    certificates = _pems(directory / "signcerts")
    if not certificates:
        raise UsageError(
            "the directory has no certificate to sign with",
            where=str(directory / "signcerts"),
            hint="is it the MSP directory of a node or a user, not that of an organisation?",
        )
    try:
        wanted = first_certificate(certificates[0]).public_key()
    except ValueError as error:
        raise UsageError(f"the certificate cannot be read: {error}", where=str(directory)) from None
    for pem in _pems(directory / "keystore"):
        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError):
            continue  # an encrypted key, or none
        if isinstance(key, ec.EllipticCurvePrivateKey) and key.public_key() == wanted:
            return Signer(mspid, certificates[0], key)
    raise UsageError(
        "no key of the directory fits its certificate",
        where=str(directory / "keystore"),
        hint="is the key an unencrypted PEM file for ECDSA?",
    )


def _pems(directory: Path) -> list[bytes]:
    if not directory.is_dir():
        return []
    try:
        found = [path.read_bytes() for path in sorted(directory.iterdir()) if path.is_file()]
    except OSError as error:
        raise UsageError(f"cannot read a key or certificate: {error}", where=str(directory)) from None
    return [content for content in found if _BEGIN in content]


def _read_units(directory: Path, config: msp_pb2.FabricMSPConfig) -> None:
    file = directory / "config.yaml"
    if not file.exists():
        return
    try:
        declared = YAML(typ="safe", pure=True).load(file.read_text())
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(file)) from None
    if not isinstance(declared, dict):
        return
    for unit in declared.get("OrganizationalUnitIdentifiers") or ():
        certificate = _certificate(directory, unit)
        if not certificate:
            raise UsageError("an organizational unit names no certificate that is there", where=str(file))
        config.organizational_unit_identifiers.add(
            certificate=certificate, organizational_unit_identifier=_name(unit)
        )
    nodes = declared.get("NodeOUs") or {}
    if not isinstance(nodes, dict) or not nodes.get("Enable"):
        return
    config.fabric_node_ous.enable = True
    for key, field in _NODE_UNITS.items():
        unit = nodes.get(key) or {}
        if _name(unit):
            named: msp_pb2.FabricOUIdentifier = getattr(config.fabric_node_ous, field)
            named.organizational_unit_identifier = _name(unit)
            named.certificate = _certificate(directory, unit)


def _name(unit: Any) -> str:
    return str(unit.get("OrganizationalUnitIdentifier") or "") if isinstance(unit, dict) else ""


def _certificate(directory: Path, unit: Any) -> bytes:
    """The authority that must vouch for a unit; none if the file is not there, as Fabric has it."""
    name = unit.get("Certificate") if isinstance(unit, dict) else None
    path = directory / str(name)
    return path.read_bytes() if name and path.is_file() else b""
