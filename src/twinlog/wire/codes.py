"""Kafka's error codes: their names, which ones may be tried again, and what an operator can do.

Every answer of a broker goes through `check`, which says nothing for code 0 and raises
`KafkaError` for every other. Names and retriability are those of Kafka 4.3.1; a code that is
newer than this table is reported by its number and never tried again.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.errors import KafkaError, UnknownOutcome

NONE = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
REQUEST_TIMED_OUT = 7
RESOURCE_NOT_FOUND = 91

# In the order of the codes; the first one is -1.
_NAMES = [
    "UNKNOWN_SERVER_ERROR",
    "NONE",
    "OFFSET_OUT_OF_RANGE",
    "CORRUPT_MESSAGE",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "INVALID_FETCH_SIZE",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER",
    "REQUEST_TIMED_OUT",
    "BROKER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "MESSAGE_TOO_LARGE",
    "STALE_CONTROLLER_EPOCH",
    "OFFSET_METADATA_TOO_LARGE",
    "NETWORK_EXCEPTION",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "INVALID_TOPIC_EXCEPTION",
    "RECORD_LIST_TOO_LARGE",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "INVALID_REQUIRED_ACKS",
    "ILLEGAL_GENERATION",
    "INCONSISTENT_GROUP_PROTOCOL",
    "INVALID_GROUP_ID",
    "UNKNOWN_MEMBER_ID",
    "INVALID_SESSION_TIMEOUT",
    "REBALANCE_IN_PROGRESS",
    "INVALID_COMMIT_OFFSET_SIZE",
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "INVALID_TIMESTAMP",
    "UNSUPPORTED_SASL_MECHANISM",
    "ILLEGAL_SASL_STATE",
    "UNSUPPORTED_VERSION",
    "TOPIC_ALREADY_EXISTS",
    "INVALID_PARTITIONS",
    "INVALID_REPLICATION_FACTOR",
    "INVALID_REPLICA_ASSIGNMENT",
    "INVALID_CONFIG",
    "NOT_CONTROLLER",
    "INVALID_REQUEST",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "POLICY_VIOLATION",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "DUPLICATE_SEQUENCE_NUMBER",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_TXN_STATE",
    "INVALID_PRODUCER_ID_MAPPING",
    "INVALID_TRANSACTION_TIMEOUT",
    "CONCURRENT_TRANSACTIONS",
    "TRANSACTION_COORDINATOR_FENCED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "SECURITY_DISABLED",
    "OPERATION_NOT_ATTEMPTED",
    "KAFKA_STORAGE_ERROR",
    "LOG_DIR_NOT_FOUND",
    "SASL_AUTHENTICATION_FAILED",
    "UNKNOWN_PRODUCER_ID",
    "REASSIGNMENT_IN_PROGRESS",
    "DELEGATION_TOKEN_AUTH_DISABLED",
    "DELEGATION_TOKEN_NOT_FOUND",
    "DELEGATION_TOKEN_OWNER_MISMATCH",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    "DELEGATION_TOKEN_EXPIRED",
    "INVALID_PRINCIPAL_TYPE",
    "NON_EMPTY_GROUP",
    "GROUP_ID_NOT_FOUND",
    "FETCH_SESSION_ID_NOT_FOUND",
    "INVALID_FETCH_SESSION_EPOCH",
    "LISTENER_NOT_FOUND",
    "TOPIC_DELETION_DISABLED",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "UNSUPPORTED_COMPRESSION_TYPE",
    "STALE_BROKER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "MEMBER_ID_REQUIRED",
    "PREFERRED_LEADER_NOT_AVAILABLE",
    "GROUP_MAX_SIZE_REACHED",
    "FENCED_INSTANCE_ID",
    "ELIGIBLE_LEADERS_NOT_AVAILABLE",
    "ELECTION_NOT_NEEDED",
    "NO_REASSIGNMENT_IN_PROGRESS",
    "GROUP_SUBSCRIBED_TO_TOPIC",
    "INVALID_RECORD",
    "UNSTABLE_OFFSET_COMMIT",
    "THROTTLING_QUOTA_EXCEEDED",
    "PRODUCER_FENCED",
    "RESOURCE_NOT_FOUND",
    "DUPLICATE_RESOURCE",
    "UNACCEPTABLE_CREDENTIAL",
    "INCONSISTENT_VOTER_SET",
    "INVALID_UPDATE_VERSION",
    "FEATURE_UPDATE_FAILED",
    "PRINCIPAL_DESERIALIZATION_FAILURE",
    "SNAPSHOT_NOT_FOUND",
    "POSITION_OUT_OF_RANGE",
    "UNKNOWN_TOPIC_ID",
    "DUPLICATE_BROKER_REGISTRATION",
    "BROKER_ID_NOT_REGISTERED",
    "INCONSISTENT_TOPIC_ID",
    "INCONSISTENT_CLUSTER_ID",
    "TRANSACTIONAL_ID_NOT_FOUND",
    "FETCH_SESSION_TOPIC_ID_ERROR",
    "INELIGIBLE_REPLICA",
    "NEW_LEADER_ELECTED",
    "OFFSET_MOVED_TO_TIERED_STORAGE",
    "FENCED_MEMBER_EPOCH",
    "UNRELEASED_INSTANCE_ID",
    "UNSUPPORTED_ASSIGNOR",
    "STALE_MEMBER_EPOCH",
    "MISMATCHED_ENDPOINT_TYPE",
    "UNSUPPORTED_ENDPOINT_TYPE",
    "UNKNOWN_CONTROLLER_ID",
    "UNKNOWN_SUBSCRIPTION_ID",
    "TELEMETRY_TOO_LARGE",
    "INVALID_REGISTRATION",
    "TRANSACTION_ABORTABLE",
    "INVALID_RECORD_STATE",
    "SHARE_SESSION_NOT_FOUND",
    "INVALID_SHARE_SESSION_EPOCH",
    "FENCED_STATE_EPOCH",
    "INVALID_VOTER_KEY",
    "DUPLICATE_VOTER",
    "VOTER_NOT_FOUND",
    "INVALID_REGULAR_EXPRESSION",
    "REBOOTSTRAP_REQUIRED",
    "STREAMS_INVALID_TOPOLOGY",
    "STREAMS_INVALID_TOPOLOGY_EPOCH",
    "STREAMS_TOPOLOGY_FENCED",
    "SHARE_SESSION_LIMIT_REACHED",
]
_FIRST = -1

_RETRIABLE = frozenset(
    [
        "CORRUPT_MESSAGE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
        "REQUEST_TIMED_OUT",
        "REPLICA_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NOT_CONTROLLER",
        "CONCURRENT_TRANSACTIONS",
        "KAFKA_STORAGE_ERROR",
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
        "LISTENER_NOT_FOUND",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
        "PREFERRED_LEADER_NOT_AVAILABLE",
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "ELECTION_NOT_NEEDED",
        "UNSTABLE_OFFSET_COMMIT",
        "THROTTLING_QUOTA_EXCEEDED",
        "UNKNOWN_TOPIC_ID",
        "INCONSISTENT_TOPIC_ID",
        "FETCH_SESSION_TOPIC_ID_ERROR",
        "SHARE_SESSION_NOT_FOUND",
        "INVALID_SHARE_SESSION_EPOCH",
        "SHARE_SESSION_LIMIT_REACHED",
    ]
)

# After these a write is certainly not in the log: the broker looks before it appends. All other
# errors of a write with acks=all can also come after the append (a leader that steps down while
# it waits for followers answers NOT_LEADER_OR_FOLLOWER), so its outcome is unknown.
_REFUSED_BEFORE_APPEND = frozenset(
    [
        "CORRUPT_MESSAGE",
        "MESSAGE_TOO_LARGE",
        "INVALID_TOPIC_EXCEPTION",
        "RECORD_LIST_TOO_LARGE",
        "NOT_ENOUGH_REPLICAS",
        "INVALID_REQUIRED_ACKS",
        "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "INVALID_TIMESTAMP",
        "UNSUPPORTED_VERSION",
        "INVALID_REQUEST",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "POLICY_VIOLATION",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_TXN_STATE",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "INVALID_RECORD",
        "THROTTLING_QUOTA_EXCEEDED",
    ]
)

_NO_RIGHT = "does the file let this user do that? twinlog plan"
_HINTS: Mapping[str, str] = {
    "UNKNOWN_SERVER_ERROR": "the broker's log has the reason: twinlog logs",
    "UNKNOWN_TOPIC_OR_PARTITION": "does the topic exist at this site, and may this user see it?",
    "LEADER_NOT_AVAILABLE": "are enough brokers up? twinlog status",
    "NOT_LEADER_OR_FOLLOWER": "the leader has just moved; try again",
    "REQUEST_TIMED_OUT": "does the quorum have a leader? twinlog status",
    "MESSAGE_TOO_LARGE": "message.max.bytes of the site, or max.message.bytes of the topic, is smaller",
    "NOT_ENOUGH_REPLICAS": "fewer are in sync than min.insync.replicas; are all brokers up? twinlog status",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "a replica was lost during the write; are all up? twinlog status",
    "TOPIC_AUTHORIZATION_FAILED": _NO_RIGHT,
    "GROUP_AUTHORIZATION_FAILED": _NO_RIGHT,
    "CLUSTER_AUTHORIZATION_FAILED": "is this the administrator's access, on the LINK listener?",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _NO_RIGHT,
    "UNSUPPORTED_SASL_MECHANISM": "is the mechanism right? our own sites take SCRAM-SHA-512",
    "ILLEGAL_SASL_STATE": "does this listener take passwords at all? SSL and PLAINTEXT listeners do not",
    "UNSUPPORTED_VERSION": "is the broker older than this function, or its metadata.version?",
    "TOPIC_ALREADY_EXISTS": "twinlog plan shows how it differs from the file",
    "INVALID_REPLICATION_FACTOR": "are there as many brokers up as copies are asked for? twinlog status",
    "INVALID_REPLICA_ASSIGNMENT": "does every named broker exist? twinlog status",
    "INVALID_CONFIG": "is the setting's name right, and its value in range?",
    "NOT_CONTROLLER": "the quorum has just elected a new leader; try again",
    "POLICY_VIOLATION": "the site has a policy of its own that forbids this",
    "SECURITY_DISABLED": "the site has no authorizer; is authorizer.class.name set?",
    "KAFKA_STORAGE_ERROR": "is a disk full or broken? twinlog status",
    "SASL_AUTHENTICATION_FAILED": "is the user known at this site, and the password right?",
    "OFFSET_NOT_AVAILABLE": "the leader is new and too few replicas are in sync; are all brokers up?",
    "TOPIC_DELETION_DISABLED": "delete.topic.enable is false at this site",
    "THROTTLING_QUOTA_EXCEEDED": "the quota controller_mutation_rate is used up; try again later",
    "RESOURCE_NOT_FOUND": "there is nothing of that name at this site",
    "UNACCEPTABLE_CREDENTIAL": "Kafka wants at least 4096 iterations and at most 16384",
    "REBOOTSTRAP_REQUIRED": "the brokers behind this address have changed; connect again",
}


def name_of(code: int) -> str:
    """Kafka's name for a code."""
    index = code - _FIRST
    return _NAMES[index] if 0 <= index < len(_NAMES) else f"CODE_{code}"


def is_retriable(code: int) -> bool:
    """True if the same request may succeed a little later."""
    return name_of(code) in _RETRIABLE


def is_permanent(code: int) -> bool:
    """True if the same request will be refused again until somebody changes something."""
    return code != NONE and not is_retriable(code)


def is_refused_before_append(code: int) -> bool:
    """True if a write that got this code is certainly not in the log."""
    return name_of(code) in _REFUSED_BEFORE_APPEND


def hint_for(code: int) -> str:
    """What an operator can do about a code; empty if there is nothing useful to say."""
    return _HINTS.get(name_of(code), "")


def error_for(code: int, message: str | None, what: str, where: str) -> KafkaError:
    """The error that a code means: `what` was being done, Kafka said `message`."""
    name = name_of(code)
    said = message.strip() if message else ""
    text = f"{what}: {name}: {said}" if said else f"{what}: {name}"
    return KafkaError(text, code=name, retriable=is_retriable(code), where=where, hint=hint_for(code))


def check(code: int, message: str | None, what: str, where: str) -> None:
    """Raise the error that a code means, if it means one."""
    if code != NONE:
        raise error_for(code, message, what, where)


def check_change(code: int, message: str | None, what: str, where: str) -> None:
    """Like `check`, for a change that the controller was asked to make.

    The controller knows every topic, so one that it does not know will not turn up later. When
    it does not answer in time the broker says REQUEST_TIMED_OUT, and the change may yet be made.
    """
    if code == REQUEST_TIMED_OUT:
        raise UnknownOutcome(
            f"{what}: the controller did not answer in time", where=where, hint=hint_for(code)
        )
    if code == UNKNOWN_TOPIC_OR_PARTITION:
        error = error_for(code, message, what, where)
        error.retriable = False
        raise error
    check(code, message, what, where)
