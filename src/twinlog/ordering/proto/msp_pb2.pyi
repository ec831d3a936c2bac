from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SerializedIdentity(_message.Message):
    __slots__ = ("mspid", "id_bytes")
    MSPID_FIELD_NUMBER: _ClassVar[int]
    ID_BYTES_FIELD_NUMBER: _ClassVar[int]
    mspid: str
    id_bytes: bytes
    def __init__(self, mspid: _Optional[str] = ..., id_bytes: _Optional[bytes] = ...) -> None: ...

class MSPConfig(_message.Message):
    __slots__ = ("type", "config")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    type: int
    config: bytes
    def __init__(self, type: _Optional[int] = ..., config: _Optional[bytes] = ...) -> None: ...

class FabricMSPConfig(_message.Message):
    __slots__ = ("name", "root_certs", "intermediate_certs", "admins", "revocation_list", "signing_identity", "organizational_unit_identifiers", "crypto_config", "tls_root_certs", "tls_intermediate_certs", "fabric_node_ous")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROOT_CERTS_FIELD_NUMBER: _ClassVar[int]
    INTERMEDIATE_CERTS_FIELD_NUMBER: _ClassVar[int]
    ADMINS_FIELD_NUMBER: _ClassVar[int]
    REVOCATION_LIST_FIELD_NUMBER: _ClassVar[int]
    SIGNING_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATIONAL_UNIT_IDENTIFIERS_FIELD_NUMBER: _ClassVar[int]
    CRYPTO_CONFIG_FIELD_NUMBER: _ClassVar[int]
    TLS_ROOT_CERTS_FIELD_NUMBER: _ClassVar[int]
    TLS_INTERMEDIATE_CERTS_FIELD_NUMBER: _ClassVar[int]
    FABRIC_NODE_OUS_FIELD_NUMBER: _ClassVar[int]
    name: str
    root_certs: _containers.RepeatedScalarFieldContainer[bytes]
    intermediate_certs: _containers.RepeatedScalarFieldContainer[bytes]
    admins: _containers.RepeatedScalarFieldContainer[bytes]
    revocation_list: _containers.RepeatedScalarFieldContainer[bytes]
    signing_identity: SigningIdentityInfo
    organizational_unit_identifiers: _containers.RepeatedCompositeFieldContainer[FabricOUIdentifier]
    crypto_config: FabricCryptoConfig
    tls_root_certs: _containers.RepeatedScalarFieldContainer[bytes]
    tls_intermediate_certs: _containers.RepeatedScalarFieldContainer[bytes]
    fabric_node_ous: FabricNodeOUs
    def __init__(self, name: _Optional[str] = ..., root_certs: _Optional[_Iterable[bytes]] = ..., intermediate_certs: _Optional[_Iterable[bytes]] = ..., admins: _Optional[_Iterable[bytes]] = ..., revocation_list: _Optional[_Iterable[bytes]] = ..., signing_identity: _Optional[_Union[SigningIdentityInfo, _Mapping]] = ..., organizational_unit_identifiers: _Optional[_Iterable[_Union[FabricOUIdentifier, _Mapping]]] = ..., crypto_config: _Optional[_Union[FabricCryptoConfig, _Mapping]] = ..., tls_root_certs: _Optional[_Iterable[bytes]] = ..., tls_intermediate_certs: _Optional[_Iterable[bytes]] = ..., fabric_node_ous: _Optional[_Union[FabricNodeOUs, _Mapping]] = ...) -> None: ...

class FabricCryptoConfig(_message.Message):
    __slots__ = ("signature_hash_family", "identity_identifier_hash_function")
    SIGNATURE_HASH_FAMILY_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_IDENTIFIER_HASH_FUNCTION_FIELD_NUMBER: _ClassVar[int]
    signature_hash_family: str
    identity_identifier_hash_function: str
    def __init__(self, signature_hash_family: _Optional[str] = ..., identity_identifier_hash_function: _Optional[str] = ...) -> None: ...

class SigningIdentityInfo(_message.Message):
    __slots__ = ("public_signer", "private_signer")
    PUBLIC_SIGNER_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_SIGNER_FIELD_NUMBER: _ClassVar[int]
    public_signer: bytes
    private_signer: KeyInfo
    def __init__(self, public_signer: _Optional[bytes] = ..., private_signer: _Optional[_Union[KeyInfo, _Mapping]] = ...) -> None: ...

class KeyInfo(_message.Message):
    __slots__ = ("key_identifier", "key_material")
    KEY_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    KEY_MATERIAL_FIELD_NUMBER: _ClassVar[int]
    key_identifier: str
    key_material: bytes
    def __init__(self, key_identifier: _Optional[str] = ..., key_material: _Optional[bytes] = ...) -> None: ...

class FabricOUIdentifier(_message.Message):
    __slots__ = ("certificate", "organizational_unit_identifier")
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATIONAL_UNIT_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    certificate: bytes
    organizational_unit_identifier: str
    def __init__(self, certificate: _Optional[bytes] = ..., organizational_unit_identifier: _Optional[str] = ...) -> None: ...

class FabricNodeOUs(_message.Message):
    __slots__ = ("enable", "client_ou_identifier", "peer_ou_identifier", "admin_ou_identifier", "orderer_ou_identifier")
    ENABLE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_OU_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    PEER_OU_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    ADMIN_OU_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    ORDERER_OU_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    enable: bool
    client_ou_identifier: FabricOUIdentifier
    peer_ou_identifier: FabricOUIdentifier
    admin_ou_identifier: FabricOUIdentifier
    orderer_ou_identifier: FabricOUIdentifier
    def __init__(self, enable: _Optional[bool] = ..., client_ou_identifier: _Optional[_Union[FabricOUIdentifier, _Mapping]] = ..., peer_ou_identifier: _Optional[_Union[FabricOUIdentifier, _Mapping]] = ..., admin_ou_identifier: _Optional[_Union[FabricOUIdentifier, _Mapping]] = ..., orderer_ou_identifier: _Optional[_Union[FabricOUIdentifier, _Mapping]] = ...) -> None: ...

class IdemixMSPConfig(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...
