"""The only package that imports Kafka drivers: access, clients, raw protocol, errors."""

from twinlog.wire.deferral import defer

defer()
