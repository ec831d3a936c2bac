"""What a host should have when sites are far apart, and how a value compares with it. Pure.

For `twinlog host check`. The kernel's settings are those that a long path with much bandwidth wants: buffers
that hold what is on its way, queues that do not drop bursts, a congestion control for such paths, answers
to ARP on the right interface only. Nothing here changes anything: each finding has the command that would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

MTU_BYTES = 9000
QUEUE_LENGTH = 10_000
OPEN_FILES = 100_000
MAPPED_FILES = 262_144


class Rule(StrEnum):
    """How a value is compared."""

    AT_LEAST = "at least"  # every number of it
    EXACTLY = "exactly"


class Verdict(StrEnum):
    """How a value compares."""

    OK = "ok"
    BELOW = "below"
    DIFFERS = "differs"
    UNKNOWN = "unknown"  # this system does not have it, or does not tell


@dataclass(frozen=True)
class Wanted:
    """One setting: what it should be, and why."""

    key: str
    value: str
    why: str
    rule: Rule = Rule.AT_LEAST


@dataclass(frozen=True)
class Compared:
    """One setting beside this host's."""

    kind: str  # sysctl, interface, limit
    key: str
    here: str | None
    wanted: str
    verdict: Verdict
    why: str
    command: str  # what would change it


SYSCTLS = (
    Wanted("net.core.rmem_default", "16777216", "what a socket may have received and not read"),
    Wanted("net.core.wmem_default", "16777216", "what a socket may have to send"),
    Wanted("net.core.netdev_max_backlog", "250000", "packets that wait for a processor"),
    Wanted("net.core.rmem_max", "536870912", "what a program may ask for as a receive buffer"),
    Wanted("net.core.wmem_max", "536870912", "what a program may ask for as a send buffer"),
    Wanted("net.ipv4.conf.all.arp_announce", "2", "ask with the address of the same network", Rule.EXACTLY),
    Wanted("net.ipv4.conf.all.arp_filter", "1", "answer on the interface that is routed", Rule.EXACTLY),
    Wanted("net.ipv4.conf.all.arp_ignore", "1", "answer for addresses of that interface", Rule.EXACTLY),
    Wanted("net.ipv4.conf.default.arp_filter", "1", "the same for interfaces to come", Rule.EXACTLY),
    Wanted("net.ipv4.tcp_congestion_control", "htcp", "made for long paths with bandwidth", Rule.EXACTLY),
    Wanted("net.ipv4.tcp_no_metrics_save", "1", "a bad connection does not slow the next", Rule.EXACTLY),
    Wanted("net.ipv4.tcp_rmem", "4096 87380 268435456", "receive buffers grow up to 256 MiB"),
    Wanted("net.ipv4.tcp_wmem", "4096 65536 268435456", "send buffers grow up to 256 MiB"),
    Wanted("net.ipv4.tcp_mtu_probing", "1", "find the packet size where ICMP is lost"),
    Wanted("net.core.netdev_budget", "600", "packets taken in one turn"),
    Wanted("net.core.default_qdisc", "fq", "packets of a connection are spaced out", Rule.EXACTLY),
)

_BY_KEY = {one.key: one for one in SYSCTLS}


def verdict(here: str | None, wanted: str, rule: Rule) -> Verdict:
    """How a value compares; what is more than wanted is good where it is a size."""
    if here is None:
        return Verdict.UNKNOWN
    if here.split() == wanted.split():
        return Verdict.OK
    if rule is Rule.EXACTLY:
        return Verdict.DIFFERS
    try:
        mine, theirs = [int(word) for word in here.split()], [int(word) for word in wanted.split()]
    except ValueError:
        return Verdict.UNKNOWN
    if len(mine) != len(theirs):
        return Verdict.DIFFERS
    return Verdict.OK if all(one >= other for one, other in zip(mine, theirs, strict=True)) else Verdict.BELOW


def raised(here: str | None, wanted: Wanted) -> str:
    """The value to set: what is wanted, but no number lower than it is here already."""
    numbers = [] if here is None else here.split()
    if wanted.rule is Rule.EXACTLY or len(numbers) != len(wanted.value.split()):
        return wanted.value
    return " ".join(max(pair, key=int) for pair in zip(numbers, wanted.value.split(), strict=True))


def compare_sysctls(read: Callable[[str], str | None]) -> list[Compared]:
    """The kernel's settings, as `read` has them."""
    return [
        Compared(
            "sysctl",
            one.key,
            here := _spaced(read(one.key)),
            one.value,
            verdict(here, one.value, one.rule),
            one.why,
            f"sysctl -w {one.key}='{raised(here, one)}'",
        )
        for one in SYSCTLS
    ]


def compare_interface(name: str, mtu_bytes: int | None, queue_length: int | None) -> list[Compared]:
    """An interface on the way to the other site."""
    rows = (
        ("mtu", mtu_bytes, MTU_BYTES, "fewer, larger packets; both ends and all between must agree"),
        ("txqueuelen", queue_length, QUEUE_LENGTH, "packets that wait to be sent"),
    )
    return [
        Compared(
            "interface",
            f"{name} {what}",
            None if here is None else str(here),
            str(wanted),
            verdict(None if here is None else str(here), str(wanted), Rule.AT_LEAST),
            why,
            f"ip link set {name} {what} {wanted}",
        )
        for what, here, wanted, why in rows
    ]


def compare_limits(here: Mapping[str, int | None]) -> list[Compared]:
    """How many files may be open and mapped; keys are those of `LIMITS`."""
    return [
        Compared(
            "limit",
            key,
            None if here.get(key) is None else str(here[key]),
            str(wanted),
            verdict(None if here.get(key) is None else str(here[key]), str(wanted), Rule.AT_LEAST),
            why,
            command,
        )
        for key, (wanted, why, command) in LIMITS.items()
    ]


LIMITS = {
    "open files (soft)": (
        OPEN_FILES,
        "a broker has every segment and every connection open",
        f"ulimit -Sn {OPEN_FILES}",
    ),
    "open files (hard)": (
        OPEN_FILES,
        "the soft limit cannot be above it",
        f"echo '* - nofile {OPEN_FILES}' > /etc/security/limits.d/kafka.conf",
    ),
    "fs.file-max": (OPEN_FILES, "all processes together", f"sysctl -w fs.file-max={10 * OPEN_FILES}"),
    "vm.max_map_count": (
        MAPPED_FILES,
        "a broker maps two index files for every segment",
        f"sysctl -w vm.max_map_count={MAPPED_FILES}",
    ),
}


def sysctl_file(compared: list[Compared]) -> str:
    """A file for /etc/sysctl.d with the kernel's settings that are not as they should be."""
    lines = ["# For sites that are far apart; written by twinlog host check."]
    for one in compared:
        if one.kind == "sysctl" and one.verdict in (Verdict.BELOW, Verdict.DIFFERS):
            lines += [f"# {one.why}; was {one.here}", f"{one.key} = {raised(one.here, _BY_KEY[one.key])}"]
    return "\n".join(lines) + "\n"


def _spaced(value: str | None) -> str | None:
    return None if value is None else " ".join(value.split())
