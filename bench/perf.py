"""`twinlog perf` beside Kafka's own tools: the same options, client file and topic, taking turns.

Run by `make bench-perf`. One site, secured as always; both sides log in as the same user. Kafka's tools run
with the options of Kafka's own scripts (512 MB of heap, G1). Each figure is what the tool itself printed,
so the start of a JVM is in none; connecting is in Kafka's, so runs must be long beside it. Machines are
noisy: sides take turns, and the ratio is that of the medians.
Progress goes to stderr; the last line on stdout is JSON with every figure and the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.ground import ACTIVE, Ground, ground, interruptible, say
from twinlog.progress import Silent
from twinlog.sites.local import ensure_kafka

TOPIC, PING, USER = "perf", "perf-ping", "perf"
JAVA = ["-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:+ExplicitGCInvokesConcurrent"]
PRODUCER, CONSUMER = (
    "org.apache.kafka.tools.ProducerPerformance",
    "org.apache.kafka.tools.ConsumerPerformance",
)
LATENCY = "org.apache.kafka.tools.EndToEndLatency"
SENT = re.compile(r"^\d+ records sent, ([\d.]+) records/sec .* ([\d.]+) ms avg latency.*th\.$", re.MULTILINE)
MEAN = re.compile(r"^Avg latency: ([\d.]+) ms$", re.MULTILINE)
RUN_TIMEOUT_S = 900
OURS, THEIRS = "twinlog", "kafka"


@dataclass(frozen=True)
class Tools:
    """Both sides, each called with the same words."""

    ground: Ground
    client_file: Path
    bootstrap: str
    java: tuple[str, ...]

    def produce(self, side: str, records: int, record_bytes: int, rate: float, more: list[str]) -> float:
        """Records a second."""
        words = ["--topic", TOPIC, "--num-records", str(records), "--record-size", str(record_bytes)]
        words += ["--throughput", f"{rate:g}", "--bootstrap-server", self.bootstrap]
        words += ["--command-config", str(self.client_file), "--command-property", "acks=all", *more]
        found = SENT.search(self._run(side, "produce", PRODUCER, words))
        assert found is not None
        return float(found[1])

    def consume(self, side: str, records: int) -> float:
        """Records a second while fetching: without the time that joining the group takes."""
        words = ["--topic", TOPIC, "--num-records", str(records), "--bootstrap-server", self.bootstrap]
        words += ["--command-config", str(self.client_file), "--hide-header", "--timeout", "30000"]
        words += ["--group", f"{USER}-{os.urandom(4).hex()}"]
        line = self._run(side, "consume", CONSUMER, words).strip().splitlines()[-1]
        return float(line.rsplit(", ", 1)[1])

    def latency(self, side: str, records: int, record_bytes: int) -> float:
        """The mean in milliseconds."""
        words = [self.bootstrap, PING, str(records), "all", str(record_bytes), str(self.client_file)]
        found = MEAN.search(self._run(side, "latency", LATENCY, words))
        assert found is not None
        return float(found[1])

    def _run(self, side: str, command: str, main_class: str, words: list[str]) -> str:
        program = (
            [sys.executable, "-m", "twinlog", "perf", command] if side == OURS else [*self.java, main_class]
        )
        ended = subprocess.run(
            [*program, *words],
            cwd=self.ground.directory,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(f"{' '.join([*program, *words])}:\n{ended.stdout}{ended.stderr}")
        return ended.stdout


def in_turns(what: str, rounds: int, measure: Callable[[str], float]) -> dict[str, Any]:
    """Both sides, round after round; who begins changes, because the first one finds a quieter broker."""
    figures: dict[str, list[float]] = {OURS: [], THEIRS: []}
    for number in range(rounds):
        for side in (OURS, THEIRS) if number % 2 == 0 else (THEIRS, OURS):
            figures[side].append(measure(side))
            say(f"{what}: {side} {figures[side][-1]:,.1f}, load {os.getloadavg()[0]:.1f}")
    medians = {side: statistics.median(found) for side, found in figures.items()}
    return {**figures, "ratio": round(medians[OURS] / medians[THEIRS], 3)}


def measured(tools: Tools, asked: argparse.Namespace) -> dict[str, Any]:
    """Everything."""
    batches = ["batch.size=131072", "linger.ms=5"]
    return {
        "full_speed": in_turns(
            "full speed, records/s",
            asked.rounds,
            lambda side: tools.produce(side, asked.records, asked.record_bytes, -1, batches),
        ),
        "full_speed_defaults": in_turns(
            "full speed with each side's own batches, records/s",
            asked.rounds,
            lambda side: tools.produce(side, asked.records, asked.record_bytes, -1, []),
        ),
        "target_rate": in_turns(
            f"target {asked.rate:g}/s, records/s",
            1,
            lambda side: tools.produce(
                side, int(asked.rate * asked.seconds), asked.record_bytes, asked.rate, []
            ),
        ),
        "consume": in_turns(
            "reading, records/s", asked.rounds, lambda side: tools.consume(side, asked.records)
        ),
        "latency_ms": in_turns(
            "there and back, ms", 1, lambda side: tools.latency(side, asked.trips, asked.record_bytes)
        ),
    }


def main() -> None:
    """The measurement."""
    parser = argparse.ArgumentParser(description="twinlog perf beside Kafka's own tools")
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--record-bytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=2000.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--trips", type=int, default=1000)
    asked = parser.parse_args()
    # A pattern: the topics are declared when the site is up.
    rights = {"produce": [f"{TOPIC}*"], "consume": [f"{TOPIC}*"], "groups": ["*"]}
    with interruptible(), ground("perf", asked.brokers, (ACTIVE,), users={USER: rights}) as made:
        topic = {"partitions": asked.partitions, "mirror": False, "config": {"segment.bytes": "128MiB"}}
        made.write_file({TOPIC: topic, PING: {"partitions": 1, "mirror": False}})
        made.run("apply", "--yes")
        client_file = made.directory / "client.properties"
        client_file.touch(mode=0o600)
        client_file.write_text(made.run("client", USER, "--site", ACTIVE, "--format", "java"))
        kafka = ensure_kafka(Silent(), with_archive=False)
        class_path = ":".join(map(str, kafka.class_path))
        bootstrap = ",".join(made.home.user_access(USER, ACTIVE).bootstrap)
        tools = Tools(made, client_file, bootstrap, (str(kafka.java.binary), *JAVA, "-cp", class_path))
        print(json.dumps({"settings": vars(asked), **measured(tools, asked)}))


if __name__ == "__main__":
    main()
