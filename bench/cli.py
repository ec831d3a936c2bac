"""How quick the commands are: `topic list` beside Kafka's own tool, `group lag` over many groups, any start.

Run by `make bench-cli`. Both tools get the same site, the same user's rights and a client file, and take
turns, so that a busy moment of the machine hits both; each runs as its users run it, from nothing.
Kafka's tool runs with the options of its own start script. Every command is asked for its help, and those
that look at nothing but this machine are run: the slowest of them is named. The last line on stdout is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from bench.ground import ACTIVE, Ground, ground, interruptible, say
from twinlog.cli import app
from twinlog.progress import Silent
from twinlog.sites.local import ensure_kafka
from twinlog.wire import groups, topics
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.clientfiles.write import Client, Format, render
from twinlog.wire.groups import Committed
from twinlog.wire.stores import StoreType

# What bin/kafka-run-class.sh gives every tool, and bin/kafka-topics.sh its heap.
SCRIPT_OPTIONS = [
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]
TOPIC_COMMAND = "org.apache.kafka.tools.TopicCommand"
LAG_TOPICS, LAG_PARTITIONS, LAG_GROUPS = 20, 50, 200  # 1,000 partitions; a group reads five
RECORD_LAG = 3
# What shows something without asking a site.
ALONE = ("version", "schema", "completion bash", "host check", "certs status", "drill list", "logs")
STARTS = 2  # of each; the quicker one counts: a busy moment of the machine is not the command's


def options() -> argparse.Namespace:
    """How often each is run."""
    parser = argparse.ArgumentParser(prog="bench.cli", description=__doc__)
    parser.add_argument("--turns", type=int, default=7, help="runs of each tool")
    parser.add_argument("--brokers", type=int, default=1, help="of the site")
    return parser.parse_args()


def timed(command: list[str], directory: Path, exit_codes: tuple[int, ...] = (0,)) -> tuple[float, str]:
    """How long a program takes, and what it prints."""
    began = time.monotonic()
    ended = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    took_s = time.monotonic() - began
    if ended.returncode not in exit_codes:
        raise RuntimeError(f"{' '.join(command)} failed:\n{ended.stdout}{ended.stderr}")
    return took_s, ended.stdout


def program(*words: str) -> list[str]:
    """Our own command."""
    return [sys.executable, "-m", "twinlog", *words]


def java_tool(access: Access, directory: Path) -> list[str]:
    """Kafka's own command for the same site, with a client file."""
    kafka = ensure_kafka(Silent(), with_archive=False)
    client = Client("admin", access, Tuning(), StoreType.PEM, directory)
    file = directory / "admin.properties"
    file.write_text(render(client, Format.JAVA).text)
    class_path = ":".join(map(str, kafka.class_path))
    command = [str(kafka.java.binary), *SCRIPT_OPTIONS, "-cp", class_path, TOPIC_COMMAND]
    return [*command, "--bootstrap-server", access.bootstrap[0], "--command-config", str(file), "--list"]


def measure_list(on: Ground, turns: int) -> dict[str, Any]:
    """Both tools in turns, after one run of each that does not count."""
    theirs = java_tool(on.home.admin_access(ACTIVE), on.directory)
    ours = program("topic", "list", "--internal")
    took: dict[str, list[float]] = {"ours": [], "theirs": []}
    for turn in range(turns + 1):
        for name, command in (("ours", ours), ("theirs", theirs)):
            seconds, printed = timed(command, on.directory)
            assert "lag-0" in printed, printed
            if turn:
                took[name].append(seconds)
        say(f"topic list, turn {turn}: {', '.join(f'{name} {s[-1]:.2f} s' for name, s in took.items() if s)}")
    ours_s, theirs_s = statistics.median(took["ours"]), statistics.median(took["theirs"])
    return {
        "topic_list_s": round(ours_s, 3),
        "kafka_topics_s": round(theirs_s, 3),
        "ratio": round(ours_s / theirs_s, 3),
        "topic_list_spread_s": [round(min(took["ours"]), 3), round(max(took["ours"]), 3)],
        "kafka_topics_spread_s": [round(min(took["theirs"]), 3), round(max(took["theirs"]), 3)],
    }


def prepare_lag(on: Ground) -> None:
    """Topics with a few records in each partition, and groups that have not read the last ones."""
    with on.cluster(ACTIVE) as cluster:
        names = [f"lag-{number}" for number in range(LAG_TOPICS)]
        for name in names:
            topics.create(cluster, topics.NewTopic(name, LAG_PARTITIONS, 1))
    lines = "\n".join(
        json.dumps({"value": "x" * 100, "partition": number % LAG_PARTITIONS})
        for number in range(LAG_PARTITIONS * 2 * RECORD_LAG)
    )
    for name in names:
        subprocess.run(
            program("produce", name, "--json"),
            cwd=on.directory,
            input=lines,
            text=True,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    each = LAG_TOPICS * LAG_PARTITIONS // LAG_GROUPS
    places = [(name, index) for name in names for index in range(LAG_PARTITIONS)]
    with on.cluster(ACTIVE) as cluster:
        groups.commit(
            cluster,
            {
                f"group-{number}": {
                    place: Committed(RECORD_LAG) for place in places[number * each : (number + 1) * each]
                }
                for number in range(LAG_GROUPS)
            },
        )


def measure_lag(on: Ground, turns: int) -> dict[str, Any]:
    """All groups at once, with seconds and status."""
    took = []
    for turn in range(turns + 1):
        # Nobody reads in these groups, so all of them are stopped: exit code 3.
        seconds, printed = timed(program("group", "lag", "-o", "json"), on.directory, (0, 3))
        rows = json.loads(printed)
        assert (
            len(rows) == LAG_GROUPS and sum(row["partitions"] for row in rows) == LAG_TOPICS * LAG_PARTITIONS
        )
        assert all(row["lag_s"] > 0 for row in rows)
        if turn:
            took.append(seconds)
    return {
        "group_lag_s": round(statistics.median(took), 3),
        "groups": LAG_GROUPS,
        "partitions": LAG_TOPICS * LAG_PARTITIONS,
    }


def named(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and every group of commands, by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*words, name)
        if isinstance(command, click.Group):
            yield from named(command, (*words, name))


def measure_starts(directory: Path) -> dict[str, Any]:
    """The help of every command, and what needs no site."""
    commands = [(), *named(app.program())]
    runs = [(*words, "--help") for words in commands] + [tuple(line.split()) for line in ALONE]
    took: dict[str, float] = {}
    for words in runs:
        # 3: something was found, on this host or among certificates.
        seconds = min(timed(program(*words), directory, (0, 3))[0] for _ in range(STARTS))
        took[" ".join(words)] = seconds
    slowest = max(took, key=lambda line: took[line])
    say(f"{len(took)} starts, the slowest: twinlog {slowest}, {took[slowest]:.2f} s")
    return {
        "starts": len(took),
        "start_s": round(statistics.median(took.values()), 3),
        "slowest_start": slowest,
        "slowest_start_s": round(took[slowest], 3),
    }


def main() -> None:
    """Measure and print."""
    chosen = options()
    with interruptible(), ground("bench-cli", chosen.brokers, sites=(ACTIVE,)) as on:
        say("making topics and groups")
        prepare_lag(on)
        found = measure_list(on, chosen.turns) | measure_lag(on, chosen.turns)
        found |= measure_starts(on.directory)
    print(json.dumps(found | {"load_average": [round(load, 1) for load in os.getloadavg()]}))


if __name__ == "__main__":
    main()
