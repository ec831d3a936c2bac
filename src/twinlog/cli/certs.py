"""`twinlog certs`: look at certificates, renew them, sign requests, exchange an authority."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of, site_option
from twinlog.cli.output import Column, Record, Table, plain
from twinlog.errors import Findings, UsageError

if TYPE_CHECKING:
    from twinlog.ops.inventory import Item
    from twinlog.ops.renewal import Renewed
    from twinlog.sites.exposed import Exposed
    from twinlog.sites.home import Home

command = frame.group("certs", "Look at, renew, fetch, sign and exchange certificates.")
FETCH_TIMEOUT_S = 10.0
COLOURS = {"ok": "green", "renew": "yellow", "stale": "yellow", "expired": "red"}


@frame.command(parent=command, name="status", example="twinlog certs status -o json")
def status(ctx: frame.Context) -> None:
    """Show every certificate, how long it lasts, and whether running nodes show it.

    Exit code 3 says that one has ended or ends soon, or that a node still shows an old one (stale):
    `twinlog certs renew` sees to all of it, except for the authorities (`certs rotate-ca`). Or that a
    key, a password or a client file of the bus can be read by others on this machine.
    """
    from twinlog.ops import inventory
    from twinlog.sites.exposed import exposed

    home = home_of(ctx)
    found = inventory.items(home)
    opened = exposed(home.directory)
    ctx.emit(
        Table([Column("authority"), Column("phase")], _phases(home), name="authorities"),
        Table(
            [
                Column("subject"),
                Column("authority"),
                Column("days_left", right=True, show=lambda days: f"{days:.1f}"),
                Column("not_after", "ends", show=lambda end: f"{end:%Y-%m-%d %H:%M}Z"),
                Column("state", style=lambda state: COLOURS.get(state.value, "")),
                Column("served", show=lambda same: "-" if same is None else plain(same)),
                Column("shown_otherwise", "old one on"),
                Column("certificate"),
            ],
            found,
            name="certificates",
        ),
        Table(
            [Column("file", "secret"), Column("mode", right=True)],
            opened,
            name="exposed",
            empty="no secret can be read by others",
        ),
    )
    _judge(found, opened)


@frame.command(
    parent=command,
    name="renew",
    example="""
    twinlog certs renew
    twinlog certs renew --site a --force
    """,
)
@site_option
@click.option("--force", is_flag=True, help="Make all of them anew, also those that are good.")
def renew(ctx: frame.Context, site: str | None, force: bool) -> None:
    """Make anew what ends soon, and have running nodes show it without a restart.

    Nothing is renewed by itself: let a timer run this once a day (cron, systemd). Renewal begins
    30 days before the end unless the file says otherwise (certificates.renew_before).
    Connections stay open. Users with certificates of their own get a new one here, to be handed out
    with `twinlog client`; one that was made with `certs sign` is signed again from its request.
    """
    from twinlog.ops import renewal

    home = home_of(ctx)
    names = home.chosen(site)
    if site is not None:
        home.must_run(site, "renew the certificates of")
    with home.state_file.locked("certs renew"):
        done = renewal.renew(home, names, ctx.progress, force=force)
    _show_renewed(ctx, home, done)
    _judge_waiting(done)


@frame.command(parent=command, name="fetch", example="twinlog certs fetch 127.0.0.1:9092 > site.crt")
@click.argument("address", metavar="HOST:PORT")
def fetch(ctx: frame.Context, address: str) -> None:
    """Print the certificates that a TLS server shows, its own first.

    Nothing is verified: compare before you trust.
    """
    from twinlog.sites import handshake
    from twinlog.sites.served import fingerprint
    from twinlog.wire.addresses import HostPort

    where = HostPort.parse(address)
    shown = handshake.fetch(where.host, where.port, FETCH_TIMEOUT_S)
    as_json = [{"sha256": fingerprint(pem), "pem": pem} for pem in shown]
    ctx.write("".join(shown), as_json={"address": str(where), "certificates": as_json})


@frame.command(parent=command, name="sign", example="twinlog certs sign till.csr")
@click.argument("file_csr", metavar="FILE.csr", type=click.Path(path_type=Path, dir_okay=False))
def sign(ctx: frame.Context, file_csr: Path) -> None:
    """Sign a user's request and write FILE.crt beside it.

    The request's common name must be a user of the file with `auth: mtls`; its key never leaves its
    owner. The answer names the authority's file that the client must trust.
    """
    from twinlog.durable import write_text
    from twinlog.sites.authorities import Realm

    home = home_of(ctx)
    text = _read_request(file_csr)
    user = _requesting_user(home, text)
    signed = home.pki.sign(text)
    target = file_csr.with_suffix(".crt")
    write_text(target, signed)
    value = {
        "user": user,
        "certificate": str(target.absolute()),
        "not_after": _end_of(signed),
        "trust": str(home.pki.trust_path(Realm.CLIENTS)),
    }
    columns = [Column("user"), Column("certificate"), Column("not_after", "valid until")]
    ctx.emit(Record([*columns, Column("trust", "authority")], value))


@frame.command(
    parent=command,
    name="rotate-ca",
    example="""
    twinlog certs rotate-ca clients --begin
    twinlog certs rotate-ca clients --switch
    twinlog certs rotate-ca clients --finish
    twinlog certs rotate-ca --all --yes
    """,
    confirms=True,
)
@click.argument("authority", type=click.Choice(["clients", "link", "both"]), default="both")
@click.option("--begin", "step", flag_value="begin", help="Make the next authority and trust it too.")
@click.option("--switch", "step", flag_value="switch", help="Let the next authority sign.")
@click.option("--finish", "step", flag_value="finish", help="Trust the next authority only.")
@click.option("--all", "step", flag_value="all", help="All that is left at once, for tests.")
def rotate_ca(ctx: frame.Context, authority: str, step: str | None) -> None:
    """Exchange an authority of the bus for a new one, in three steps, without a restart.

    After --begin hand out new client files (`twinlog client USER`): they trust both authorities.
    With --switch nodes show certificates of the new one, and clients with old files stay out.
    After --switch hand out the client files of users with certificates once more; --finish then
    shuts out certificates of the old one. Each step can be repeated; `certs status` shows how far
    it has come. The link authority is the nodes' own affair, so its steps need no waiting.
    """
    from twinlog.ops import rotation
    from twinlog.sites.authorities import Realm

    home = home_of(ctx)
    realms = list(Realm) if authority == "both" else [Realm(authority)]
    if step is None:
        raise UsageError(
            "name the step to take: --begin, --switch, --finish, or --all", hint="twinlog certs status"
        )
    home.state()
    if step == "all" and Realm.CLIENTS in realms and not ctx.yes:
        raise UsageError(
            "this shuts out every client until it has a new client file",
            where=str(home.directory),
            hint=f"twinlog certs rotate-ca {authority} --all --yes",
        )
    with home.state_file.locked("certs rotate-ca"):
        if step == "all":
            done = rotation.take_all(home, realms, ctx.progress)
        else:
            done = rotation.take(home, realms, rotation.Step(step), ctx.progress)
    rows = [row for row in _phases(home) if row["authority"] in realms]
    columns = [Column("authority"), Column("phase"), Column("next")]
    ctx.emit(Table(columns, [{**row, "next": _next(row)} for row in rows]))
    _judge_waiting(done)


def _phases(home: Home) -> list[dict[str, Any]]:
    from twinlog.sites.authorities import Realm

    return [{"authority": realm, "phase": home.pki.phase(realm)} for realm in Realm]


def _next(row: dict[str, Any]) -> str:
    step = {"begun": "--switch", "switched": "--finish"}.get(row["phase"].value)
    if step is None:
        return "nothing"
    hand_out = "hand out new client files, then: " if row["authority"].value == "clients" else ""
    return f"{hand_out}twinlog certs rotate-ca {row['authority']} {step}"


def _judge(found: list[Item], opened: list[Exposed]) -> None:
    if opened:
        noun = "secret" if len(opened) == 1 else "secrets"
        raise Findings(
            f"{len(opened)} {noun} can be read by others, such as {opened[0].file}",
            hint=f"chmod go= {shlex.join(str(one.file) for one in opened)}",
        )
    wrong = [item for item in found if item.state.wants_attention]
    if not wrong:
        return
    listed = ", ".join(f"{item.subject} {item.state}" for item in wrong)
    leaves = any(not item.is_authority for item in wrong)
    hint = "twinlog certs renew" if leaves else "twinlog certs rotate-ca --begin"
    raise Findings(f"{len(wrong)} of {len(found)} certificates want attention: {listed}", hint=hint)


def _show_renewed(ctx: frame.Context, home: Home, done: Renewed) -> None:
    made = [
        {"certificate": str(issued.certificate.relative_to(home.directory)), "why": issued.why}
        for issued in done.made
    ]
    reloaded = [{"node": name} for name in done.reloaded]
    ctx.emit(
        Table([Column("certificate"), Column("why")], made, name="renewed", empty="none was due"),
        Table([Column("node")], reloaded, name="reloaded", empty="no node had to take a new one"),
    )


def _judge_waiting(done: Renewed) -> None:
    if done.waiting:
        node = done.waiting[0].node
        listed = ", ".join(seen.label for seen in done.waiting)
        raise Findings(
            f"these run elsewhere and still show an old certificate: {listed}",
            hint=f"carry the new files there, then renew again: twinlog bundle {node.site} {node.id}",
        )


def _read_request(file: Path) -> str:
    if file.suffix != ".csr":
        raise UsageError(
            "a signing request is a file named .csr", where=str(file), hint=f"mv {file} {file}.csr"
        )
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(
            f"the request cannot be read: {reason}", where=str(file), hint="is the name right?"
        ) from error


def _requesting_user(home: Home, text: str) -> str:
    from twinlog.sites.certificates import load_request, requested_name

    user = requested_name(load_request(text))
    if home.declared_user(user).auth.value != "mtls":
        raise UsageError(
            f"user {user} has a password, and a certificate would not let it in",
            where=str(home.file),
            hint=f"give it `auth: mtls` in the file; is the request's common name right: {user}?",
        )
    return user


def _end_of(pem: str) -> str:
    from cryptography import x509

    return x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc.isoformat()
