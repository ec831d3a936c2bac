import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN: _ClassVar[Status]
    SUCCESS: _ClassVar[Status]
    BAD_REQUEST: _ClassVar[Status]
    FORBIDDEN: _ClassVar[Status]
    NOT_FOUND: _ClassVar[Status]
    REQUEST_ENTITY_TOO_LARGE: _ClassVar[Status]
    INTERNAL_SERVER_ERROR: _ClassVar[Status]
    NOT_IMPLEMENTED: _ClassVar[Status]
    SERVICE_UNAVAILABLE: _ClassVar[Status]

class HeaderType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MESSAGE: _ClassVar[HeaderType]
    CONFIG: _ClassVar[HeaderType]
    CONFIG_UPDATE: _ClassVar[HeaderType]
    ENDORSER_TRANSACTION: _ClassVar[HeaderType]
    ORDERER_TRANSACTION: _ClassVar[HeaderType]
    DELIVER_SEEK_INFO: _ClassVar[HeaderType]
    CHAINCODE_PACKAGE: _ClassVar[HeaderType]

class BlockMetadataIndex(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIGNATURES: _ClassVar[BlockMetadataIndex]
    LAST_CONFIG: _ClassVar[BlockMetadataIndex]
    TRANSACTIONS_FILTER: _ClassVar[BlockMetadataIndex]
    ORDERER: _ClassVar[BlockMetadataIndex]
    COMMIT_HASH: _ClassVar[BlockMetadataIndex]
UNKNOWN: Status
SUCCESS: Status
BAD_REQUEST: Status
FORBIDDEN: Status
NOT_FOUND: Status
REQUEST_ENTITY_TOO_LARGE: Status
INTERNAL_SERVER_ERROR: Status
NOT_IMPLEMENTED: Status
SERVICE_UNAVAILABLE: Status
MESSAGE: HeaderType
CONFIG: HeaderType
CONFIG_UPDATE: HeaderType
ENDORSER_TRANSACTION: HeaderType
ORDERER_TRANSACTION: HeaderType
DELIVER_SEEK_INFO: HeaderType
CHAINCODE_PACKAGE: HeaderType
SIGNATURES: BlockMetadataIndex
LAST_CONFIG: BlockMetadataIndex
TRANSACTIONS_FILTER: BlockMetadataIndex
ORDERER: BlockMetadataIndex
COMMIT_HASH: BlockMetadataIndex

class Envelope(_message.Message):
    __slots__ = ("payload", "signature")
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    signature: bytes
    def __init__(self, payload: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class Payload(_message.Message):
    __slots__ = ("header", "data")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    header: Header
    data: bytes
    def __init__(self, header: _Optional[_Union[Header, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("channel_header", "signature_header")
    CHANNEL_HEADER_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_HEADER_FIELD_NUMBER: _ClassVar[int]
    channel_header: bytes
    signature_header: bytes
    def __init__(self, channel_header: _Optional[bytes] = ..., signature_header: _Optional[bytes] = ...) -> None: ...

class ChannelHeader(_message.Message):
    __slots__ = ("type", "version", "timestamp", "channel_id", "tx_id", "epoch", "extension", "tls_cert_hash")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    TX_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    EXTENSION_FIELD_NUMBER: _ClassVar[int]
    TLS_CERT_HASH_FIELD_NUMBER: _ClassVar[int]
    type: int
    version: int
    timestamp: _timestamp_pb2.Timestamp
    channel_id: str
    tx_id: str
    epoch: int
    extension: bytes
    tls_cert_hash: bytes
    def __init__(self, type: _Optional[int] = ..., version: _Optional[int] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., channel_id: _Optional[str] = ..., tx_id: _Optional[str] = ..., epoch: _Optional[int] = ..., extension: _Optional[bytes] = ..., tls_cert_hash: _Optional[bytes] = ...) -> None: ...

class SignatureHeader(_message.Message):
    __slots__ = ("creator", "nonce")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    nonce: bytes
    def __init__(self, creator: _Optional[bytes] = ..., nonce: _Optional[bytes] = ...) -> None: ...

class Block(_message.Message):
    __slots__ = ("header", "data", "metadata")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    header: BlockHeader
    data: BlockData
    metadata: BlockMetadata
    def __init__(self, header: _Optional[_Union[BlockHeader, _Mapping]] = ..., data: _Optional[_Union[BlockData, _Mapping]] = ..., metadata: _Optional[_Union[BlockMetadata, _Mapping]] = ...) -> None: ...

class BlockHeader(_message.Message):
    __slots__ = ("number", "previous_hash", "data_hash")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_HASH_FIELD_NUMBER: _ClassVar[int]
    DATA_HASH_FIELD_NUMBER: _ClassVar[int]
    number: int
    previous_hash: bytes
    data_hash: bytes
    def __init__(self, number: _Optional[int] = ..., previous_hash: _Optional[bytes] = ..., data_hash: _Optional[bytes] = ...) -> None: ...

class BlockData(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, data: _Optional[_Iterable[bytes]] = ...) -> None: ...

class BlockMetadata(_message.Message):
    __slots__ = ("metadata",)
    METADATA_FIELD_NUMBER: _ClassVar[int]
    metadata: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, metadata: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Metadata(_message.Message):
    __slots__ = ("value", "signatures")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    value: bytes
    signatures: _containers.RepeatedCompositeFieldContainer[MetadataSignature]
    def __init__(self, value: _Optional[bytes] = ..., signatures: _Optional[_Iterable[_Union[MetadataSignature, _Mapping]]] = ...) -> None: ...

class MetadataSignature(_message.Message):
    __slots__ = ("signature_header", "signature", "identifier_header")
    SIGNATURE_HEADER_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    IDENTIFIER_HEADER_FIELD_NUMBER: _ClassVar[int]
    signature_header: bytes
    signature: bytes
    identifier_header: bytes
    def __init__(self, signature_header: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., identifier_header: _Optional[bytes] = ...) -> None: ...

class LastConfig(_message.Message):
    __slots__ = ("index",)
    INDEX_FIELD_NUMBER: _ClassVar[int]
    index: int
    def __init__(self, index: _Optional[int] = ...) -> None: ...

class OrdererBlockMetadata(_message.Message):
    __slots__ = ("last_config", "consenter_metadata")
    LAST_CONFIG_FIELD_NUMBER: _ClassVar[int]
    CONSENTER_METADATA_FIELD_NUMBER: _ClassVar[int]
    last_config: LastConfig
    consenter_metadata: bytes
    def __init__(self, last_config: _Optional[_Union[LastConfig, _Mapping]] = ..., consenter_metadata: _Optional[bytes] = ...) -> None: ...

class ConfigEnvelope(_message.Message):
    __slots__ = ("config", "last_update")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    LAST_UPDATE_FIELD_NUMBER: _ClassVar[int]
    config: Config
    last_update: Envelope
    def __init__(self, config: _Optional[_Union[Config, _Mapping]] = ..., last_update: _Optional[_Union[Envelope, _Mapping]] = ...) -> None: ...

class Config(_message.Message):
    __slots__ = ("sequence", "channel_group")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_GROUP_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    channel_group: ConfigGroup
    def __init__(self, sequence: _Optional[int] = ..., channel_group: _Optional[_Union[ConfigGroup, _Mapping]] = ...) -> None: ...

class ConfigUpdateEnvelope(_message.Message):
    __slots__ = ("config_update", "signatures")
    CONFIG_UPDATE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    config_update: bytes
    signatures: _containers.RepeatedCompositeFieldContainer[ConfigSignature]
    def __init__(self, config_update: _Optional[bytes] = ..., signatures: _Optional[_Iterable[_Union[ConfigSignature, _Mapping]]] = ...) -> None: ...

class ConfigSignature(_message.Message):
    __slots__ = ("signature_header", "signature")
    SIGNATURE_HEADER_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    signature_header: bytes
    signature: bytes
    def __init__(self, signature_header: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class ConfigUpdate(_message.Message):
    __slots__ = ("channel_id", "read_set", "write_set", "isolated_data")
    class IsolatedDataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    READ_SET_FIELD_NUMBER: _ClassVar[int]
    WRITE_SET_FIELD_NUMBER: _ClassVar[int]
    ISOLATED_DATA_FIELD_NUMBER: _ClassVar[int]
    channel_id: str
    read_set: ConfigGroup
    write_set: ConfigGroup
    isolated_data: _containers.ScalarMap[str, bytes]
    def __init__(self, channel_id: _Optional[str] = ..., read_set: _Optional[_Union[ConfigGroup, _Mapping]] = ..., write_set: _Optional[_Union[ConfigGroup, _Mapping]] = ..., isolated_data: _Optional[_Mapping[str, bytes]] = ...) -> None: ...

class ConfigGroup(_message.Message):
    __slots__ = ("version", "groups", "values", "policies", "mod_policy")
    class GroupsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: ConfigGroup
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[ConfigGroup, _Mapping]] = ...) -> None: ...
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: ConfigValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[ConfigValue, _Mapping]] = ...) -> None: ...
    class PoliciesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: ConfigPolicy
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[ConfigPolicy, _Mapping]] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    MOD_POLICY_FIELD_NUMBER: _ClassVar[int]
    version: int
    groups: _containers.MessageMap[str, ConfigGroup]
    values: _containers.MessageMap[str, ConfigValue]
    policies: _containers.MessageMap[str, ConfigPolicy]
    mod_policy: str
    def __init__(self, version: _Optional[int] = ..., groups: _Optional[_Mapping[str, ConfigGroup]] = ..., values: _Optional[_Mapping[str, ConfigValue]] = ..., policies: _Optional[_Mapping[str, ConfigPolicy]] = ..., mod_policy: _Optional[str] = ...) -> None: ...

class ConfigValue(_message.Message):
    __slots__ = ("version", "value", "mod_policy")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    MOD_POLICY_FIELD_NUMBER: _ClassVar[int]
    version: int
    value: bytes
    mod_policy: str
    def __init__(self, version: _Optional[int] = ..., value: _Optional[bytes] = ..., mod_policy: _Optional[str] = ...) -> None: ...

class ConfigPolicy(_message.Message):
    __slots__ = ("version", "policy", "mod_policy")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    MOD_POLICY_FIELD_NUMBER: _ClassVar[int]
    version: int
    policy: Policy
    mod_policy: str
    def __init__(self, version: _Optional[int] = ..., policy: _Optional[_Union[Policy, _Mapping]] = ..., mod_policy: _Optional[str] = ...) -> None: ...

class Capabilities(_message.Message):
    __slots__ = ("capabilities",)
    class CapabilitiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Capability
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Capability, _Mapping]] = ...) -> None: ...
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    capabilities: _containers.MessageMap[str, Capability]
    def __init__(self, capabilities: _Optional[_Mapping[str, Capability]] = ...) -> None: ...

class Capability(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HashingAlgorithm(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class BlockDataHashingStructure(_message.Message):
    __slots__ = ("width",)
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    width: int
    def __init__(self, width: _Optional[int] = ...) -> None: ...

class OrdererAddresses(_message.Message):
    __slots__ = ("addresses",)
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    addresses: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, addresses: _Optional[_Iterable[str]] = ...) -> None: ...

class Consortium(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Policy(_message.Message):
    __slots__ = ("type", "value")
    class PolicyType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[Policy.PolicyType]
        SIGNATURE: _ClassVar[Policy.PolicyType]
        MSP: _ClassVar[Policy.PolicyType]
        IMPLICIT_META: _ClassVar[Policy.PolicyType]
    UNKNOWN: Policy.PolicyType
    SIGNATURE: Policy.PolicyType
    MSP: Policy.PolicyType
    IMPLICIT_META: Policy.PolicyType
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    type: int
    value: bytes
    def __init__(self, type: _Optional[int] = ..., value: _Optional[bytes] = ...) -> None: ...

class SignaturePolicyEnvelope(_message.Message):
    __slots__ = ("version", "rule", "identities")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    IDENTITIES_FIELD_NUMBER: _ClassVar[int]
    version: int
    rule: SignaturePolicy
    identities: _containers.RepeatedCompositeFieldContainer[MSPPrincipal]
    def __init__(self, version: _Optional[int] = ..., rule: _Optional[_Union[SignaturePolicy, _Mapping]] = ..., identities: _Optional[_Iterable[_Union[MSPPrincipal, _Mapping]]] = ...) -> None: ...

class SignaturePolicy(_message.Message):
    __slots__ = ("signed_by", "n_out_of")
    class NOutOf(_message.Message):
        __slots__ = ("n", "rules")
        N_FIELD_NUMBER: _ClassVar[int]
        RULES_FIELD_NUMBER: _ClassVar[int]
        n: int
        rules: _containers.RepeatedCompositeFieldContainer[SignaturePolicy]
        def __init__(self, n: _Optional[int] = ..., rules: _Optional[_Iterable[_Union[SignaturePolicy, _Mapping]]] = ...) -> None: ...
    SIGNED_BY_FIELD_NUMBER: _ClassVar[int]
    N_OUT_OF_FIELD_NUMBER: _ClassVar[int]
    signed_by: int
    n_out_of: SignaturePolicy.NOutOf
    def __init__(self, signed_by: _Optional[int] = ..., n_out_of: _Optional[_Union[SignaturePolicy.NOutOf, _Mapping]] = ...) -> None: ...

class ImplicitMetaPolicy(_message.Message):
    __slots__ = ("sub_policy", "rule")
    class Rule(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ANY: _ClassVar[ImplicitMetaPolicy.Rule]
        ALL: _ClassVar[ImplicitMetaPolicy.Rule]
        MAJORITY: _ClassVar[ImplicitMetaPolicy.Rule]
    ANY: ImplicitMetaPolicy.Rule
    ALL: ImplicitMetaPolicy.Rule
    MAJORITY: ImplicitMetaPolicy.Rule
    SUB_POLICY_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    sub_policy: str
    rule: ImplicitMetaPolicy.Rule
    def __init__(self, sub_policy: _Optional[str] = ..., rule: _Optional[_Union[ImplicitMetaPolicy.Rule, str]] = ...) -> None: ...

class MSPPrincipal(_message.Message):
    __slots__ = ("principal_classification", "principal")
    class Classification(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ROLE: _ClassVar[MSPPrincipal.Classification]
        ORGANIZATION_UNIT: _ClassVar[MSPPrincipal.Classification]
        IDENTITY: _ClassVar[MSPPrincipal.Classification]
        ANONYMITY: _ClassVar[MSPPrincipal.Classification]
        COMBINED: _ClassVar[MSPPrincipal.Classification]
    ROLE: MSPPrincipal.Classification
    ORGANIZATION_UNIT: MSPPrincipal.Classification
    IDENTITY: MSPPrincipal.Classification
    ANONYMITY: MSPPrincipal.Classification
    COMBINED: MSPPrincipal.Classification
    PRINCIPAL_CLASSIFICATION_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    principal_classification: MSPPrincipal.Classification
    principal: bytes
    def __init__(self, principal_classification: _Optional[_Union[MSPPrincipal.Classification, str]] = ..., principal: _Optional[bytes] = ...) -> None: ...

class MSPRole(_message.Message):
    __slots__ = ("msp_identifier", "role")
    class MSPRoleType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MEMBER: _ClassVar[MSPRole.MSPRoleType]
        ADMIN: _ClassVar[MSPRole.MSPRoleType]
        CLIENT: _ClassVar[MSPRole.MSPRoleType]
        PEER: _ClassVar[MSPRole.MSPRoleType]
        ORDERER: _ClassVar[MSPRole.MSPRoleType]
    MEMBER: MSPRole.MSPRoleType
    ADMIN: MSPRole.MSPRoleType
    CLIENT: MSPRole.MSPRoleType
    PEER: MSPRole.MSPRoleType
    ORDERER: MSPRole.MSPRoleType
    MSP_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    msp_identifier: str
    role: MSPRole.MSPRoleType
    def __init__(self, msp_identifier: _Optional[str] = ..., role: _Optional[_Union[MSPRole.MSPRoleType, str]] = ...) -> None: ...

class OrganizationUnit(_message.Message):
    __slots__ = ("msp_identifier", "organizational_unit_identifier", "certifiers_identifier")
    MSP_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATIONAL_UNIT_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    CERTIFIERS_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    msp_identifier: str
    organizational_unit_identifier: str
    certifiers_identifier: bytes
    def __init__(self, msp_identifier: _Optional[str] = ..., organizational_unit_identifier: _Optional[str] = ..., certifiers_identifier: _Optional[bytes] = ...) -> None: ...

class MSPIdentityAnonymity(_message.Message):
    __slots__ = ("anonymity_type",)
    class MSPIdentityAnonymityType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NOMINAL: _ClassVar[MSPIdentityAnonymity.MSPIdentityAnonymityType]
        ANONYMOUS: _ClassVar[MSPIdentityAnonymity.MSPIdentityAnonymityType]
    NOMINAL: MSPIdentityAnonymity.MSPIdentityAnonymityType
    ANONYMOUS: MSPIdentityAnonymity.MSPIdentityAnonymityType
    ANONYMITY_TYPE_FIELD_NUMBER: _ClassVar[int]
    anonymity_type: MSPIdentityAnonymity.MSPIdentityAnonymityType
    def __init__(self, anonymity_type: _Optional[_Union[MSPIdentityAnonymity.MSPIdentityAnonymityType, str]] = ...) -> None: ...

class CombinedPrincipal(_message.Message):
    __slots__ = ("principals",)
    PRINCIPALS_FIELD_NUMBER: _ClassVar[int]
    principals: _containers.RepeatedCompositeFieldContainer[MSPPrincipal]
    def __init__(self, principals: _Optional[_Iterable[_Union[MSPPrincipal, _Mapping]]] = ...) -> None: ...
