"""A bus on this machine: what is declared, what is remembered, its keys and passwords, in one place.

Every command above `sites` works on a Home. It answers where things are and how to reach a site;
it starts nothing. For a site that exists already it reads the client file that the user named.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from twinlog.errors import Problem, SiteError, UsageError
from twinlog.sites import layout as layouts
from twinlog.sites.authorities import Issued, Kind, Realm, trust_pem
from twinlog.sites.credentials import Credentials, credentials
from twinlog.sites.layout import Listener, Node, SiteLayout, allocate, lay_out
from twinlog.sites.passwords import Passwords
from twinlog.sites.ports import free_ports
from twinlog.sites.state import DIRECTORY, BusState, StateFile
from twinlog.spec.model import Auth, Bus, Role, User
from twinlog.wire.access import Access, Mechanism, Protocol

if TYPE_CHECKING:  # imported where they are needed, because most commands do not need them
    from twinlog.sites.pki import Pki
    from twinlog.sites.properties import TlsFiles
    from twinlog.wire.clientfiles.read import ClientSettings

MECHANISMS = {Auth.SCRAM: Mechanism.SCRAM_SHA_512, Auth.SCRAM_256: Mechanism.SCRAM_SHA_256}


class Home:
    """The directory of one bus and what the file says about it."""

    def __init__(
        self,
        bus: Bus,
        file: Path,
        environment: Mapping[str, str] = os.environ,
        warn: Callable[[Problem, str], None] = lambda problem, file: None,
        memos: bool = True,
    ) -> None:
        self.bus = bus
        # By one name, however it was reached: nodes are known by the paths that they were started with.
        self.file = file.absolute().parent.resolve() / file.name
        self._warn = warn
        self._memos = memos
        self.directory = self.file.parent / DIRECTORY
        self.state_file = StateFile(self.directory)
        self.passwords = Passwords(self.directory / "secrets", self.file.parent, environment)

    @functools.cached_property
    def pki(self) -> Pki:
        """The keys and certificates, for whoever makes or judges them."""
        from twinlog.sites.pki import Pki  # noqa: PLC0415

        return Pki(self.directory / "pki", self.bus.bus, self.bus.certificates)

    def allocate(self) -> BusState:
        """Decide what every declared node keeps for life, and write it down before it is used."""
        state = self.remembered()
        nodes = [node for site in state.sites.values() for node in site.nodes.values()]
        taken = {port for node in nodes for port in node.ports.values()}

        def pick(host: str, count: int) -> list[int]:
            ports = free_ports(host, count, seed=str(self.directory), avoid=frozenset(taken))
            taken.update(ports)
            return ports

        allocate(self.bus, state, self.directory, pick)
        state.directory = str(self.directory)
        self.state_file.write(state)
        return state

    def remembered(self) -> BusState:
        """What is remembered, or what a new bus begins with."""
        state = self.state_file.read()
        if state is None:
            self.refuse_lost_state()
            return BusState(bus=self.bus.bus, active=self.bus.active_site)
        self._refuse_other(state)
        return state

    def refuse_other_bus(self) -> None:
        """Whatever is here belongs to the bus that was brought up here, and to no other of another name."""
        with suppress(SiteError):  # a state that cannot be read is told by whoever needs it
            state = self.state_file.read()
            if state is not None:
                self._refuse_other(state)

    def _refuse_other(self, state: BusState) -> None:
        if state.bus != self.bus.bus:
            raise UsageError(
                f"this directory belongs to bus '{state.bus}' and the file declares '{self.bus.bus}'",
                where=str(self.directory),
                hint="give the bus its old name back, or move the file to a directory of its own",
            )

    def state(self) -> BusState:
        """What is remembered; an error for a bus that was never brought up."""
        state = self.state_file.read()
        if state is None:
            self.refuse_lost_state()
            raise SiteError(
                f"bus '{self.bus.bus}' was never brought up", where=str(self.directory), hint="twinlog up"
            )
        self._refuse_forgotten(state)
        self._refuse_moved(state)
        return state

    def _refuse_moved(self, state: BusState) -> None:
        """Nodes of a bus whose directory was moved are known, and know their disks, by the old one."""
        if state.directory and state.directory != str(self.directory) and state.sites:
            raise SiteError(
                f"this bus was brought up in {state.directory}, and its nodes may still run from there",
                where=str(self.directory),
                hint=f"mv {self.directory} {state.directory}",
            )

    def refuse_lost_state(self) -> None:
        """Nodes that were once started are still there: nobody may decide anew who they are."""
        nodes = (self.directory / "sites").glob("*/*/server.properties")
        if not self.state_file.path.exists() and any(nodes):
            raise SiteError(
                f"the state of bus '{self.bus.bus}' is lost, and its nodes are there",
                where=str(self.state_file.path),
                hint="twinlog recover",
            )

    def _refuse_forgotten(self, state: BusState) -> None:
        """A site that only left the file still has its nodes and records, and no command would reach them."""
        for name in state.sites:
            if name not in self.bus.sites:
                raise SiteError(
                    f"site {name} is still there and the file no longer has it",
                    where=str(self.file),
                    hint=f"give it its lines back; to be rid of it: twinlog destroy --site {name} --yes",
                )

    @property
    def local_sites(self) -> tuple[str, ...]:
        """The sites that Twinlog runs."""
        return tuple(name for name, site in self.bus.sites.items() if not site.exists_already)

    def chosen(self, site: str | None) -> tuple[str, ...]:
        """One named site, or all of them."""
        if site is None:
            return tuple(self.bus.sites)
        if site not in self.bus.sites:
            known = ", ".join(self.bus.sites)
            raise UsageError(
                f"the file has no site '{site}'", where=str(self.file), hint=f"its sites are {known}"
            )
        return (site,)

    def must_run(self, site: str, doing: str) -> None:
        """Refuse what can only be done to a site that Twinlog runs."""
        if self.bus.sites[site].exists_already:
            raise UsageError(
                f"cannot {doing} site {site}: that cluster exists already, and Twinlog only reaches it",
                where=str(self.file),
                hint="do it with the tools that run that cluster",
            )

    def layout(self, site: str) -> SiteLayout:
        """The nodes of a site that Twinlog runs."""
        state = self.state()
        if site not in state.sites:
            raise SiteError(f"site {site} was never brought up", hint=f"twinlog up --site {site}")
        return lay_out(self.bus, site, state, self.directory)

    def role(self, site: str) -> Role:
        """What a site is to the bus now; before the first `up`, what the file wants."""
        state = self.state_file.read()
        if state is None:
            self.refuse_lost_state()  # what the file wants may be long past
        active = state.active if state is not None else self.bus.active_site
        return Role.ACTIVE if site == active else Role.STANDBY

    def issue_node_certificates(self, node: Node, anew: Collection[Realm] = ()) -> list[Issued]:
        """Have a node's certificates good for a while; returns them all, each with why it was made anew."""
        own = {node.listen, node.advertise, "localhost"}
        served = own | self._gate_names() | set(self.bus.certificates.names)
        unusable = {"", "0.0.0.0", "::"}  # addresses to listen on, not to be known by
        wanted = {Kind.NODE: own}
        if node.kind is layouts.Kind.BROKER:
            wanted[Kind.SERVER] = served
        return [
            self.pki.issue(kind, f"{kind}-{node.id}", names - unusable, anew=kind.realm in anew)
            for kind, names in wanted.items()
        ]

    def _gate_names(self) -> set[str]:
        """What clients may call the bus: TLS passes through the gate, so brokers answer to its names."""
        gate = self.bus.gate
        addresses = [gate.address] + ([gate.tls_address] if gate.tls_address is not None else [])
        hosts = {address.rpartition(":")[0].strip("[]") for address in addresses}
        return hosts | ({gate.dns.name} if gate.dns is not None else set())

    def tls_files(self, node: Node) -> TlsFiles:
        """Where a node finds its certificates."""
        from twinlog.sites.properties import TlsFiles  # noqa: PLC0415

        return TlsFiles(
            client_store=str(self.pki.paths(Kind.SERVER, f"server-{node.id}").store),
            client_trust=str(self.pki.trust_path(Realm.CLIENTS)),
            link_store=str(self.pki.paths(Kind.NODE, f"node-{node.id}").store),
            link_trust=str(self.pki.trust_path(Realm.LINK)),
        )

    @functools.cache  # noqa: B019  a Home lives as long as its command
    def client_file(self, site: str) -> ClientSettings:
        """The client file of a site that exists already, read once; what is unsafe in it is warned about."""
        from twinlog.wire.clientfiles.read import read_client_file  # noqa: PLC0415

        named = self.bus.sites[site].client
        assert named is not None, "the loader lets no such site through"
        path = self.file.parent / named
        found = read_client_file(path)
        for problem in found.warnings:
            self._warn(problem, str(path))
        return found

    def admin_access(self, site: str) -> Access:
        """How Twinlog itself reaches a site."""
        declared = self.bus.sites[site]
        if declared.exists_already:
            return replace(self.client_file(site).access, bootstrap=declared.bootstrap)
        return self._link_access("admin", site)

    def link_access(self, name: str, site: str) -> Access:
        """How a holder of the link reaches a site: by its own name where we decide who is who."""
        if self.bus.sites[site].exists_already:
            return self.admin_access(site)
        return self._link_access(name, site)

    def declared_user(self, user: str) -> User:
        """A user of the file."""
        declared = self.bus.users.get(user)
        if declared is None:
            known = ", ".join(self.bus.users) or "none"
            raise UsageError(
                f"the file has no user '{user}'", where=str(self.file), hint=f"its users are {known}"
            )
        return declared

    def password(self, user: str) -> str:
        """The password of a user, invented at first use; one that sites have and we lost is an error.

        Another one in its place would be refused there, and nobody would know why.
        """
        given = self.declared_user(user).password
        if not self.passwords.is_kept(user, given):
            state = self.state_file.read()
            holders = [site for site, known in state.applied.items() if user in known] if state else []
            if holders:
                sites = f"site {holders[0]}" if len(holders) == 1 else f"sites {', '.join(sorted(holders))}"
                raise UsageError(
                    f"the password of user {user}, which {sites} took, is not kept here any more",
                    where=str(self.directory / "secrets" / user),
                    hint=f"restore the file, or give {user} a new one: twinlog user rotate {user}",
                )
        return self.passwords.password_of(user, given)

    def user_access(self, user: str, site: str) -> Access:
        """How a user of the file reaches a site."""
        declared = self.declared_user(user)
        if self.bus.sites[site].exists_already:
            return self._existing_user(user, declared, site)
        layout = self.layout(site)
        if declared.auth is Auth.MTLS:
            return _mtls(layout.bootstrap(Listener.CLIENT_TLS), self._credentials(Kind.USER, user))
        return Access(
            bootstrap=layout.bootstrap(Listener.CLIENT),
            protocol=Protocol.SASL_SSL,
            ca_pem=trust_pem(self.directory / "pki", Realm.CLIENTS),
            mechanism=MECHANISMS[declared.auth],
            username=user,
            password=self.password(user),
        )

    def _existing_user(self, user: str, declared: User, site: str) -> Access:
        base = self.client_file(site).access
        if declared.auth is Auth.MTLS:
            raise UsageError(
                f"site {site} exists already and does not know the certificate of user '{user}'",
                where=str(self.file),
                hint="is there an authority that it trusts, to sign a certificate for this user?",
            )
        if base.mechanism is None:
            raise UsageError(
                f"no listener for passwords is known at site {site}: its client file has no sasl.mechanism",
                where=str(self.file.parent / (self.bus.sites[site].client or "")),
                hint="is there one, and an administrator with a password?",
            )
        return replace(
            base,
            bootstrap=self.bus.sites[site].bootstrap,
            cert_pem="",
            key_pem="",
            mechanism=MECHANISMS[declared.auth],
            username=user,
            password=self.password(user),
        )

    def _link_access(self, name: str, site: str) -> Access:
        own = self._credentials(Kind.LINK, name)
        return _mtls(self.layout(site).bootstrap(Listener.LINK), own)

    def _credentials(self, kind: Kind, name: str) -> Credentials:
        return credentials(self.directory / "pki", self.bus, kind, name, lambda: self.pki, memos=self._memos)


def _mtls(bootstrap: tuple[str, ...], own: Credentials) -> Access:
    return Access(bootstrap, Protocol.SSL, own.ca_pem, own.cert_pem, own.key_pem)
