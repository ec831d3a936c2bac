"""What processes have sent over their TCP connections, as the kernel counts it (Linux, INET_DIAG).

For `idle`: neither brokers nor mirrors count their requests where one could read it, but a request of
an idle mirror is one segment with data, and those are counted for every socket.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterator, Sequence

import psutil

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_DUMP_REQUEST = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_DONE, _ERROR = 3, 2
_INFO = 2  # INET_DIAG_INFO, the attribute with struct tcp_info
_ESTABLISHED = 1 << 1
_MESSAGE = struct.Struct("=IHHII")  # length, type, flags, sequence, pid
_REQUEST = struct.Struct("=BBBBI48x")  # family, protocol, extensions, padding, states, any address
_ATTRIBUTE = struct.Struct("=HH")
_ENTRY_BYTES = 72  # struct inet_diag_msg
_PORTS = struct.Struct(">HH")
_PORTS_AT = 4
_DATA_SEGMENTS_OUT = struct.Struct("=I")
_DATA_SEGMENTS_OUT_AT = 156  # tcpi_data_segs_out
_CHUNK_BYTES = 1 << 16


def segments(processes: Sequence[psutil.Process], ports: Collection[int]) -> int:
    """Segments with data that processes have sent to these ports, over connections that are open now."""
    own: set[int] = set()
    for process in processes:
        try:
            own |= {one.laddr.port for one in process.net_connections("tcp") if one.laddr}
        except psutil.NoSuchProcess:
            continue
    return sum(sent for local, remote, sent in _connections() if local in own and remote in ports)


def _connections() -> Iterator[tuple[int, int, int]]:
    """Every open connection: its two ports and what it has sent."""
    for family in (socket.AF_INET, socket.AF_INET6):
        request = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _ESTABLISHED)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            size = _MESSAGE.size + len(request)
            kernel.send(_MESSAGE.pack(size, _SOCK_DIAG_BY_FAMILY, _DUMP_REQUEST, 1, 0) + request)
            yield from _answers(kernel)


def _answers(kernel: socket.socket) -> Iterator[tuple[int, int, int]]:
    while True:
        data = kernel.recv(_CHUNK_BYTES)
        at = 0
        while at < len(data):
            size, kind, *_ = _MESSAGE.unpack_from(data, at)
            if kind == _DONE:
                return
            if kind == _ERROR:
                raise OSError("the kernel does not tell about connections")
            entry = data[at + _MESSAGE.size : at + size]
            local, remote = _PORTS.unpack_from(entry, _PORTS_AT)
            yield local, remote, _sent(entry)
            at += (size + 3) & ~3


def _sent(entry: bytes) -> int:
    at = _ENTRY_BYTES
    while at < len(entry):
        size, kind = _ATTRIBUTE.unpack_from(entry, at)
        if kind == _INFO:
            (count,) = _DATA_SEGMENTS_OUT.unpack_from(entry, at + _ATTRIBUTE.size + _DATA_SEGMENTS_OUT_AT)
            return int(count)
        at += (size + 3) & ~3
    return 0
