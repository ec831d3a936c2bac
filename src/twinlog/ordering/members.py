"""All membership providers of a channel, and a memory of the identities that they have met.

Made by `channelconfig` with each config and asked for each message: whom the creator of a signature header
names, and whether he is what a policy's principal asks for. An identity's certificate is read and judged
once and remembered for as long as the config holds. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, Protocol

from google.protobuf.message import DecodeError

from twinlog.ordering.identity import LONGEST_BYTES, Identity
from twinlog.ordering.msp import Msp, Version
from twinlog.ordering.proto import common_pb2, msp_pb2

_FABRIC, _IDEMIX = 0, 1  # the type of an MSPConfig
_REMEMBERED: Final = 4096  # identities a channel keeps in mind; more are only slower


class Provider(Protocol):
    """What a channel asks of a membership provider."""

    mspid: str
    tls_roots: tuple[bytes, ...]

    def identity(self, pem: bytes) -> Identity:
        """Read an identity; raises ValueError if it is none of the provider's."""

    def satisfies(self, identity: Identity, principal: common_pb2.MSPPrincipal) -> bool:
        """True if an identity of this provider is what a principal asks for."""


class Anonymous:
    """A provider of identities without certificates (idemix): known by name, and none of them is taken.

    A channel may have such an organisation beside others, and goes on working for those.
    """

    tls_roots: tuple[bytes, ...] = ()

    def __init__(self, mspid: str) -> None:
        self.mspid = mspid

    def identity(self, pem: bytes) -> Identity:
        """Take nobody."""
        raise ValueError(f"identities of {self.mspid} have no certificates, and are not supported")

    def satisfies(self, identity: Identity, principal: common_pb2.MSPPrincipal) -> bool:
        """Nobody is anything here."""
        return False


class Members:
    """All membership providers of a channel."""

    def __init__(self, msps: Iterable[Provider]) -> None:
        self.msps: Mapping[str, Provider] = {msp.mspid: msp for msp in msps}
        # Kept with the object: a new configuration makes new Members, and nothing old is believed.
        self._find = lru_cache(maxsize=_REMEMBERED)(self._look_up)

    def identity(self, creator: bytes) -> Identity | None:
        """Whom a serialized identity names; None if no provider knows it."""
        return self._find(creator) if len(creator) <= LONGEST_BYTES else self._look_up(creator)

    def satisfies(self, identity: Identity, principal: common_pb2.MSPPrincipal) -> bool:
        """True if an identity is what a principal asks for."""
        return self.msps[identity.mspid].satisfies(identity, principal)

    def _look_up(self, creator: bytes) -> Identity | None:
        try:
            named = msp_pb2.SerializedIdentity.FromString(creator)
            msp = self.msps.get(named.mspid)
            return msp.identity(named.id_bytes) if msp else None
        except (DecodeError, ValueError):
            return None


def from_config(config: msp_pb2.MSPConfig, version: Version) -> Provider:
    """The provider that a channel's config describes; raises ValueError if it cannot be one."""
    try:
        if config.type == _FABRIC:
            return Msp(msp_pb2.FabricMSPConfig.FromString(config.config), version)
        if config.type == _IDEMIX:
            return Anonymous(msp_pb2.IdemixMSPConfig.FromString(config.config).name)
        raise ValueError(f"membership providers of type {config.type} are not known")
    except DecodeError:
        raise ValueError("the configuration of a membership provider cannot be read") from None
