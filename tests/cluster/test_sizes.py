"""The biggest batch that the sites take, through printed client files, and one byte more.

A batch of one uncompressed record: 61 bytes of its own, and for a record of this size 13 around the
value. Its size is read from the segments of every copy on disk, not taken from what a client says.
"""

from __future__ import annotations

import struct
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.cluster import programs
from tests.cluster.conftest import Bus, Site
from tests.cluster.programs import RUN_TIMEOUT_S, Console, run, succeeded
from tests.cluster.test_clients import Print, at_both_sites, lines_of, printed, spark_options
from twinlog.wire import canary, offsets
from twinlog.wire.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster

TOPIC = "big"
PLACE = (TOPIC, 0)
BIGGEST_BATCH = 15_728_640
BIGGEST_VALUE = BIGGEST_BATCH - 61 - 13
BATCH_START = struct.Struct(">qi")  # base offset, and the length of what follows
COPIES = 3
