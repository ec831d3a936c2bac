"""What somebody may do with something, by Kafka's numbers. Pure.

For access rules (`acls`), and for what brokers say that the asker may do with a topic.
"""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """What a rule allows or denies, by Kafka's numbers."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15
