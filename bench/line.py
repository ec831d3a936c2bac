"""A long line between two machines of a network: every packet arrives half a round trip later.

The router hands what goes between the two to a TUN device, and a process of its own, `python -m
bench.line`, gives it back after the delay; whoever measures, in the router's own network, reaches both
machines without it. Segments stay together as the kernel made them (GSO), so that Python carries tens of
megabytes a second with packets of the usual size on both ends. Nothing is dropped, and nothing is slowed
down but by the delay. Gone when the block ends.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from twinlog.drills.machines import Machine, Network

DEVICE = "far"
TABLE, PRIORITY = "178", "90"
QUEUE = "10000"  # packets that wait for the relay
MOST_AT_ONCE = 64
PACKET_BYTES = 1 << 17  # more than the largest that the kernel hands over
COMMAND_TIMEOUT_S = 20.0
TRIES = 5
# Times a TCP handshake, which takes one round trip.
HANDSHAKE = """
import socket, sys, time
best = 1e9
for _ in range(int(sys.argv[3])):
    began = time.perf_counter()
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 10).close()
    best = min(best, time.perf_counter() - began)
print(best * 1000)
"""

_SET_DEVICE, _SET_OFFLOAD = 0x400454CA, 0x400454D0
_TUN, _NO_INFO, _WITH_HEADER = 0x0001, 0x1000, 0x4000
_CHECKSUMS, _TCP_SEGMENTS, _TCP6_SEGMENTS = 0x01, 0x02, 0x04


@contextmanager
def line(joined: Network, one: str, other: str, round_trip_ms: float) -> Iterator[None]:
    """A line of this round trip between two machines while the block runs."""
    relay = subprocess.Popen(
        [sys.executable, "-m", "bench.line", str(round_trip_ms / 2)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    machines = joined.machines[one], joined.machines[other]
    try:
        if relay.stdout is None or relay.stdout.readline() != b"ready\n":
            raise RuntimeError("the relay of the long line did not start")
        _ip("link", "set", DEVICE, "txqueuelen", QUEUE, "up")
        _ip("route", "add", "default", "dev", DEVICE, "table", TABLE)
        for way in _ways(joined, *machines):
            _ip("rule", "add", *way)
        yield
    finally:
        for way in _ways(joined, *machines):
            _ip("rule", "del", *way, check=False)
        relay.send_signal(signal.SIGTERM)
        relay.wait()


def round_trip_ms(near: Machine, address: str, port: int) -> float:
    """The shortest of some handshakes from a machine with an address."""
    command = near.command([sys.executable, "-c", HANDSHAKE, address, str(port), str(TRIES)])
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S + 10 * TRIES, check=True
    )
    return float(done.stdout)


def _ways(joined: Network, one: Machine, other: Machine) -> Iterator[list[str]]:
    """Both ways, as rules for what comes from a machine: what the relay gives back must not match again."""
    numbers = {name: number for number, name in enumerate(joined.machines, start=1)}
    for source, target in ((one, other), (other, one)):
        incoming = ["iif", f"line{numbers[source.name]}"]
        places = ["from", source.address, "to", target.address]
        yield [*places, *incoming, "lookup", TABLE, "prio", PRIORITY]


def _ip(*words: str, check: bool = True) -> None:
    """Run `ip` in the router's network, where whoever measures is."""
    subprocess.run(["ip", *words], timeout=COMMAND_TIMEOUT_S, check=check, capture_output=not check)


# The relay


def opened() -> int:
    """The TUN device, which takes and gives packets with the header that says how they are cut."""
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    kind = struct.pack("16sH", DEVICE.encode(), _TUN | _NO_INFO | _WITH_HEADER)
    fcntl.ioctl(handle, _SET_DEVICE, kind)
    fcntl.ioctl(handle, _SET_OFFLOAD, _CHECKSUMS | _TCP_SEGMENTS | _TCP6_SEGMENTS)
    return handle


def carry(handle: int, delay_s: float) -> None:
    """Give every packet back when its time has come, for ever. The delay is one, so they stay in order."""
    waiting: deque[tuple[float, bytes]] = deque()
    while True:
        left_s = waiting[0][0] - time.monotonic() if waiting else None
        ready, _, _ = select.select([handle], [], [], None if left_s is None else max(0.0, left_s))
        if ready:
            due = time.monotonic() + delay_s
            waiting.extend((due, packet) for packet in _packets(handle))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            os.write(handle, waiting.popleft()[1])


def _packets(handle: int) -> Iterator[bytes]:
    for _ in range(MOST_AT_ONCE):
        try:
            yield os.read(handle, PACKET_BYTES)
        except BlockingIOError:
            return


def main() -> None:
    """Be the relay."""
    handle = opened()
    print("ready", flush=True)
    carry(handle, float(sys.argv[1]) / 1000)


if __name__ == "__main__":
    main()
