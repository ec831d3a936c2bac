"""What this host has: kernel settings, the interfaces on the way to an address, limits of files. Reads only.

For `twinlog host check`. What a system does not have, or does not tell, is None; nothing here raises for it.
"""

from __future__ import annotations

import ipaddress
import resource
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

PROC_SYS = Path("/proc/sys")
SYS_NET = Path("/sys/class/net")
_ANY_PORT = 9092  # nothing is sent there
_INTERNET = (socket.AF_INET, socket.AF_INET6)


@dataclass(frozen=True)
class Interface:
    """A network interface."""

    name: str
    mtu_bytes: int | None
    queue_length: int | None


def sysctl(key: str, root: Path = PROC_SYS) -> str | None:
    """A setting of the kernel."""
    return _text(root.joinpath(*key.split(".")))


def interfaces_towards(host: str, root: Path = SYS_NET) -> list[Interface]:
    """The interface that packets to a host leave by, and what lies beneath it: that of a VLAN, say."""
    own = _own_address(host)
    if own is None:
        return []
    found = [
        name
        for name, addresses in psutil.net_if_addrs().items()
        if any(_is_same(own, one.address) for one in addresses if one.family in _INTERNET)
    ]
    names = [*found, *(lower for name in found for lower in _beneath(name, root))]
    told = psutil.net_if_stats()
    return [
        Interface(name, told[name].mtu if name in told else None, _number(root / name / "tx_queue_len"))
        for name in dict.fromkeys(names)
    ]


def limits(root: Path = PROC_SYS) -> dict[str, int | None]:
    """How many files a process of this shell may have open, all may, and a process may map."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = 2**31
    return {
        "open files (soft)": unlimited if soft == resource.RLIM_INFINITY else soft,
        "open files (hard)": unlimited if hard == resource.RLIM_INFINITY else hard,
        "fs.file-max": _number(root / "fs" / "file-max"),
        "vm.max_map_count": _number(root / "vm" / "max_map_count"),
    }


def _own_address(host: str) -> str | None:
    """The address of ours that packets to a host would bear; asking for it sends nothing."""
    with suppress(OSError):
        for family, _, _, _, address in socket.getaddrinfo(host, _ANY_PORT, type=socket.SOCK_DGRAM):
            with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
    return None


def _is_same(own: str, listed: str) -> bool:
    mine, theirs = ipaddress.ip_address(own), ipaddress.ip_address(listed.partition("%")[0])
    # All of 127.0.0.0/8 is the loopback's, which lists one address.
    return mine == theirs or (mine.is_loopback and theirs.is_loopback)


def _beneath(name: str, root: Path) -> list[str]:
    with suppress(OSError):
        return sorted(path.name.removeprefix("lower_") for path in (root / name).glob("lower_*"))
    return []


def _text(path: Path) -> str | None:
    with suppress(OSError):
        return path.read_text().strip()
    return None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and text.isdigit() else None
