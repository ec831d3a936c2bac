"""The records of a channel's partition: CONNECT, TIMETOCUT and REGULAR, as bytes. Pure.

`chain` writes them, `consuming` reads them. The bytes are those that every other orderer on the partition
reads: zero values are absent, so a message that goes through the log for the first time at config
sequence 0 has its class and nothing else behind the envelope.
"""

from __future__ import annotations

from twinlog.ordering.proto import orderer_pb2

UNKNOWN = orderer_pb2.KafkaMessageRegular.UNKNOWN
NORMAL = orderer_pb2.KafkaMessageRegular.NORMAL
CONFIG = orderer_pb2.KafkaMessageRegular.CONFIG
KEY = b"0"  # every record's key: the partition's number


def connect() -> bytes:
    """The record that an orderer writes first, so that the partition is not empty."""
    return orderer_pb2.KafkaMessage(connect=orderer_pb2.KafkaMessageConnect()).SerializeToString()


def time_to_cut(number: int) -> bytes:
    """The record that has the block of this number cut."""
    cut = orderer_pb2.KafkaMessageTimeToCut(block_number=number)
    return orderer_pb2.KafkaMessage(time_to_cut=cut).SerializeToString()


def normal(envelope: bytes, sequence: int, original_offset: int = 0) -> bytes:
    """A transaction, checked at a config sequence; with the offset it had before, if it is sent again."""
    return _regular(envelope, sequence, NORMAL, original_offset)


def config(envelope: bytes, sequence: int, original_offset: int = 0) -> bytes:
    """A configuration, which goes into a block of its own."""
    return _regular(envelope, sequence, CONFIG, original_offset)


def _regular(
    envelope: bytes,
    sequence: int,
    message_class: orderer_pb2.KafkaMessageRegular.Class,
    original_offset: int,
) -> bytes:
    regular = orderer_pb2.KafkaMessageRegular(
        payload=envelope,
        config_seq=sequence,
        message_class=message_class,
        original_offset=original_offset,
    )
    return orderer_pb2.KafkaMessage(regular=regular).SerializeToString()
