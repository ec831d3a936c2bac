"""A host beside what sites far apart need."""

from __future__ import annotations

import pytest

from twinlog.ops import host_tuning
from twinlog.ops.host_tuning import SYSCTLS, Rule, Verdict, compare_sysctls, sysctl_file, verdict

# The sixteen keys of the inter-site tuning that this check is about.
KEYS = {
    "net.core.rmem_default", "net.core.wmem_default", "net.core.netdev_max_backlog", "net.core.rmem_max",
    "net.core.wmem_max", "net.ipv4.conf.all.arp_announce", "net.ipv4.conf.all.arp_filter",
    "net.ipv4.conf.all.arp_ignore", "net.ipv4.conf.default.arp_filter", "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mtu_probing",
    "net.core.netdev_budget", "net.core.default_qdisc",
}  # fmt: skip


def test_all_sixteen_keys_are_looked_at() -> None:
    assert {one.key for one in SYSCTLS} == KEYS and len(SYSCTLS) == 16


def test_a_host_that_has_what_is_wanted_or_more_is_fine() -> None:
    wanted = {one.key: one.value for one in SYSCTLS}
    assert {one.verdict for one in compare_sysctls(wanted.get)} == {Verdict.OK}
    more = wanted | {"net.core.rmem_max": "1073741824", "net.ipv4.tcp_rmem": "4096\t131072\t536870912"}
    assert {one.verdict for one in compare_sysctls(more.get)} == {Verdict.OK}
    assert len(sysctl_file(compare_sysctls(more.get)).splitlines()) == 1


@pytest.mark.parametrize(
    ("here", "wanted", "rule", "expected"),
    [
        (None, "1", Rule.EXACTLY, Verdict.UNKNOWN),
        ("0", "1", Rule.AT_LEAST, Verdict.BELOW),
        ("bbr", "htcp", Rule.EXACTLY, Verdict.DIFFERS),
        ("4096 1 2", "4096 87380 268435456", Rule.AT_LEAST, Verdict.BELOW),
        ("max", "5", Rule.AT_LEAST, Verdict.UNKNOWN),
        ("1 2", "1 2 3", Rule.AT_LEAST, Verdict.DIFFERS),
    ],
)
def test_a_value_is_compared_by_its_rule(
    here: str | None, wanted: str, rule: Rule, expected: Verdict
) -> None:
    assert verdict(here, wanted, rule) is expected


def test_no_number_is_lowered_by_the_command_or_the_file() -> None:
    wanted = {one.key: one.value for one in SYSCTLS}
    here = wanted | {"net.ipv4.tcp_rmem": "4096 131072 33554432"}
    compared = compare_sysctls(here.get)
    (one,) = [each for each in compared if each.verdict is not Verdict.OK]
    assert one.command == "sysctl -w net.ipv4.tcp_rmem='4096 131072 268435456'"
    assert "net.ipv4.tcp_rmem = 4096 131072 268435456" in sysctl_file(compared)


def test_a_host_that_tells_nothing_has_no_findings_and_an_empty_file() -> None:
    compared = compare_sysctls(lambda key: None)
    assert {one.verdict for one in compared} == {Verdict.UNKNOWN}
    assert len(sysctl_file(compared).splitlines()) == 1


def test_an_interface_and_limits_have_their_commands() -> None:
    mtu, queue = host_tuning.compare_interface("eth0.7", 1500, 10_000)
    assert (mtu.verdict, mtu.command) == (Verdict.BELOW, "ip link set eth0.7 mtu 9000")
    assert (queue.verdict, queue.key) == (Verdict.OK, "eth0.7 txqueuelen")
    compared = host_tuning.compare_limits({"open files (soft)": 1024, "fs.file-max": None})
    assert [one.verdict for one in compared] == [
        Verdict.BELOW,
        Verdict.UNKNOWN,
        Verdict.UNKNOWN,
        Verdict.UNKNOWN,
    ]
