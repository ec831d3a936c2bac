from twinlog.ordering.proto import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BroadcastResponse(_message.Message):
    __slots__ = ("status", "info")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    status: _common_pb2.Status
    info: str
    def __init__(self, status: _Optional[_Union[_common_pb2.Status, str]] = ..., info: _Optional[str] = ...) -> None: ...

class SeekNewest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SeekOldest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SeekNextCommit(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SeekSpecified(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class SeekPosition(_message.Message):
    __slots__ = ("newest", "oldest", "specified", "next_commit")
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    SPECIFIED_FIELD_NUMBER: _ClassVar[int]
    NEXT_COMMIT_FIELD_NUMBER: _ClassVar[int]
    newest: SeekNewest
    oldest: SeekOldest
    specified: SeekSpecified
    next_commit: SeekNextCommit
    def __init__(self, newest: _Optional[_Union[SeekNewest, _Mapping]] = ..., oldest: _Optional[_Union[SeekOldest, _Mapping]] = ..., specified: _Optional[_Union[SeekSpecified, _Mapping]] = ..., next_commit: _Optional[_Union[SeekNextCommit, _Mapping]] = ...) -> None: ...

class SeekInfo(_message.Message):
    __slots__ = ("start", "stop", "behavior", "error_response", "content_type")
    class SeekBehavior(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BLOCK_UNTIL_READY: _ClassVar[SeekInfo.SeekBehavior]
        FAIL_IF_NOT_READY: _ClassVar[SeekInfo.SeekBehavior]
    BLOCK_UNTIL_READY: SeekInfo.SeekBehavior
    FAIL_IF_NOT_READY: SeekInfo.SeekBehavior
    class SeekErrorResponse(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STRICT: _ClassVar[SeekInfo.SeekErrorResponse]
        BEST_EFFORT: _ClassVar[SeekInfo.SeekErrorResponse]
    STRICT: SeekInfo.SeekErrorResponse
    BEST_EFFORT: SeekInfo.SeekErrorResponse
    class SeekContentType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BLOCK: _ClassVar[SeekInfo.SeekContentType]
        HEADER_WITH_SIG_BYTES: _ClassVar[SeekInfo.SeekContentType]
    BLOCK: SeekInfo.SeekContentType
    HEADER_WITH_SIG_BYTES: SeekInfo.SeekContentType
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    BEHAVIOR_FIELD_NUMBER: _ClassVar[int]
    ERROR_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    start: SeekPosition
    stop: SeekPosition
    behavior: SeekInfo.SeekBehavior
    error_response: SeekInfo.SeekErrorResponse
    content_type: SeekInfo.SeekContentType
    def __init__(self, start: _Optional[_Union[SeekPosition, _Mapping]] = ..., stop: _Optional[_Union[SeekPosition, _Mapping]] = ..., behavior: _Optional[_Union[SeekInfo.SeekBehavior, str]] = ..., error_response: _Optional[_Union[SeekInfo.SeekErrorResponse, str]] = ..., content_type: _Optional[_Union[SeekInfo.SeekContentType, str]] = ...) -> None: ...

class DeliverResponse(_message.Message):
    __slots__ = ("status", "block")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    status: _common_pb2.Status
    block: _common_pb2.Block
    def __init__(self, status: _Optional[_Union[_common_pb2.Status, str]] = ..., block: _Optional[_Union[_common_pb2.Block, _Mapping]] = ...) -> None: ...

class ConsensusType(_message.Message):
    __slots__ = ("type", "metadata", "state")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_NORMAL: _ClassVar[ConsensusType.State]
        STATE_MAINTENANCE: _ClassVar[ConsensusType.State]
    STATE_NORMAL: ConsensusType.State
    STATE_MAINTENANCE: ConsensusType.State
    TYPE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    type: str
    metadata: bytes
    state: ConsensusType.State
    def __init__(self, type: _Optional[str] = ..., metadata: _Optional[bytes] = ..., state: _Optional[_Union[ConsensusType.State, str]] = ...) -> None: ...

class BatchSize(_message.Message):
    __slots__ = ("max_message_count", "absolute_max_bytes", "preferred_max_bytes")
    MAX_MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    max_message_count: int
    absolute_max_bytes: int
    preferred_max_bytes: int
    def __init__(self, max_message_count: _Optional[int] = ..., absolute_max_bytes: _Optional[int] = ..., preferred_max_bytes: _Optional[int] = ...) -> None: ...

class BatchTimeout(_message.Message):
    __slots__ = ("timeout",)
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    timeout: str
    def __init__(self, timeout: _Optional[str] = ...) -> None: ...

class KafkaBrokers(_message.Message):
    __slots__ = ("brokers",)
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    brokers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, brokers: _Optional[_Iterable[str]] = ...) -> None: ...

class ChannelRestrictions(_message.Message):
    __slots__ = ("max_count",)
    MAX_COUNT_FIELD_NUMBER: _ClassVar[int]
    max_count: int
    def __init__(self, max_count: _Optional[int] = ...) -> None: ...

class KafkaMessage(_message.Message):
    __slots__ = ("regular", "time_to_cut", "connect")
    REGULAR_FIELD_NUMBER: _ClassVar[int]
    TIME_TO_CUT_FIELD_NUMBER: _ClassVar[int]
    CONNECT_FIELD_NUMBER: _ClassVar[int]
    regular: KafkaMessageRegular
    time_to_cut: KafkaMessageTimeToCut
    connect: KafkaMessageConnect
    def __init__(self, regular: _Optional[_Union[KafkaMessageRegular, _Mapping]] = ..., time_to_cut: _Optional[_Union[KafkaMessageTimeToCut, _Mapping]] = ..., connect: _Optional[_Union[KafkaMessageConnect, _Mapping]] = ...) -> None: ...

class KafkaMessageRegular(_message.Message):
    __slots__ = ("payload", "config_seq", "message_class", "original_offset")
    class Class(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[KafkaMessageRegular.Class]
        NORMAL: _ClassVar[KafkaMessageRegular.Class]
        CONFIG: _ClassVar[KafkaMessageRegular.Class]
    UNKNOWN: KafkaMessageRegular.Class
    NORMAL: KafkaMessageRegular.Class
    CONFIG: KafkaMessageRegular.Class
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONFIG_SEQ_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_CLASS_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_OFFSET_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    config_seq: int
    message_class: KafkaMessageRegular.Class
    original_offset: int
    def __init__(self, payload: _Optional[bytes] = ..., config_seq: _Optional[int] = ..., message_class: _Optional[_Union[KafkaMessageRegular.Class, str]] = ..., original_offset: _Optional[int] = ...) -> None: ...

class KafkaMessageTimeToCut(_message.Message):
    __slots__ = ("block_number",)
    BLOCK_NUMBER_FIELD_NUMBER: _ClassVar[int]
    block_number: int
    def __init__(self, block_number: _Optional[int] = ...) -> None: ...

class KafkaMessageConnect(_message.Message):
    __slots__ = ("payload",)
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    def __init__(self, payload: _Optional[bytes] = ...) -> None: ...

class KafkaMetadata(_message.Message):
    __slots__ = ("last_offset_persisted", "last_original_offset_processed", "last_resubmitted_config_offset")
    LAST_OFFSET_PERSISTED_FIELD_NUMBER: _ClassVar[int]
    LAST_ORIGINAL_OFFSET_PROCESSED_FIELD_NUMBER: _ClassVar[int]
    LAST_RESUBMITTED_CONFIG_OFFSET_FIELD_NUMBER: _ClassVar[int]
    last_offset_persisted: int
    last_original_offset_processed: int
    last_resubmitted_config_offset: int
    def __init__(self, last_offset_persisted: _Optional[int] = ..., last_original_offset_processed: _Optional[int] = ..., last_resubmitted_config_offset: _Optional[int] = ...) -> None: ...
