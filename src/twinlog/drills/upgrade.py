"""The drill in which both sites get a newer Kafka while clients write and read.

The bus begins with the older version. The file is changed, and what `twinlog apply` does is done: first at
the standby, then at the active, node by node; when both run the new version, the level of their metadata
is raised, and from then on there must be no way back. Whatever a person would look at on the way (the
plan, what runs, what is refused) is held against what it should be.
"""

from __future__ import annotations

from collections.abc import Sequence

from twinlog.drills.history import Happening
from twinlog.drills.stage import Seen, Stage
from twinlog.durable import write_text
from twinlog.errors import SiteError, UsageError
from twinlog.ops import apply, steps
from twinlog.sites.home import Home
from twinlog.sites.levels import LEVELS
from twinlog.spec.load import load
from twinlog.spec.model import KAFKA_VERSION, KafkaVersion

OLD: KafkaVersion = "4.2.1"


def rolling_upgrade(stage: Stage) -> None:
    """Both sites get another Kafka, the standby first, then the level that belongs to it."""
    sites = (stage.standby, stage.active)
    home = _declare(stage, OLD, KAFKA_VERSION)
    stage.seen.append(_planned(apply.plan_all(home, sites), home))
    for site in sites:
        _apply(stage, home, [site], f"site {site} gets Kafka {KAFKA_VERSION}, node by node")
        stage.rest()
    raised = apply.plan_all(home, sites)
    _apply(stage, home, sites, f"the metadata gets the level of Kafka {KAFKA_VERSION}", yes=True)
    left = apply.plan_all(home, sites)
    stage.seen += [
        Seen(
            "until then the metadata kept its level",
            raised
            == [steps.RaiseLevel(site, LEVELS[OLD], LEVELS[KAFKA_VERSION], KAFKA_VERSION) for site in sites],
            "; ".join(f"site {step.site}: {step.what}" for step in raised),
        ),
        Seen("then the sites are what the file says", not left, f"{len(left)} differences"),
    ]
    stage.rest()
    stage.seen.append(_no_way_back(stage, sites))


def _declare(stage: Stage, before: KafkaVersion, after: KafkaVersion) -> Home:
    """The bus of a file that names another version."""
    file = stage.home.file
    write_text(file, file.read_text().replace(f"kafka_version: {before}", f"kafka_version: {after}"))
    home = Home(load(file, {}).bus, file)
    if home.bus.kafka_version != after:
        raise SiteError(f"the bus of this drill does not begin with Kafka {before}", where=str(file))
    return home


def _planned(planned: Sequence[steps.Step], home: Home) -> Seen:
    nodes = sum(len(home.layout(site).nodes) for site in home.bus.sites)
    restarts = [step for step in planned if isinstance(step, steps.Restart)]
    shown = f"{len(restarts)} restarts for {nodes} nodes, {len(planned)} steps in all"
    return Seen("the plan restarts every node", len(planned) == len(restarts) == nodes, shown)


def _apply(stage: Stage, home: Home, sites: Sequence[str], text: str, *, yes: bool = False) -> None:
    """What `twinlog apply` does, written down as something that clients may notice."""
    stage.recorder.event(Happening.FAULT, text, fault=text, site="")
    with home.state_file.locked("drill"):
        apply.apply_all(home, sites, stage.progress, yes=yes)
    stage.recorder.event(Happening.HEALED, f"{text}: done", fault=text)


def _no_way_back(stage: Stage, sites: Sequence[str]) -> Seen:
    """The file with the old version again: nobody must act on it."""
    home = _declare(stage, KAFKA_VERSION, OLD)
    says = "the old version is refused from then on"
    try:
        apply.refuse_impossible(apply.plan_all(home, sites))
    except UsageError as error:
        return Seen(says, True, error.what)
    finally:
        _declare(stage, OLD, KAFKA_VERSION)
    return Seen(says, False, f"it would be started at {' and '.join(sites)}")
