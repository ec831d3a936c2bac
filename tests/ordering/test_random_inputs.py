"""Whatever clients send, an orderer answers with a status, changes nothing it should not, and goes on."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import cast

from tests.ordering.front import CHANNEL, MemoryChain, local_config
from tests.ordering.network import Network
from twinlog.ordering import callers, messages
from twinlog.ordering.calls import Stream
from twinlog.ordering.chain import Chain
from twinlog.ordering.ledger import Ledger
from twinlog.ordering.process import BROADCAST, DELIVER, Orderer
from twinlog.ordering.proto import common_pb2, orderer_pb2
from twinlog.ordering.registrar import Channel
from twinlog.ordering.server import Relay

STATUSES = {200, 400, 403, 404, 503}


class FakeStream:
    """A stream that keeps what is sent on it."""

    peer_certificate = None

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.outgoing: list[bytes] = []
        self.trailer: bytes | None = None

    def send(self, message: bytes, times: int = 1) -> None:
        self.sent += [message] * times

    def finish(self, code: int = 0, text: str = "") -> None:
        assert code == 0
        self.trailer = b""

    def hold(self) -> None:
        pass

    def release(self) -> None:
        pass


class AtOnce:
    """Runs what is posted."""

    def post(self, call: Callable[[], None]) -> None:
        call()

    soon = post


class Target:
    """An orderer whose sessions are called without a server."""

    def __init__(self, network: Network, directory: Path) -> None:
        self.chains: dict[str, MemoryChain] = {}

        def make(channel: Channel, ledger: Ledger) -> Chain:
            self.chains[channel.channel_id] = MemoryChain(channel, ledger)
            return cast(Chain, self.chains[channel.channel_id])

        self.orderer = Orderer(local_config(network, directory), make)
        self.orderer._registrar.open()
        self._open = self.orderer._opener(cast(Relay, AtOnce()))
        creation = network.creation(CHANNEL, "Both", [network.signer("Org1")])
        self.creation = creation.SerializeToString()
        assert self.broadcast(self.creation) == 200

    def _answers(self, path: str, raw: bytes) -> list[bytes]:
        stream = FakeStream()
        session = self._open(path, cast(Stream, stream))
        assert session is not None
        session.message(raw)
        session.half_closed()
        session.gone()
        return stream.sent

    def broadcast(self, raw: bytes) -> int:
        (answer,) = self._answers(BROADCAST, raw)
        return int(orderer_pb2.BroadcastResponse.FromString(answer).status)

    def deliver(self, raw: bytes) -> int | None:
        """The status in the end, or None for a reader that waits."""
        answers = [orderer_pb2.DeliverResponse.FromString(one) for one in self._answers(DELIVER, raw)]
        return int(answers[-1].status) if answers and answers[-1].HasField("status") else None

    @property
    def log_bytes(self) -> int:
        return sum(len(chain.log) for chain in self.chains.values())


def _mutated(raw: bytes, dice: random.Random) -> bytes:
    """Bytes that almost are what they were."""
    changed = bytearray(raw)
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(changed)) if changed else 0
        match dice.randrange(5):
            case 0 if changed:
                changed[place] ^= 1 << dice.randrange(8)
            case 1:
                changed[place:place] = dice.randbytes(dice.randint(1, 9))
            case 2:
                del changed[place : place + dice.randint(1, 30)]
            case 3:
                del changed[place:]
            case _ if changed:
                changed[place] = dice.randrange(256)
    return bytes(changed)


def _try(network: Network, directory: Path, count: int, seed: int) -> None:
    dice = random.Random(seed)
    target = Target(network, directory)
    member = network.signer("Org1", "client")
    transaction = messages.signed(common_pb2.ENDORSER_TRANSACTION, CHANNEL, b"data", member)
    seek = callers.seek(CHANNEL, callers.span(0, None), member)
    good = 0
    for _ in range(count):
        base = dice.choice([transaction, transaction, target.creation, seek, b""])
        raw = _mutated(base, dice) if base else dice.randbytes(dice.randint(0, 80))
        if dice.random() < 0.25:
            assert target.deliver(raw) in STATUSES | {None}
            continue
        before = target.log_bytes
        status = target.broadcast(raw)
        assert status in STATUSES
        assert (target.log_bytes > before) == (status == 200)
        good += status == 200
    assert good < count / 10  # almost everything was refused
    assert target.broadcast(transaction) == 200
    assert target.deliver(seek) == 200
    for chain in target.chains.values():
        assert list(chain.ledger.faults()) == []


def test_hundred_thousand_random_inputs_do_not_stop_an_orderer(network: Network, tmp_path: Path) -> None:
    _try(network, tmp_path, 100_000, seed=2)
