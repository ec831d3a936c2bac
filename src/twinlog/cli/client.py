"""`twinlog client`: a ready client file for a user, printed or written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.errors import Problem, UsageError

if TYPE_CHECKING:
    from twinlog.sites.home import Home
    from twinlog.wire.clientfiles.files import ClientFiles
    from twinlog.wire.clientfiles.write import Client

# Written out, because the modules that define them are too heavy for `--help`; a test compares them.
FORMATS = ["java", "librdkafka", "kcat", "python", "spark", "spring", "quarkus"]
STORES = ["pem", "pkcs12", "jks"]
ON_STANDBY = "this site is the standby: mirrored topics cannot be written there"
STANDBY_HINT = "read there in groups named standby.…; to write: twinlog client {user} --site {active}"


@frame.command(
    example="""
    twinlog client shop --directory clients
    twinlog client shop --gate --format librdkafka
    twinlog client shop --format kcat
    twinlog client stock --rack r1
    twinlog client shop --site b --format java --store pkcs12
    """
)
@click.argument("user")
@click.option("--site", metavar="NAME", help="The site to reach; by default the active one.")
@click.option("--gate", is_flag=True, help="Reach the bus by the gate's address: whichever site is active.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="java", show_default=True)
@click.option(
    "--store",
    type=click.Choice(STORES),
    default="pem",
    show_default=True,
    help="How certificates are handed over; the last two are for Java.",
)
@click.option("--rack", metavar="NAME", help="Where the client stands: it reads from copies in this rack.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the files there instead of printing the main one.",
)
def command(
    ctx: frame.Context,
    user: str,
    site: str | None,
    gate: bool,
    form: str,
    store: str,
    rack: str | None,
    directory: Path | None,
) -> None:
    """Print a client file with which USER reaches a site.

    It holds the user's password or key, so keep it as you keep those. Message sizes follow what the
    site takes. Files beside it (certificates for kcat and librdkafka, Java stores) are kept with the
    bus unless --directory says where, and are named by absolute path.
    """
    from twinlog.wire.clientfiles.write import Format, render

    home = home_of(ctx)
    if gate and site is not None:
        raise UsageError("--gate reaches whichever site is active", hint=f"{ctx.command_path} {user} --gate")
    name = chosen_site(home, site)
    target = (directory or home.directory / "clients" / ("gate" if gate else name) / user).absolute()
    client = client_of(home, user, name, store, target)
    if rack is not None:
        _refuse_unknown_rack(home, name, rack)
        client = replace(client, tuning=replace(client.tuning, rack=rack))
    files = render(by_gate(home, client) if gate else client, Format(form))
    _remark(ctx, home, user, name)
    if directory is not None:
        _written(ctx, files, target)
        return
    if files.beside:
        _have_directory(target)
        files.write_beside(target)
    beside = [str(target / file.name) for file in files.beside]
    ctx.write(files.text, as_json={"file": None, "text": files.text, "side_files": beside})


def _refuse_unknown_rack(home: Home, site: str, rack: str) -> None:
    """Raise for a rack without a broker, where we know them: a client would read as if it had none."""
    state = home.state_file.read()
    if state is None or site not in state.sites:
        return
    known = sorted({node.rack for node in home.layout(site).brokers if node.rack})
    if rack not in known:
        hint = f"its racks are {', '.join(known)}" if known else f"sites.{site}.racks in the file names them"
        raise UsageError(f"no broker of site {site} stands in rack '{rack}'", where=str(home.file), hint=hint)


def chosen_site(home: Home, site: str | None) -> str:
    """The named site, else the active one."""
    if site is not None:
        return home.chosen(site)[0]
    state = home.state_file.read()
    return state.active if state is not None else home.bus.active_site


def client_of(home: Home, user: str, site: str, store: str, directory: Path) -> Client:
    """What the writer of client files needs to know."""
    from twinlog.spec.effective import largest_message_bytes
    from twinlog.wire.clientfiles.tuning import Tuning
    from twinlog.wire.clientfiles.write import Client
    from twinlog.wire.stores import StoreType

    tuning = Tuning(message_max_bytes=largest_message_bytes(home.bus, site))
    return Client(user, home.user_access(user, site), tuning, StoreType(store), directory)


def by_gate(home: Home, client: Client) -> Client:
    """The same client, which knows the gate's address and no broker's."""
    from twinlog.sites.layout import Listener
    from twinlog.spec.model import Auth
    from twinlog.traffic.entrance import addresses

    has_certificate = home.declared_user(client.name).auth is Auth.MTLS
    place = addresses(home)[Listener.CLIENT_TLS if has_certificate else Listener.CLIENT]
    return replace(client, access=replace(client.access, bootstrap=(str(place),)))


def _remark(ctx: frame.Context, home: Home, user: str, site: str) -> None:
    from twinlog.spec.model import Role

    if home.role(site) is Role.STANDBY:
        hint = STANDBY_HINT.format(user=user, active=chosen_site(home, None))
        remark = Problem(0, 0, ON_STANDBY, hint=hint, path=f"site {site}", severity="warning")
        ctx.warn(remark, str(home.file))


def _written(ctx: frame.Context, files: ClientFiles, directory: Path) -> None:
    _have_directory(directory)
    files.write(directory)
    value = {
        "file": str(directory / files.main.name),
        "side_files": [str(directory / file.name) for file in files.beside],
    }
    paths = "".join(f"{path}\n" for path in (value["file"], *value["side_files"]))
    ctx.write(paths, as_json=value)


def _have_directory(directory: Path) -> None:
    from twinlog.durable import make_private_directory

    # One that is there already is the user's own: its rights are left as they are.
    if not directory.is_dir():
        make_private_directory(directory)
