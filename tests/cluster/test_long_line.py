"""The long line of measurements: what goes over it takes a round trip and arrives whole. Needs root."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bench.line import line, round_trip_ms
from twinlog.drills.machines import Network, network

pytestmark = pytest.mark.cluster

PORT = 7001
BYTES = 3_000_000
TIMEOUT_S = 60.0
# Says when it listens; then everybody gets the same bytes.
GIVE = f"""
import random, socket
server = socket.create_server(("", {PORT}))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    try:
        connection.sendall(random.Random(1).randbytes({BYTES}))
    except OSError:
        pass
    connection.close()
"""
TAKE = f"""
import hashlib, socket, sys
taken = hashlib.sha256()
with socket.create_connection((sys.argv[1], {PORT}), timeout=30.0) as connection:
    while piece := connection.recv(1 << 20):
        taken.update(piece)
print(taken.hexdigest())
"""


@pytest.fixture
def joined() -> Iterator[Network]:
    """Two machines, with a giver on the first."""
    with network(("a", "b")) as made:
        giver = subprocess.Popen(
            made.machines["a"].command([sys.executable, "-c", GIVE]), stdout=subprocess.PIPE
        )
        try:
            assert giver.stdout is not None
            assert giver.stdout.readline() == b"listening\n"
            yield made
        finally:
            giver.kill()
            giver.wait()


def test_a_handshake_over_the_line_takes_a_round_trip(joined: Network) -> None:
    near, far = joined.machines["b"], joined.machines["a"].address
    with line(joined, "a", "b", 300):
        assert round_trip_ms(near, far, PORT) >= 300


def test_bytes_arrive_whole_and_in_order(joined: Network) -> None:
    expected = hashlib.sha256(random.Random(1).randbytes(BYTES)).hexdigest()
    with line(joined, "a", "b", 20):
        taken = subprocess.run(
            joined.machines["b"].command([sys.executable, "-c", TAKE, joined.machines["a"].address]),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
    assert taken.stdout.strip() == expected
