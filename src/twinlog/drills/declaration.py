"""The bus of a drill, as a file that any command understands.

The runner has it declared in the drill's own directory: as large as the scenario says, its places on the
machines of a network if there is one, the disks that are to be filled apart from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twinlog.drills import disks
from twinlog.drills.cast import ORDERS, PAYMENTS, USER
from twinlog.drills.machines import Network
from twinlog.drills.scenarios import Scenario
from twinlog.drills.spread import AWAY
from twinlog.drills.stories import FAILOVER_AFTER_S
from twinlog.durable import write_text
from twinlog.sites.home import Home
from twinlog.sites.ports import free_ports
from twinlog.spec.load import load
from twinlog.spec.model import Promote
from twinlog.traffic.votes import WITNESS

FILE = """\
bus: drill
kafka_version: {kafka_version}
kafka:
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 3
{kafka}sites:
  a: {{brokers: {brokers[a]}, controllers: {size.controllers}, listen: {hosts[a]}, jvm: {jvm}}}
  b: {{brokers: {brokers[b]}, listen: {hosts[b]}, jvm: {jvm}}}
topics:
  {orders}: {{partitions: 24}}
  {payments}: {{partitions: 6}}
users:
  {user}: {{produce: ["*"], consume: ["*"], groups: ["*"], transactions: ["*"]}}
gate:
  address: 127.0.0.1:{ports[0]}
  tls_address: 127.0.0.1:{ports[1]}
  failover_after: {failover_after_s:g}s
  promote: {promote}
  witness: {hosts[witness]}:{ports[2]}
"""
PLACES = ("a", "b", WITNESS, AWAY)
# A drill is over before a thorough compiler has earned its time, and clients need the same processors.
JVM = "[-XX:TieredStopAtLevel=1]"


def declare(directory: Path, scenario: Scenario, promote: Promote, joined: Network | None) -> Home:
    """The bus of a drill, as a file that any command understands."""
    machines = joined.machines if joined is not None else {}
    hosts = {name: machines[name].address if name in machines else "127.0.0.1" for name in PLACES}
    ports = free_ports("127.0.0.1", 3, seed=f"{directory}/gate", avoid=frozenset())
    own, size = own_disks(scenario), scenario.size
    text = FILE.format(
        size=size,
        brokers={"a": _brokers(size.brokers, own[:1]), "b": _brokers(size.standby_brokers, own[1:])},
        kafka_version=scenario.kafka_version,
        kafka="".join(f"  {name}: {value}\n" for name, value in scenario.kafka.items()),
        jvm=JVM,
        hosts=hosts,
        orders=ORDERS,
        payments=PAYMENTS,
        user=USER,
        ports=ports,
        failover_after_s=FAILOVER_AFTER_S,
        promote=promote,
    )
    file = directory / "twinlog.yaml"
    write_text(file, text)
    return Home(load(file, {}).bus, file)


def own_disks(scenario: Scenario) -> tuple[str, ...]:
    """Where the first broker of each site keeps its records, if that is a disk of its own."""
    has_own = scenario.slow_disks or (scenario.small_disks and disks.can_mount())
    return ("disks/a", "disks/b") if has_own else ()


def _brokers(count: int, disk: Sequence[str]) -> str:
    """The brokers of a site, as the file says them."""
    first = [f"{{data: {path}}}" for path in disk]
    return f"[{', '.join([*first, *(['{}'] * (count - 1))])}]" if first else str(count)
