"""The keys and certificates of a bus, on disk: two authorities and everything they signed.

`clients` signs what clients meet (servers) and users; `link` signs nodes and Twinlog's own clients,
so that a user's certificate is refused on LINK in the handshake already. Called by `up`, `apply`,
`certs` and whoever needs an Access. Every method may be killed at any moment and called again:

    pki/<realm>/authority.json       which generation signs, which ones are trusted: the one truth
    pki/<realm>/ca-<n>.key, .crt     generation n; the key is written first
    pki/<realm>/trust.crt            all trusted authorities, made from the above
    pki/<realm>/<kind>/<name>.pem    key and chain in one file, as Kafka reads it; replaced whole
    pki/<realm>/<kind>/<name>.key, .crt      the same two apart, made from the .pem
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from cryptography import x509

from twinlog.durable import make_private_directory, write_secret, write_text
from twinlog.errors import SiteError, UsageError
from twinlog.sites import authorities
from twinlog.sites import certificates as made
from twinlog.sites.authorities import Generations, Issued, Kind, Realm, certificates_in
from twinlog.sites.certificates import Authority, State, Wanted
from twinlog.sites.pemfiles import read_certificate, read_key, write_if_changed
from twinlog.spec.model import Certificates


class Phase(StrEnum):
    """How far the exchange of an authority has come."""

    STEADY = "steady"  # one authority, trusted and signing
    BEGUN = "begun"  # the next one is trusted too, the old one signs
    SWITCHED = "switched"  # the next one signs, the old one is still trusted


@dataclass(frozen=True)
class Status:
    """One certificate as `certs status` shows it."""

    path: Path
    subject: str
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    days_left: float
    authority: str  # "clients" or "link"
    state: State


class Pki:
    """All keys and certificates of one bus."""

    def __init__(
        self,
        directory: Path,
        bus: str,
        rules: Certificates,
        now: Callable[[], datetime] = made.utc_now,
    ) -> None:
        self._directory = directory
        self._bus = bus
        self._rules = rules
        self._now = now

    def ensure(self) -> None:
        """Have both authorities and their trust files, making what is missing."""
        for realm in Realm:
            folder = self._directory / realm
            make_private_directory(folder)
            if not (folder / "authority.json").exists():
                number = self._only_generation(realm)
                self._make_generation(realm, number)
                self._write_generations(realm, Generations(signing=number, trusted=(number,)))
            self._write_trust(realm)

    def issue(self, kind: Kind, name: str, names: Collection[str] = (), *, anew: bool = False) -> Issued:
        """Have a good certificate of that name, made anew only when there is a reason or on request."""
        authority = self._authority(kind.realm)
        wanted = self._wanted(kind, name, names)
        paths = self.paths(kind, name)
        if not anew and paths.is_whole and not _why_new(paths.store, wanted, authority, self._now()):
            return paths  # the usual case: nothing is written, by commands that only look least of all
        make_private_directory(paths.store.parent)
        with _alone(self._directory):  # two commands may want the same certificate at once
            why = _why_new(paths.store, wanted, authority, self._now()) or (
                "it was asked for" if anew else ""
            )
            if why:
                key = made.new_key()
                leaf = made.make_leaf(wanted, key.public_key(), authority, self._now())
                # One file holds both halves, so that no moment exists at which they do not fit.
                write_secret(paths.store, made.key_pem(key) + made.certificate_pem(leaf) + authority.pem)
            _take_apart(paths)
        return replace(paths, why=why)

    def renewal_due(self, kind: Kind, name: str) -> datetime:
        """When a certificate that is there should be renewed."""
        present = x509.load_pem_x509_certificate(self.paths(kind, name).chain_pem.encode())
        return made.renewal_due(present, timedelta(seconds=self._rules.renew_before))

    def paths(self, kind: Kind, name: str) -> Issued:
        """Where a certificate lies, or would lie."""
        return authorities.paths(self._directory, kind, name)

    def names(self, kind: Kind) -> list[str]:
        """Whose certificates of a kind there are."""
        return sorted(path.stem for path in (self._directory / kind.realm / kind).glob("*.pem"))

    def remove(self, kind: Kind, name: str) -> None:
        """Delete a certificate and its key; harmless if there is none."""
        paths = self.paths(kind, name)
        with _alone(self._directory):
            for path in (paths.store, paths.key, paths.certificate, paths.store.with_suffix(".memo")):
                path.unlink(missing_ok=True)

    def trust_path(self, realm: Realm) -> Path:
        """The file with every authority that is trusted at present."""
        return self._directory / realm / "trust.crt"

    def trust_pem(self, realm: Realm) -> str:
        """Every authority that is trusted at present, as text."""
        return authorities.trust_pem(self._directory, realm)

    def sign(self, csr_pem: str) -> str:
        """A user's certificate for a key that we never see; the caller checks that the user is declared.

        Only key and common name are taken from the request: other names, usages and the lifetime
        are for us to say.
        """
        request = made.load_request(csr_pem)
        authority = self._authority(Realm.CLIENTS)
        wanted = self._wanted(Kind.USER, made.requested_name(request), ())
        leaf = made.make_leaf(wanted, request.public_key(), authority, self._now())
        return made.certificate_pem(leaf) + authority.pem

    def phase(self, realm: Realm) -> Phase:
        """How far the exchange of an authority has come."""
        generations = self._generations(realm)
        if len(generations.trusted) == 1:
            return Phase.STEADY
        return Phase.SWITCHED if generations.signing == max(generations.trusted) else Phase.BEGUN

    def begin_rotation(self, realm: Realm) -> None:
        """Make the next authority and trust it; the present one goes on signing."""
        phase = self.phase(realm)
        if phase is Phase.SWITCHED:
            raise UsageError(
                f"the exchange of the {realm} authority is not finished",
                hint=f"twinlog certs rotate-ca {realm} --finish",
            )
        if phase is Phase.STEADY:
            signing = self._generations(realm).signing
            self._make_generation(realm, signing + 1)
            self._write_generations(realm, Generations(signing, (signing, signing + 1)))
        self._write_trust(realm)

    def switch_rotation(self, realm: Realm) -> None:
        """Let the next authority sign; `issue` then makes every certificate anew."""
        phase = self.phase(realm)
        if phase is Phase.STEADY:
            raise UsageError(
                f"no exchange of the {realm} authority has begun",
                hint=f"twinlog certs rotate-ca {realm} --begin",
            )
        if phase is Phase.BEGUN:
            trusted = self._generations(realm).trusted
            self._write_generations(realm, Generations(max(trusted), trusted))
        self._write_trust(realm)

    def finish_rotation(self, realm: Realm) -> None:
        """Trust the new authority only, and delete the key of the old one."""
        if self.phase(realm) is Phase.BEGUN:
            raise UsageError(
                f"the new {realm} authority does not sign yet",
                hint=f"twinlog certs rotate-ca {realm} --switch",
            )
        signing = self._generations(realm).signing
        self._write_generations(realm, Generations(signing, (signing,)))
        self._write_trust(realm)
        for path in (self._directory / realm).glob("ca-*.*"):
            if path.stem != f"ca-{signing}":
                path.unlink()

    def status(self) -> list[Status]:
        """Every certificate of the bus, the authorities first."""
        return [self._status(path) for path in self._certificates()]

    def _certificates(self) -> Iterator[Path]:
        for realm in Realm:
            for number in self._generations(realm).trusted:
                yield self._directory / realm / f"ca-{number}.crt"
        for realm in Realm:
            yield from sorted((self._directory / realm).glob("*/*.crt"))

    def _status(self, path: Path) -> Status:
        certificate = read_certificate(path)
        now = self._now()
        end = certificate.not_valid_after_utc
        return Status(
            path=path,
            subject=made.subject_text(certificate),
            names=tuple(sorted(made.names_of(certificate))),
            not_before=certificate.not_valid_before_utc,
            not_after=end,
            days_left=(end - now) / timedelta(days=1),
            authority=path.relative_to(self._directory).parts[0],
            state=made.state_of(certificate, timedelta(seconds=self._rules.renew_before), now),
        )

    def _wanted(self, kind: Kind, name: str, names: Collection[str]) -> Wanted:
        return Wanted(
            bus=self._bus,
            kind=kind,
            name=name,
            names=made.normal_names(names),
            validity=timedelta(seconds=self._rules.validity),
            renew_before=timedelta(seconds=self._rules.renew_before),
        )

    def _authority(self, realm: Realm) -> Authority:
        return self._read(realm, self._generations(realm).signing)

    def _make_generation(self, realm: Realm, number: int) -> None:
        base = self._directory / realm / f"ca-{number}"
        key_path, certificate_path = base.with_suffix(".key"), base.with_suffix(".crt")
        if certificate_path.exists():
            return
        # A key without a certificate is what a killed command leaves behind; it is as good as new.
        if not key_path.exists():
            write_secret(key_path, made.key_pem(made.new_key()))
        validity = timedelta(seconds=self._rules.ca_validity)
        certificate = made.make_authority(
            self._bus, f"{realm}-{number}", read_key(key_path), validity, self._now()
        )
        write_text(certificate_path, made.certificate_pem(certificate))

    def _only_generation(self, realm: Realm) -> int:
        """The authority that is there although nobody remembers it; the first one where there is none."""
        folder = self._directory / realm
        found = sorted(folder.glob("ca-*.crt"))
        if len(found) > 1:
            names = " and ".join(path.name for path in found)
            raise SiteError(
                f"which {realm} authority signs is forgotten, and there are {names}",
                where=str(folder / "authority.json"),
                hint='put it back from a copy, or write it: {"signing": NEWEST, "trusted": [ALL]}',
            )
        return int(found[0].stem.removeprefix("ca-")) if found else 1

    def _read(self, realm: Realm, number: int) -> Authority:
        base = self._directory / realm / f"ca-{number}"
        return Authority(read_certificate(base.with_suffix(".crt")), read_key(base.with_suffix(".key")))

    def _generations(self, realm: Realm) -> Generations:
        return authorities.generations(self._directory, realm)

    def _write_generations(self, realm: Realm, generations: Generations) -> None:
        raw = {"signing": generations.signing, "trusted": list(generations.trusted)}
        write_text(self._directory / realm / "authority.json", json.dumps(raw) + "\n")

    def _write_trust(self, realm: Realm) -> None:
        write_if_changed(self.trust_path(realm), self.trust_pem(realm), write_text)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    with (directory / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _why_new(store: Path, wanted: Wanted, authority: Authority, now: datetime) -> str:
    try:
        present = x509.load_pem_x509_certificate(certificates_in(store.read_text()).encode())
    except FileNotFoundError:
        return "there was none"
    except ValueError:
        return "it could not be read"
    return made.why_reissue(present, wanted, authority, now)


def _take_apart(paths: Issued) -> None:
    text = paths.store.read_text()
    chain = certificates_in(text)
    write_if_changed(paths.key, text.removesuffix(chain), write_secret)
    write_if_changed(paths.certificate, chain, write_text)
