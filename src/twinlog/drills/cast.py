"""Who takes part in a drill's load: real clients, what each of them does, and how their records are named.

Scenarios choose a cast, `load` brings it on. Pure. A record's value names it, "CLIENT:NUMBER"; Kafka's
own test programs can only write "PREFIX.NUMBER", so each of them has a number that stands for its name,
and whoever reads a value gets the name back from `Names`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

ORDERS, PAYMENTS = "orders", "payments"
USER = "app"
KEYS = 240  # of each client: with a few, one partition would have twice its share


class Program(StrEnum):
    """What a client is written with; the words are the kinds of the history."""

    JAVA = "java"
    LIBRDKAFKA = "librdkafka"
    LIBRARY = "twin"


@dataclass(frozen=True)
class Client:
    """One client: a writer has acks, a reader has a group."""

    name: str
    program: Program
    topics: tuple[str, ...] = (ORDERS,)
    acks: str = ""
    idempotent: bool = True
    transactional: bool = False
    group: str = ""
    new_protocol: bool = False  # of groups, in Java: KIP-848
    tuned: bool = True  # has what printed client files say of hanging sites, else its library's defaults
    patience_s: float = 6.0  # of a program, for each step of a transaction; it begins anew behind that

    @property
    def topic(self) -> str:
        """The topic that a writer writes to."""
        return self.topics[0]

    @property
    def writes(self) -> bool:
        """True for a writer."""
        return bool(self.acks)

    @property
    def figure(self) -> str:
        """How figures call it: readers count as groups."""
        return self.name if self.writes else f"group {self.group}"


JAVA_ALL = Client("java-all", Program.JAVA, acks="all")
JAVA_ONE = Client("java-1", Program.JAVA, acks="1", idempotent=False)
IDEMPOTENT = Client("rd-idempotent", Program.LIBRDKAFKA, acks="all")
PLAIN = Client("rd-plain", Program.LIBRDKAFKA, acks="all", idempotent=False)
TRANSACTIONS = Client("rd-transactions", Program.LIBRDKAFKA, (PAYMENTS,), acks="all", transactional=True)
TWIN = Client("library-twin", Program.LIBRARY, acks="twin")
JAVA_CLASSIC = Client("java-classic", Program.JAVA, group="java-classic")
JAVA_NEW = Client("java-new", Program.JAVA, group="java-new", new_protocol=True)
GROUP = Client("rd-group", Program.LIBRDKAFKA, (ORDERS, PAYMENTS), group="rd-group")
TWIN_READER = Client("library-reader", Program.LIBRARY, group="library-reader")

EVERYBODY = (
    JAVA_ALL,
    JAVA_ONE,
    IDEMPOTENT,
    PLAIN,
    TRANSACTIONS,
    TWIN,
    JAVA_CLASSIC,
    JAVA_NEW,
    GROUP,
    TWIN_READER,
)


# Where no site moves, a program that waits as long as its library tries is told of no error.
STAYING = tuple(replace(one, patience_s=20.0) if one is TRANSACTIONS else one for one in EVERYBODY)


@dataclass(frozen=True)
class Names:
    """The names behind the prefixes of Java's records."""

    prefixes: Mapping[str, str]

    @classmethod
    def of(cls, clients: Iterable[Client]) -> Names:
        """Give every writer in Java a number."""
        java = [client.name for client in clients if client.program is Program.JAVA and client.writes]
        return cls({str(number): name for number, name in enumerate(java, start=1)})

    def prefix(self, client: Client) -> str:
        """The number of a writer in Java."""
        return next(number for number, name in self.prefixes.items() if name == client.name)

    def value(self, written: str | bytes | None) -> str:
        """What a value is called in the history."""
        text = written.decode(errors="backslashreplace") if isinstance(written, bytes) else written or ""
        prefix, _, number = text.partition(".")
        return f"{self.prefixes[prefix]}:{number}" if prefix in self.prefixes else text


@dataclass(frozen=True)
class Part:
    """What the program of one client is told; no secret is in it."""

    client: Client
    names: Names
    bus_file: Path
    history: Path
    rate: float  # records a second

    def encode(self) -> str:
        """As a file."""
        told: dict[str, Any] = asdict(self)
        return json.dumps(told, default=str)

    @classmethod
    def decode(cls, text: str) -> Part:
        """Out of a file."""
        told = json.loads(text)
        client = told["client"]
        client["program"], client["topics"] = Program(client["program"]), tuple(client["topics"])
        return cls(
            Client(**client),
            Names(told["names"]["prefixes"]),
            Path(told["bus_file"]),
            Path(told["history"]),
            told["rate"],
        )
