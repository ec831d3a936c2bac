"""The orderers of a bus on this machine: their files, and the processes that `order up` leaves behind.

Everything lies in one directory of the bus. Identities, genesis block and ports are made once and kept;
each orderer's file is written anew at every `up`, because the site that it orders at may have changed.
What a site must be is asked of `limits` before anything is written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from twinlog.durable import make_private_directory, write_secret, write_text
from twinlog.errors import FileProblems, Problem, SiteError, UsageError
from twinlog.ordering import configtx, crypto, genesis, limits, mspdir
from twinlog.ordering.callers import Target
from twinlog.ordering.fleet_files import configtx_text, orderer_text
from twinlog.ordering.identity import Signer
from twinlog.ordering.localconfig import READ_ALL, READ_TWIN
from twinlog.sites.background import Background
from twinlog.sites.home import Home
from twinlog.sites.ports import free_ports
from twinlog.spec import effective
from twinlog.spec.model import Auth
from twinlog.wire.access import Access

DIRECTORY = "ordering"
SYSTEM_CHANNEL = "system"
ORDERER_MSP = "OrdererMSP"
CLIENT_MSP = "ClientMSP"
CLIENTS = 8
HOST = "127.0.0.1"
USER_LINES = "{auth: mtls, produce: ['*'], consume: ['*'], create: ['*']}"


@dataclass(frozen=True)
class Options:
    """What `order up` can be told; sizes and times matter until the genesis block is made."""

    orderers: int = 3
    site: str = ""  # empty: the active one
    user: str = "orderer"
    replication: int = 3
    min_insync: int = 2
    batch_timeout: str = "2s"
    max_messages: int = 500
    absolute_max_bytes: int = 10 * 1024 * 1024
    preferred_max_bytes: int = 1024 * 1024
    read: str = ""  # empty: twin where there is a standby
    tls: bool = True
    mutual_tls: bool = False


@dataclass(frozen=True)
class Member:
    """One orderer."""

    name: str
    port: int
    operations_port: int

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{HOST}:{self.port}"


@dataclass(frozen=True)
class Recorded:
    """What is kept between two calls."""

    members: tuple[Member, ...] = ()
    site: str = ""
    user: str = ""
    read: str = READ_ALL
    tls: bool = True
    mutual_tls: bool = False
    channels: list[str] = field(default_factory=list)


class Fleet:
    """All orderers of one bus."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.directory = home.directory / DIRECTORY
        self._file = self.directory / "fleet.json"
        self._crypto = self.directory / "crypto"
        self.profiles = self.directory / "configtx.yaml"
        self.genesis = self.directory / "genesis.block"

    def recorded(self) -> Recorded:
        """What is known of it; an error if it was never started."""
        found = self.find()
        if found is None:
            raise SiteError(
                f"bus '{self._home.bus.bus}' has no orderers",
                where=str(self.directory),
                hint="twinlog order up",
            )
        return found

    def find(self) -> Recorded | None:
        """What is known of it, if it was ever started."""
        try:
            told: dict[str, Any] = json.loads(self._file.read_text())
        except FileNotFoundError:
            return None
        return Recorded(**{**told, "members": tuple(Member(**one) for one in told["members"])})

    def check(self, options: Options) -> list[Problem]:
        """Refuse a site that cannot keep the promises; what is only doubtful is returned."""
        figures = self._figures(options)
        wrong = [Problem(0, 0, one.what, one.hint, path="order up") for one in limits.faults(figures)]
        if wrong:
            raise FileProblems(str(self._home.file), wrong, hint="twinlog order up --help")
        return [
            Problem(0, 0, one.what, one.hint, path="order up", severity="warning")
            for one in limits.doubts(figures)
        ]

    def prepare(self, options: Options) -> Recorded:
        """Write all that the orderers need."""
        site = options.site or self._home.state().active
        access = self._user_access(options.user, site)
        make_private_directory(self.directory)
        before = self.find() or Recorded()
        members = self._members(options.orderers, before.members)
        for member in before.members[len(members) :]:
            self.background(member).dismiss()  # fewer are wanted; its ledger stays
        self._write_crypto(members)
        if not self.genesis.exists():
            self._write_genesis(options, members, access)
        other = next((name for name in self._home.bus.sites if name != site), None)
        is_lost = other is not None and other in self._home.state().lost
        read = options.read or (READ_TWIN if other is not None and not is_lost else READ_ALL)
        if read == READ_TWIN and other is None:
            raise UsageError("there is no standby to wait for", hint="--read all")
        standby = self._user_access(options.user, other).bootstrap if read == READ_TWIN and other else ()
        for member in members:
            if self._write_member(member, options, access, read, standby):
                self.background(member).dismiss()  # it goes by what it was told before
        recorded = Recorded(
            members, site, options.user, read, options.tls, options.mutual_tls, list(before.channels)
        )
        self._write(recorded)
        return recorded

    def launch(self, recorded: Recorded) -> dict[str, int]:
        """Have all of them running; their pids by name."""
        begun = [(one, one.spawn()) for one in self.backgrounds(recorded)]
        return {one.name: one.wait(process) for one, process in begun}

    def dismiss(self) -> list[str]:
        """End all that run; their names."""
        found = self.find()
        return [] if found is None else [one.name for one in self.backgrounds(found) if one.dismiss()]

    def backgrounds(self, recorded: Recorded) -> Iterator[Background]:
        """The orderers as processes."""
        for member in recorded.members:
            yield self.background(member)

    def background(self, member: Member) -> Background:
        """One orderer as a process."""
        file = self.directory / member.name / "orderer.yaml"
        command = (sys.executable, "-m", "twinlog.ordering.process", str(file))
        arguments = (str(self.directory), member.name)
        return Background(member.name, self.directory, (*command, *arguments), timeout_s=60.0)

    def target(self, member: Member, recorded: Recorded) -> Target:
        """How its clients reach an orderer."""
        if not recorded.tls:
            return Target(member.address)
        root = (self._crypto / ORDERER_MSP / "tlsca" / "ca.pem").read_bytes()
        if not recorded.mutual_tls:
            return Target(member.address, root)
        tls = self._crypto / CLIENT_MSP / "client-0" / "tls"
        return Target(
            member.address, root, (tls / "server.crt").read_bytes(), (tls / "server.key").read_bytes()
        )

    def targets(self, recorded: Recorded) -> dict[str, Target]:
        """How all are reached, by name."""
        return {member.name: self.target(member, recorded) for member in recorded.members}

    def client(self, number: int = 0) -> Signer:
        """One of those who write and read."""
        return mspdir.read_signer(
            self._crypto / CLIENT_MSP / f"client-{number % CLIENTS}" / "msp", CLIENT_MSP
        )

    def admin(self, mspid: str) -> Signer:
        """Who may change configurations."""
        return mspdir.read_signer(self._crypto / mspid / crypto.ADMIN / "msp", mspid)

    def add_channel(self, channel_id: str) -> None:
        """Remember a channel that was created, for commands that are about all of them."""
        found = self.recorded()
        if channel_id not in found.channels:
            found.channels.append(channel_id)
            self._write(found)

    def _write(self, recorded: Recorded) -> None:
        write_text(self._file, json.dumps(asdict(recorded), indent=2) + "\n")

    def _figures(self, options: Options) -> limits.Figures:
        (site,) = self._home.chosen(options.site or self._home.state().active)
        bus = self._home.bus
        brokers = len(bus.sites[site].broker_specs)
        return limits.Figures(
            site=site,
            brokers=brokers,
            replication=options.replication,
            min_insync=options.min_insync,
            absolute_max_bytes=options.absolute_max_bytes,
            preferred_max_bytes=options.preferred_max_bytes,
            replica_fetch_bytes=effective.setting_bytes(bus, site, effective.REPLICA_FETCH_BYTES),
            message_bytes=effective.setting_bytes(bus, site, effective.MESSAGE_BYTES),
            request_bytes=effective.setting_bytes(bus, site, effective.REQUEST_BYTES),
            bootstrap=brokers,
            retention_bytes=effective.setting_bytes(bus, site, "log.retention.bytes"),
        )

    def _user_access(self, user: str, site: str) -> Access:
        declared = self._home.bus.users.get(user)
        if declared is None or declared.auth is not Auth.MTLS:
            raise UsageError(
                f"orderers come as a user with a certificate, and the file has no such user '{user}'",
                where=str(self._home.file),
                hint=f"users: {{{user}: {USER_LINES}}}, then twinlog apply",
            )
        return self._home.user_access(user, site)

    def _members(self, count: int, before: tuple[Member, ...]) -> tuple[Member, ...]:
        """As many as are wanted; those that were there keep their ports."""
        missing = count - len(before)
        if missing <= 0:
            return before[:count]
        taken = {port for one in before for port in (one.port, one.operations_port)}
        ports = free_ports(HOST, 2 * missing, seed=str(self.directory), avoid=frozenset(taken))
        added = [
            Member(f"orderer-{len(before) + index}", ports[2 * index], ports[2 * index + 1])
            for index in range(missing)
        ]
        return (*before, *added)

    def _write_crypto(self, members: tuple[Member, ...]) -> None:
        hosts = {member.name: (HOST, "localhost") for member in members}
        crypto.write_organisation(self._crypto, ORDERER_MSP, orderers=hosts)
        crypto.write_organisation(
            self._crypto, CLIENT_MSP, clients=[f"client-{number}" for number in range(CLIENTS)]
        )

    def _write_genesis(self, options: Options, members: tuple[Member, ...], access: Access) -> None:
        addresses = [member.address for member in members]
        write_text(self.profiles, configtx_text(asdict(options), addresses, access.bootstrap))
        profile = configtx.load(self.profiles, "System", {})
        block = genesis.genesis_block(profile, SYSTEM_CHANNEL)
        write_text(self.genesis, block.SerializeToString())

    def _write_member(
        self, member: Member, options: Options, access: Access, read: str, standby: tuple[str, ...]
    ) -> bool:
        """Write what one orderer is told; True if that is something else than before."""
        directory = self.directory / member.name
        make_private_directory(directory)
        keys = {"key.pem": access.key_pem, "cert.pem": access.cert_pem, "ca.pem": access.ca_pem}
        is_new = False
        for name, content in keys.items():
            is_new |= _differs(directory / name, content)
            write_secret(directory / name, content)
        text = orderer_text(
            member.port,
            member.operations_port,
            {
                **asdict(options),
                "read": read,
                "brokers": access.bootstrap,
                "standby": standby,
                "genesis": self.genesis,
                "own": self._crypto / ORDERER_MSP / member.name,
                "clients": self._crypto / CLIENT_MSP / "tlsca" / "ca.pem",
                "mspid": ORDERER_MSP,
                "ledger": directory / "ledger",
            },
        )
        file = directory / "orderer.yaml"
        is_new |= _differs(file, text)
        write_text(file, text)
        return is_new


def _differs(file: Path, content: str) -> bool:
    """True if a file does not hold what is to be written to it."""
    return not file.exists() or file.read_text() != content


def creation(fleet: Fleet, channel_id: str) -> bytes:
    """The update that creates a channel of the clients' organisation, signed."""
    profile = configtx.load(fleet.profiles, "Channel", {})
    update = genesis.creation_update(profile, channel_id)
    return genesis.signed_update(update, [fleet.admin(CLIENT_MSP)])
