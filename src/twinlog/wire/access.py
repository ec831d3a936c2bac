"""Access: everything a client needs to reach a site, in one value.

Made by `sites` (for administration and for the users of the file) and by `clientfiles.read`
(for clusters that exist already); turned into a client's own settings here and into files by
`clientfiles.write`. Certificates and keys are PEM text, never paths, so that an Access can be
carried to another process whole. `repr` shows no secret.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Protocol(StrEnum):
    """Kafka's names for how a listener is secured."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class Mechanism(StrEnum):
    """Kafka's names for how a user proves who it is inside SASL."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


@dataclass(frozen=True)
class Access:
    """Addresses and credentials of one client at one site (or at the gate)."""

    bootstrap: tuple[str, ...]
    protocol: Protocol = Protocol.SASL_SSL
    ca_pem: str = field(default="", repr=False)
    cert_pem: str = field(default="", repr=False)  # leaf first, then the chain
    key_pem: str = field(default="", repr=False)  # PKCS#8, not encrypted
    mechanism: Mechanism | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    verify_peer: bool = True  # False only for clusters that exist already, with a warning
    verify_hostname: bool = True
    verify_time: bool = True  # False only to renew certificates of our own nodes that have ended

    def librdkafka(self) -> dict[str, str | int | bool]:
        """The access as settings of librdkafka (confluent-kafka), keys inline as PEM."""
        settings: dict[str, str | int | bool] = {
            "bootstrap.servers": ",".join(self.bootstrap),
            "security.protocol": self.protocol.value,
        }
        if self.protocol in (Protocol.SSL, Protocol.SASL_SSL):
            if self.ca_pem:
                settings["ssl.ca.pem"] = self.ca_pem
            if self.cert_pem:
                settings["ssl.certificate.pem"] = self.cert_pem
                settings["ssl.key.pem"] = self.key_pem
            settings["enable.ssl.certificate.verification"] = self.verify_peer
            settings["ssl.endpoint.identification.algorithm"] = "https" if self.verify_hostname else "none"
        if self.mechanism is not None:
            settings["sasl.mechanism"] = self.mechanism.value
            settings["sasl.username"] = self.username
            settings["sasl.password"] = self.password
        return settings
