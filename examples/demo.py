"""The demo: two secured sites from nothing, and then the loss of one, judged record by record.

Run by `make demo`. First it uses the program as a user does (`twinlog up`, `status`, `client`), with a
Kafka client that knows nothing of Twinlog and the settings that `twinlog client` prints. Then it lets
a drill tell the story: load, mirror, kill -9 of the whole active site, failover, salvage, and the way home.
All it makes lives in a directory of its own, which is removed at the end, also after Ctrl-C; the
drill's report stays in the directory that is given.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer

BUS = """\
bus: demo
kafka: {group.initial.rebalance.delay.ms: 0}
sites:
  a: {brokers: 3}
  b: {brokers: 3}
active: a
topics:
  orders: {partitions: 6, mirror: false}    # writable at both sites
  payments: {partitions: 3}                 # mirrored: at the standby nobody writes
users:
  shop: {produce: [orders, payments]}
  stock: {consume: [orders], groups: [stock-*]}
"""
RECORDS = 1000
READ_TIMEOUT_S = 60.0


DRILL = "site-comes-home"


class Demo:
    """The steps, in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.began = time.monotonic()

    def say(self, text: str) -> None:
        """One line of the story, with the time since its beginning."""
        print(f"[{time.monotonic() - self.began:5.1f} s] {text}", flush=True)

    def twinlog(self, *args: str) -> None:
        """Run a command, show what it shows, and end with it where it fails."""
        print(f"\n$ twinlog {' '.join(args)}", flush=True)
        ended = subprocess.run([sys.executable, "-m", "twinlog", *args], cwd=self.directory, check=False)
        if ended.returncode:
            raise SystemExit(ended.returncode)

    def settings(self, user: str, site: str) -> dict[str, str]:
        """The client settings that the program prints for a user."""
        command = [sys.executable, "-m", "twinlog", "client", user, "--site", site, "--format", "librdkafka"]
        printed = subprocess.run(
            command, cwd=self.directory, check=True, capture_output=True, text=True
        ).stdout
        lines = (line for line in printed.splitlines() if line and not line.startswith("#"))
        return {name.strip(): value.strip() for name, value in (line.split("=", 1) for line in lines)}

    def write(self, site: str) -> None:
        """Write orders at a site and insist on an acknowledgement for each."""
        refused: list[str] = []
        producer = Producer({**quiet(self.settings("shop", site)), "acks": "all"})

        def answered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                refused.append(str(error))

        for number in range(RECORDS):
            key = f"customer-{number % 17}"
            producer.produce("orders", json.dumps({"site": site, "order": number}), key, on_delivery=answered)
        left = producer.flush(READ_TIMEOUT_S)
        if refused or left:
            raise SystemExit(f"site {site}: {len(refused)} records refused, {left} unanswered: {refused[:1]}")
        self.say(f"site {site}: {RECORDS} orders written over TLS as user shop, all acknowledged")

    def read(self, site: str) -> None:
        """Read them back in a group and insist on each one, once."""
        consumer = Consumer(
            {
                **quiet(self.settings("stock", site)),
                "group.id": f"stock-{site}",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["orders"])
        seen: list[int] = []
        end = time.monotonic() + READ_TIMEOUT_S
        while len(seen) < RECORDS and time.monotonic() < end:
            for message in consumer.consume(500, timeout=1.0):
                if message.error() is None:
                    seen.append(json.loads(message.value() or b"")["order"])
        consumer.close()
        if sorted(seen) != list(range(RECORDS)):
            raise SystemExit(
                f"site {site}: {len(set(seen))} of {RECORDS} orders read, {len(seen)} records in all"
            )
        self.say(f"site {site}: {RECORDS} orders read as user stock, each once")

    def try_standby(self) -> None:
        """Show that a mirrored topic takes no client's record at the standby."""
        answers: list[str] = []
        producer = Producer(quiet(self.settings("shop", "b")))
        producer.produce("payments", b"1", on_delivery=lambda error, _: answers.append(str(error)))
        producer.flush(READ_TIMEOUT_S)
        if not answers or "TOPIC_AUTHORIZATION_FAILED" not in answers[0]:
            raise SystemExit(f"site b took a record that belongs to site a: {answers}")
        self.say("site b: a record for the mirrored topic payments is refused, as it should be")


def quiet(settings: dict[str, str]) -> dict[str, Any]:
    """Without the client's remark on settings that only the other kind of client uses."""
    return {**settings, "log_level": 3}


def main(report: Path) -> None:
    """The story."""
    directory = Path(tempfile.mkdtemp(prefix="twinlog-demo-"))
    (directory / "twinlog.yaml").write_text(BUS)
    demo = Demo(directory)
    is_understood = True
    try:
        demo.say(f"a bus of two sites, declared in {directory / 'twinlog.yaml'}")
        demo.twinlog("up")
        for site in ("a", "b"):
            demo.write(site)
            demo.read(site)
        demo.try_standby()
        demo.twinlog("status")
        demo.twinlog("down")
        demo.say("now the loss of a site: clients write and read, and the active one is killed under them")
        demo.twinlog("drill", "run", DRILL, "--directory", str(directory), "--report", str(report))
    except SystemExit:
        is_understood = False  # what a broken promise left behind is kept
        raise
    finally:
        demo.twinlog("destroy", "--yes", "--quiet")
        if is_understood:
            shutil.rmtree(directory)
        else:
            demo.say(f"nothing is left running; what is known of the failure: {directory}")
    demo.say(f"nothing is left running; the report: {report}")


if __name__ == "__main__":
    # A closed terminal ends it as Ctrl-C does: nothing is left behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-report.html").absolute())
    except KeyboardInterrupt:
        sys.exit(130)
