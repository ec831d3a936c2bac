"""One orderer as a program: `python -m twinlog.ordering.process FILE`, with Fabric's `orderer.yaml`.

`twinlog order run` calls it; `twinlog order up` leaves it behind, with a directory and a name under which it
tells once a second how it is. It ends when told to, and also when a chain says that it would go another way
than those of other orderers: then by itself, with an error, and whoever starts it again has nothing lost.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from twinlog.durable import write_text
from twinlog.errors import EXIT_FAILED, EXIT_OK, TwinlogError
from twinlog.ordering import localfile, mspdir
from twinlog.ordering.broadcast import BroadcastSession, Outbox
from twinlog.ordering.broadcast import Desk as BroadcastDesk
from twinlog.ordering.bundle import Bundle
from twinlog.ordering.calls import Session, Stream
from twinlog.ordering.chain import Chain
from twinlog.ordering.coverage import Coverage
from twinlog.ordering.deliver import DeliverSession
from twinlog.ordering.deliver import Desk as DeliverDesk
from twinlog.ordering.ledger import Ledger
from twinlog.ordering.localconfig import READ_TWIN, LocalConfig
from twinlog.ordering.metrics import Figures
from twinlog.ordering.page import Page
from twinlog.ordering.registrar import Channel, House, MakeChain, Registrar
from twinlog.ordering.server import Endpoint, Relay, Server, tls_context, trust
from twinlog.ordering.topic import Reach
from twinlog.sites.background import Background

BROADCAST = "/orderer.AtomicBroadcast/Broadcast"
DELIVER = "/orderer.AtomicBroadcast/Deliver"
REPORT_EVERY_S = 1.0
LEVELS = {
    "fatal": logging.CRITICAL,
    "panic": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "notice": logging.INFO,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
log = logging.getLogger(__name__)


class Orderer:
    """The parts of one orderer, put together."""

    def __init__(self, config: LocalConfig, make_chain: MakeChain | None = None) -> None:
        self._config = config
        self._figures = Figures()
        self._shows_metrics = config.metrics.provider == "prometheus"
        self._tls = tls_context(config.general.tls)
        self._error: BaseException | None = None
        self._stop: Callable[[], None] = lambda: None
        self._address = ""
        general = config.general
        self._registrar = Registrar(
            House(
                config,
                mspdir.read_signer(general.local_msp_dir, general.local_mspid),
                self._figures,
                log.info,
                make_chain or self._make_chain,
                self._crashed,
                self._configured,
            )
        )
        self._page: Page | None = None

    async def run(self, started: Callable[[Orderer], None]) -> None:
        """Serve until told to stop; `started` is called when clients can come."""
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        relay = Relay(loop)
        self._stop = lambda: relay.post(stop.set)
        server = Server(self._endpoint(), self._opener(relay))
        try:
            self._registrar.open()
            general, operations = self._config.general, self._config.operations
            tls = tls_context(operations.tls, protocol="http/1.1")
            self._page = Page(
                operations.listen_address,
                self._figures,
                self.health,
                tls=tls,
                shows_metrics=self._shows_metrics,
            )
            port = await server.start()
            self._address = f"{general.listen_address}:{port}"
            log.info("listening on %s, metrics and health on %s", self._address, self._page.address)
            gc.freeze()  # what is there now stays: looking through it again and again takes time
            started(self)
            await stop.wait()
        finally:
            await server.close()
            await loop.run_in_executor(None, self._registrar.close)
            if self._page is not None:
                self._page.close()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Have it end; any thread may ask."""
        self._stop()

    def told(self) -> dict[str, Any]:
        """How it is, for whoever started it."""
        return {
            "pid": os.getpid(),
            "at": time.time(),
            "address": self._address,
            "operations": self._page.address if self._page is not None else "",
            "tls": self._config.general.tls.enabled,
            "channels": {
                channel.channel_id: {
                    "height": channel.ledger.height,
                    "sequence": channel.sequence,
                    "errored": channel.is_errored,
                }
                for channel in self._registrar.channels()
            },
        }

    def health(self) -> Mapping[str, str]:
        """What is wrong, by channel; asks nobody and writes nothing to the log."""
        return {
            channel.channel_id: channel.chain.trouble or "the channel cannot follow the log"
            for channel in self._registrar.channels()
            if channel.is_errored
        }

    def _endpoint(self) -> Endpoint:
        general = self._config.general
        return Endpoint(general.listen_address, general.listen_port, general.keepalive, self._tls)

    def _opener(self, relay: Relay) -> Callable[[str, Stream], Session | None]:
        authentication = self._config.general.authentication
        binds = self._config.general.tls.enabled and self._config.general.tls.client_auth_required
        registrar = self._registrar
        writing = BroadcastDesk(registrar.find_or_system, self._figures, relay.post, Outbox(relay.soon))
        reading = DeliverDesk(registrar.find, authentication, binds, self._figures, relay.post)

        def open_session(path: str, stream: Stream) -> Session | None:
            if path == BROADCAST:
                return BroadcastSession(stream, writing)
            return DeliverSession(stream, reading) if path == DELIVER else None

        return open_session

    def _make_chain(self, channel: Channel, ledger: Ledger) -> Chain:
        config = self._config
        kafka, twinlog = config.kafka, config.twinlog
        reach = Reach(
            kafka.access(twinlog.brokers or channel.bundle.brokers),
            kafka.retry,
            replication=kafka.topic.replication_factor,
            min_insync_replicas=twinlog.min_insync_replicas,
            told=self._figures.exchange.told if self._shows_metrics else None,
        )
        if twinlog.read != READ_TWIN:
            return Chain(channel, ledger, reach)
        covered = Coverage(kafka.access(twinlog.standby), channel.channel_id)
        return Chain(channel, ledger, reach, covered=covered, release=covered.close)

    def _crashed(self, channel_id: str, error: BaseException) -> None:
        log.error("channel %s cannot go on: %s", channel_id, error)
        self._error = error
        self._stop()

    def _configured(self, bundle: Bundle) -> None:
        """With mutual TLS the members of a channel may come in."""
        if self._tls is None or self._tls.verify_mode != ssl.CERT_REQUIRED:
            return
        for msp in bundle.msps.values():
            for pem in msp.tls_roots:
                trust(self._tls, pem.decode())


def set_up_log(config: LocalConfig, env: Mapping[str, str]) -> None:
    """Print what happens, as much of it as FABRIC_LOGGING_SPEC (or General.LogLevel) asks for."""
    spec = env.get("FABRIC_LOGGING_SPEC") or config.general.log_level or "info"
    whole = [part for part in spec.split(":") if "=" not in part] or ["info"]
    logging.basicConfig(
        level=LEVELS.get(whole[-1].strip().lower(), logging.INFO),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stdout,
    )
    if config.kafka.verbose:
        logging.getLogger("twinlog.wire").setLevel(logging.DEBUG)


def run(config: LocalConfig, background: Background | None = None) -> int:
    """Be an orderer to the end; gives the exit code."""
    orderer = Orderer(config)

    def started(_: Orderer) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, orderer.stop)
        if background is not None:
            threading.Thread(target=_keep_report, args=(orderer, background.report), daemon=True).start()

    with background.alone() if background is not None else nullcontext():
        asyncio.run(orderer.run(started))
    return EXIT_OK


def _keep_report(orderer: Orderer, report: Path) -> None:
    pause = threading.Event()
    while True:
        write_text(report, json.dumps(orderer.told()) + "\n")
        pause.wait(REPORT_EVERY_S)


def main(file: str, directory: str = "", name: str = "") -> int:
    """Run the orderer that a file describes, perhaps as a background process of a bus."""
    background = Background(name, Path(directory), ()) if name else None
    try:
        config = localfile.load(Path(file), os.environ)
        set_up_log(config, os.environ)
        return run(config, background)
    except TwinlogError as error:
        print(f"error: {error}" + (f" (hint: {error.hint})" if error.hint else ""), flush=True)
        return error.exit_code or EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
