"""The verdict on a slice: `link verify`, and Kafka's own console consumer at both sites.

The consumer reads what the slice has written: at the active as a reader of committed records and as one
of everything, at the standby as both. The standby holds no record of an aborted transaction, so there
both readers must see what a reader of committed records sees at the active.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from tests.faults.lines import Log, Place, against_acknowledged, compare, parse, without
from tests.faults.load import Load
from tests.faults.results import Verification
from tests.faults.world import ACTIVE, PARTITIONS, RUN_TIMEOUT_S, STANDBY, USER, World
from twinlog.durable import write_secret
from twinlog.wire import groups, offsets
from twinlog.wire.groups import Committed
from twinlog.wire.offsets import TopicPartition

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
DUMPER = "org.apache.kafka.tools.DumpLogSegments"
HEAP = "-Xmx512m"
SILENT_MS = (10_000, 40_000, 160_000)  # so long nothing came: was that all? Else it is read again
MOST_FINDINGS = 50  # a reader that saw nothing would fill a disk with what it missed
ISOLATIONS = COMMITTED, ALL = ("read_committed", "read_uncommitted")
PRINTED = ("timestamp", "partition", "offset", "headers", "key")
AT_ONCE = 2


def verify(world: World, load: Load, first: Mapping[Place, int], name: str) -> Verification:
    """Compare both sites from these offsets on; `name` names the readers' groups."""
    told = json.loads(world.run("link", "verify", "--again", "-o", "json", exit_codes=(0, 3)))
    findings = [
        f"link verify: {one['topic']}-{one['partition']}: {one['found']}" for one in told if one["found"]
    ]
    ways = list(product((ACTIVE, STANDBY), ISOLATIONS))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        logs = dict(zip(ways, pool.map(lambda way: _read(world, way, first, name), ways), strict=True))
    seen = logs[ACTIVE, COMMITTED]
    for isolation in ISOLATIONS:
        findings += [f"{isolation}: {found}" for found in compare(seen, logs[STANDBY, isolation])]
    # What only the reader of everything sees at the active was aborted: nobody was told that it is there.
    hidden = without(logs[ACTIVE, ALL], seen)
    acknowledged = {**load.acknowledged, **load.promised}
    findings += [
        f"{place}: acknowledged, and hidden from readers: {line.value}"
        for place, lines in hidden.items()
        for line in lines
        if line.value in acknowledged
    ]
    findings += against_acknowledged(logs[STANDBY, COMMITTED], acknowledged, first)
    more = len(findings) - MOST_FINDINGS
    if more > 0:
        findings[MOST_FINDINGS:] = [f"and {more} more"]
    return Verification(
        len(told),
        sum(one["offsets"] for one in told),
        sum(len(lines) for lines in seen.values()),
        len(acknowledged),
        len(load.promised),
        tuple(findings),
    )


def _read(world: World, way: tuple[str, str], first: Mapping[Place, int], name: str) -> Log:
    """What a console consumer shows of all topics, from these offsets to the end."""
    site, isolation = way
    group = f"standby.{name}-{isolation}" if site == STANDBY else f"{name}-{isolation}"
    output = world.directory / f"{name}-{site}-{isolation}.txt"
    for silent_ms in SILENT_MS:
        _set_back(world, site, group, first)
        _consume(world, way, group, output, silent_ms)
        if _is_at_end(world, site, group, first):
            return parse(output.read_text().split("\n"))
    raise RuntimeError(f"the reader of {site} ({isolation}) did not come to the end")


def _set_back(world: World, site: str, group: str, first: Mapping[Place, int]) -> None:
    begin: dict[TopicPartition, Committed] = {
        (topic, number): Committed(at) for (topic, number), at in first.items()
    }
    with world.cluster(site) as cluster:
        refused = [
            code for codes in groups.commit(cluster, {group: begin}).values() for code in codes.values()
        ]
    if any(refused):
        raise RuntimeError(f"the readers' positions were not taken at {site}: codes {refused}")


def _is_at_end(world: World, site: str, group: str, first: Mapping[Place, int]) -> bool:
    """True if the reader left with all that it was to see; a slow machine makes it leave earlier."""
    with world.cluster(site) as cluster:
        reached = groups.committed(cluster, [group])[group]
        ends = offsets.last_stable_offsets(cluster, list(first))
    return all(reached[place].offset >= end for place, end in ends.items())


def _consume(world: World, way: tuple[str, str], group: str, output: Path, silent_ms: int) -> None:
    site, isolation = way
    file = world.directory / f"reader-{site}-{isolation}.properties"
    write_secret(file, world.run("client", USER, "--site", site, "--format", "java"))
    address = next(line for line in file.read_text().splitlines() if line.startswith("bootstrap.servers="))
    command = [*world.kafka.command(), HEAP, CONSUMER, "--bootstrap-server", address.partition("=")[2]]
    command += ["--include", "|".join(PARTITIONS), "--group", group, "--command-config", str(file)]
    command += ["--isolation-level", isolation, "--timeout-ms", str(silent_ms)]
    for part in PRINTED:
        command += ["--formatter-property", f"print.{part}=true"]
    with output.open("wb") as lines, (world.directory / "readers.log").open("ab") as log:
        subprocess.run(command, stdout=lines, stderr=log, timeout=RUN_TIMEOUT_S, check=True)


def dump(world: World) -> None:
    """Write down what every replica's segments hold, batch by batch, for whoever looks into a failure."""
    directory = world.directory / "dumps"
    directory.mkdir(exist_ok=True)
    nodes = [node for site in (ACTIVE, STANDBY) for node in world.home.layout(site).brokers]
    for node, topic in product(nodes, PARTITIONS):
        for data in node.data:
            for segment in sorted(data.glob(f"{topic}-*/*.log")):
                _dump(world, segment, directory / f"{node.id}-{segment.parent.name}-{segment.stem}.txt")


def _dump(world: World, segment: Path, output: Path) -> None:
    command = [*world.kafka.command(), DUMPER, "--files", str(segment)]
    with output.open("wb") as lines:
        subprocess.run(command, stdout=lines, stderr=subprocess.STDOUT, timeout=RUN_TIMEOUT_S, check=False)
