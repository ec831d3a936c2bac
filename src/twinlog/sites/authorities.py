"""The two authorities of a bus and what they sign, by name and place; what `pki` keeps, without judging it.

Apart from `pki` and `certificates`, which need a library that takes longer to import than most commands
take to run: whoever only shows a certificate, or trusts one, reads texts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from twinlog.errors import SiteError

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


class Realm(StrEnum):
    """The two authorities of a bus; neither accepts what the other signed."""

    CLIENTS = "clients"  # servers that clients talk to, and users
    LINK = "link"  # nodes among themselves, and Twinlog's own clients


class Kind(StrEnum):
    """What a certificate is for; the value stands in it as the OU."""

    NODE = "node"
    SERVER = "server"
    USER = "user"
    LINK = "link"
    VOTE = "vote"

    @property
    def realm(self) -> Realm:
        """The authority that signs this kind."""
        return Realm.CLIENTS if self in (Kind.SERVER, Kind.USER) else Realm.LINK


@dataclass(frozen=True)
class Issued:
    """Where a certificate lies, and why it was made in this call (empty: it was there)."""

    certificate: Path
    key: Path
    store: Path
    why: str = ""

    @property
    def is_whole(self) -> bool:
        """True if all its files are there and say the same."""
        try:
            return self.store.read_text() == self.key.read_text() + self.certificate.read_text()
        except FileNotFoundError:
            return False

    @property
    def chain_pem(self) -> str:
        """The certificate and its authority, as text."""
        return certificates_in(self.store.read_text())

    @property
    def key_pem(self) -> str:
        """The private key, as text."""
        text = self.store.read_text()
        return text.removesuffix(certificates_in(text))


class Generations(NamedTuple):
    """Which generation of an authority signs, and which ones are trusted."""

    signing: int
    trusted: tuple[int, ...]


def paths(directory: Path, kind: Kind, name: str) -> Issued:
    """Where a certificate lies, or would lie, in the directory of all keys."""
    folder = directory / kind.realm / kind
    return Issued(folder / f"{name}.crt", folder / f"{name}.key", folder / f"{name}.pem")


def generations(directory: Path, realm: Realm) -> Generations:
    """What is written down about an authority."""
    path = directory / realm / "authority.json"
    try:
        raw = json.loads(path.read_text())
        return Generations(int(raw["signing"]), tuple(int(number) for number in raw["trusted"]))
    except FileNotFoundError:
        raise SiteError(
            f"the {realm} authority does not exist yet", where=str(path), hint="twinlog up"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise SiteError(
            f"the state of the {realm} authority cannot be read: {error!r}", where=str(path)
        ) from error


def trust_pem(directory: Path, realm: Realm) -> str:
    """Every authority that is trusted at present, as text."""
    numbers = generations(directory, realm).trusted
    return "".join(authority_pem(directory, realm, number) for number in numbers)


def authority_pem(directory: Path, realm: Realm, number: int) -> str:
    """One generation's certificate, as text: the first one in its file."""
    path = directory / realm / f"ca-{number}.crt"
    try:
        text = certificates_in(path.read_text())
    except FileNotFoundError as error:
        raise SiteError("a certificate is missing", where=str(path), hint="twinlog certs status") from error
    except UnicodeDecodeError:
        text = ""
    inside, end, _ = text.partition(_END)
    if not end:
        raise SiteError("this is not a certificate in PEM form", where=str(path))
    return f"{inside}{end}\n"


def certificates_in(store: str) -> str:
    """The part of a store after its key."""
    start = store.find(_BEGIN)
    return store[start:] if start >= 0 else ""
