"""Makes certificates anew and has running nodes take them, without a restart.

Called by `twinlog certs renew` and by every phase of `rotation`. What is due is decided by the files
alone, so a killed run is simply repeated: a certificate is due when it ends soon, says the wrong
thing, or is older than the trust file beside it. The last is how a change of trust is seen to have
arrived: Kafka reads key and trust of a listener in one go, so a node that shows a certificate made
after the trust file was written trusts what stands in that file.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from twinlog.errors import SiteError
from twinlog.progress import Progress
from twinlog.sites import processes, served
from twinlog.sites.authorities import Issued, Kind
from twinlog.sites.home import Home
from twinlog.sites.layout import Kind as NodeKind
from twinlog.sites.layout import Listener, Node, SiteLayout
from twinlog.sites.served import Served
from twinlog.spec.model import Auth, Promote
from twinlog.wire import reload
from twinlog.wire.cluster import Cluster

ADMIN = "admin"


@dataclass(frozen=True)
class Renewed:
    """What a renewal did."""

    made: tuple[Issued, ...]  # certificates made anew, each with the reason
    reloaded: tuple[str, ...]  # nodes that took new ones
    waiting: tuple[Served, ...]  # listeners of nodes elsewhere that still show an old one


def brought_up(home: Home, names: Sequence[str]) -> list[str]:
    """Those of these sites whose nodes have certificates of ours."""
    state = home.state()
    return [name for name in names if name in home.local_sites and name in state.sites]


def renew(home: Home, names: Sequence[str], progress: Progress, *, force: bool = False) -> Renewed:
    """Make anew what is due (or all) at these sites and have it served by the nodes that run."""
    home.pki.ensure()  # a trust file that a killed command did not write yet
    layouts = [home.layout(name) for name in brought_up(home, names)]
    issued = [issue for layout in layouts for issue in issue_nodes(home, layout, force=force)]
    issued += issue_clients(home, force=force)
    reloaded: list[str] = []
    waiting: list[Served] = []
    for layout in layouts:
        taken, left = _have_taken(home, layout, progress)
        reloaded += taken
        waiting += left
    return Renewed(tuple(one for one in issued if one.why), tuple(reloaded), tuple(waiting))


def issue_nodes(home: Home, layout: SiteLayout, *, force: bool) -> list[Issued]:
    """The certificates of a site's nodes, made anew where due."""
    issued: list[Issued] = []
    for node in layout.nodes:
        kinds = [kind for kind in (Kind.NODE, Kind.SERVER) if force or _before_trust(home, kind, node.id)]
        issued += home.issue_node_certificates(node, anew={kind.realm for kind in kinds})
    return issued


def voters(home: Home) -> list[str]:
    """Whose certificates for voting there are, where there are votes."""
    return home.pki.names(Kind.VOTE) if home.bus.gate.promote is Promote.AUTOMATIC else []


def issue_clients(home: Home, *, force: bool) -> list[Issued]:
    """Our own client certificates, and those of users that were made here once."""
    # A voter is known by its name, wherever it runs, and reads its certificate for every question.
    votes = [home.pki.issue(Kind.VOTE, name, {name}, anew=force) for name in voters(home)]
    known = [(Kind.LINK, ADMIN)]
    known += [(Kind.USER, name) for name, user in home.bus.users.items() if user.auth is Auth.MTLS]
    return votes + [
        home.pki.issue(kind, name, anew=force)
        for kind, name in known
        if home.pki.paths(kind, name).store.exists()
    ]


def _before_trust(home: Home, kind: Kind, node: int) -> bool:
    return _time_ns(home.pki.paths(kind, f"{kind}-{node}").store) < _time_ns(home.pki.trust_path(kind.realm))


def _time_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _have_taken(home: Home, layout: SiteLayout, progress: Progress) -> tuple[list[str], list[Served]]:
    """Have the nodes of a site that show another certificate than theirs read their files."""
    running = processes.find(node for node in layout.nodes if not node.remote)
    nodes = [node for node in layout.nodes if node.remote or node.id in running]
    asked = list({seen.node.id: seen.node for seen in _old(served.look(home, nodes))}.values())
    if not asked:
        return [], []
    task = f"site {layout.name}: new certificates for {len(asked)} nodes"
    progress.begin(task)
    _reload(home, layout, asked)
    left = _old(served.look(home, asked))
    _refuse_here(layout, [seen for seen in left if not seen.node.remote])
    progress.end(task, "served" if not left else "not everywhere")
    still = {seen.node.id for seen in left}
    return [node.name for node in asked if node.id not in still], left


def _reload(home: Home, layout: SiteLayout, nodes: Sequence[Node]) -> None:
    # Whatever its end, a certificate that our authority signed is our node's; only a new one helps.
    access = replace(home.admin_access(layout.name), verify_time=False)
    with ExitStack() as open_ones:

        def reach(*addresses: str) -> Cluster:
            return open_ones.enter_context(Cluster(replace(access, bootstrap=addresses)))

        controllers = reach(*layout.bootstrap(Listener.CONTROLLER))
        reload.reload_files(controllers, {node.id: reach(_own_address(node)) for node in nodes})


def _own_address(node: Node) -> str:
    return node.address(Listener.LINK if node.kind is NodeKind.BROKER else Listener.CONTROLLER)


def _refuse_here(layout: SiteLayout, left: Sequence[Served]) -> None:
    """A node of this machine has read its files; if it shows the old one still, it did not like them."""
    if not left:
        return
    listed = ", ".join(seen.label for seen in left)
    site = layout.name
    if all(seen.ended and seen.listener is Listener.LINK for seen in left):
        # Before it takes a new one there, a broker tries it against the old one, which nobody accepts.
        raise SiteError(
            f"the certificate had ended before it was renewed, and only a start replaces it now: {listed}",
            where=f"site {site}",
            hint=f"twinlog down --site {site} && twinlog up --site {site}",
        )
    raise SiteError(
        f"the new certificate was not taken by {listed}",
        where=f"site {site}",
        hint=f"twinlog logs --site {site} --grep 'DynamicConfig|Ssl'",
    )


def _old(looked: Sequence[Served]) -> list[Served]:
    return [seen for seen in looked if seen.same is False]
