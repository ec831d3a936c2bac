"""Every example is run as it stands; those that run until they are ended are killed in `test_kills.py`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.cluster.conftest import Bus
from tests.cluster.library.conftest import USER, WAIT_S, MakeTopic
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.cluster

EXAMPLES = {
    "by_key.py": (),
    "by_partition.py": (),
    "in_turns.py": (),
    "work_queue.py": ("queue",),
    "publish_subscribe.py": ("billing", "shipping"),
    "retries.py": ("retrying",),
    "asynchronous.py": ("loop",),
}
RUN_ELSEWHERE = {"demo.py", "twin_producer.py", "offsets_in_sqlite.py", "relay.py"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs_as_it_stands(name: str, work: Bus, make_topic: MakeTopic) -> None:
    topic = make_topic(name)
    if name == "retries.py":
        make_topic(f"{topic}.retry")
        make_topic(f"{topic}.dead")
    command = [sys.executable, str(REPOSITORY / "examples" / name), work.file.name, USER, topic]
    ended = subprocess.run(
        [*command, *EXAMPLES[name]],
        cwd=work.directory,
        env=work.environment(),
        capture_output=True,
        text=True,
        timeout=2 * WAIT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    if name == "work_queue.py":
        workers = re.findall(r"worker: (\d+) partitions, (\d+) jobs", ended.stdout)
        assert sorted(int(partitions) for partitions, _ in workers) == [1, 2]
        assert sorted(int(jobs) for _, jobs in workers) == [20, 40]


def test_no_example_is_left_out() -> None:
    assert {path.name for path in (REPOSITORY / "examples").glob("*.py")} == {*EXAMPLES, *RUN_ELSEWHERE}
