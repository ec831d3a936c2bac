"""Twinlog: a message bus on two Kafka sites that survives the loss of one."""

__version__ = "0.1.0"
