from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AnchorPeers(_message.Message):
    __slots__ = ("anchor_peers",)
    ANCHOR_PEERS_FIELD_NUMBER: _ClassVar[int]
    anchor_peers: _containers.RepeatedCompositeFieldContainer[AnchorPeer]
    def __init__(self, anchor_peers: _Optional[_Iterable[_Union[AnchorPeer, _Mapping]]] = ...) -> None: ...

class AnchorPeer(_message.Message):
    __slots__ = ("host", "port")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class ACLs(_message.Message):
    __slots__ = ("acls",)
    class AclsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: APIResource
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[APIResource, _Mapping]] = ...) -> None: ...
    ACLS_FIELD_NUMBER: _ClassVar[int]
    acls: _containers.MessageMap[str, APIResource]
    def __init__(self, acls: _Optional[_Mapping[str, APIResource]] = ...) -> None: ...

class APIResource(_message.Message):
    __slots__ = ("policy_ref",)
    POLICY_REF_FIELD_NUMBER: _ClassVar[int]
    policy_ref: str
    def __init__(self, policy_ref: _Optional[str] = ...) -> None: ...
