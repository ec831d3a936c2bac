"""`twinlog exporter`: metrics of the sites for Prometheus, in the foreground."""

from __future__ import annotations

import re
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of, timeout_option
from twinlog.cli.reach import chosen_site
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from twinlog.export.observation import Filters
    from twinlog.export.pages import Tls

FILE = click.Path(path_type=Path, dir_okay=False)


@frame.command(
    example="""
    twinlog exporter
    twinlog exporter --listen 0.0.0.0:9308 --tls-cert page.pem --tls-key page.key --login-file login
    """
)
@click.option(
    "--listen",
    "--web.listen-address",
    "listen",
    default="127.0.0.1:9308",
    show_default=True,
    metavar="HOST:PORT",
    help="Where the page is.",
)
@click.option("--topic.filter", "topic_filter", default=".*", metavar="REGEX", help="Only topics that match.")
@click.option("--topic.exclude", "topic_exclude", default="^$", metavar="REGEX", help="No topics that match.")
@click.option("--group.filter", "group_filter", default=".*", metavar="REGEX", help="Only groups that match.")
@click.option("--group.exclude", "group_exclude", default="^$", metavar="REGEX", help="No groups that match.")
@click.option("--tls-cert", type=FILE, help="Serve HTTPS with this certificate, a PEM file.")
@click.option("--tls-key", type=FILE, help="The certificate's key.")
@click.option("--tls-ca", type=FILE, help="Clients need a certificate that this authority signed.")
@click.option("--login-file", type=FILE, help="A file with user:password, which clients must give.")
@timeout_option(default_s=8.0, help="Seconds until a page is answered, whatever a site does.")
def command(
    ctx: frame.Context,
    listen: str,
    topic_filter: str,
    topic_exclude: str,
    group_filter: str,
    group_exclude: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_ca: Path | None,
    login_file: Path | None,
    timeout: float,
) -> None:
    """Serve metrics of the sites for Prometheus, until Ctrl-C.

    /metrics is the active site, under the names of kafka_exporter, and how far the standby is behind it;
    /metrics/NAME is one site. A site that does not answer has twinlog_site_up 0. A dashboard for Grafana
    is in examples/grafana.json.
    """
    from twinlog.export.link import LinkWatch
    from twinlog.export.observation import Watch
    from twinlog.export.pages import Looks, pages, served
    from twinlog.wire.addresses import HostPort

    home = home_of(ctx, warn=True)
    filters = _filters(topic_filter, topic_exclude, group_filter, group_exclude)
    tls, login = _tls(tls_cert, tls_key, tls_ca), _login(login_file)
    if timeout <= 0:
        raise UsageError("no page can be answered in no time", hint="--timeout 8")
    watches = {site: Watch(partial(home.admin_access, site), filters, timeout) for site in home.bus.sites}
    where = HostPort.parse(listen)
    with ExitStack() as stack:
        link = stack.enter_context(LinkWatch(home)).seen if len(watches) > 1 else None
        looks = Looks(home.bus.bus, watches, lambda: chosen_site(home, None), link)
        server = stack.enter_context(served(where, pages(looks, login), tls))
        click.echo(f"serving http{'s' if tls else ''}://{where}/metrics", err=True)
        server.serve_forever(poll_interval=0.2)


def _filters(topics: str, no_topics: str, groups: str, no_groups: str) -> Filters:
    from twinlog.export.observation import Filters

    try:
        return Filters(*(re.compile(text) for text in (topics, no_topics, groups, no_groups)))
    except re.error as error:
        raise UsageError(
            f"'{error.pattern!s}' is no regular expression: {error.msg}",
            hint="--topic.filter 'orders.*', say",
        ) from error


def _tls(certificate: Path | None, key: Path | None, authority: Path | None) -> Tls | None:
    from twinlog.export.pages import Tls

    if certificate is None and key is None and authority is None:
        return None
    if certificate is None or key is None:
        raise UsageError("HTTPS needs a certificate and its key", hint="--tls-cert FILE --tls-key FILE")
    return Tls(certificate, key, authority)


def _login(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        text = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "the login cannot be read", where=str(file), hint="is it there, and yours?"
        ) from error
    if ":" not in text or "\n" in text:
        raise UsageError("the login is no user:password", where=str(file), hint="one line: user:password")
    if file.stat().st_mode & 0o077:
        raise UsageError("others may read the login", where=str(file), hint=f"chmod 600 {file}")
    return text
