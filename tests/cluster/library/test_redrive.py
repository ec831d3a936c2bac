"""Dead letters on their way back, by the library and by the command."""

from __future__ import annotations

import threading

import pytest

from tests.cluster.conftest import Bus
from tests.cluster.library.conftest import USER, WAIT_S, MakeTopic, take
from twinlog import Consumer, Done, Outgoing, Producer, Received, Retries, Worker, redrive
from twinlog.client.retries import ORIGIN, REASON

pytestmark = pytest.mark.cluster


def write_letters(producer: Producer, topic: str, *values: bytes) -> None:
    """Dead letters that came from a topic."""
    headers = [("kind", b"late"), (ORIGIN, f"{topic}/0/7".encode()), (REASON, b"no such article")]
    outcomes = producer.send_many(Outgoing(f"{topic}.dead", one, headers=headers) for one in values)
    assert all(isinstance(outcome, Done) for outcome in outcomes)


def test_letters_go_back_once_and_those_that_do_not_say_where_from_need_a_place(
    work: Bus, topic: str, producer: Producer, make_topic: MakeTopic
) -> None:
    dead = make_topic(f"{topic}.dead")
    write_letters(producer, topic, b"one", b"two")
    told = work.json("redrive", dead, exit_code=2)
    assert told["letters"] == [{"topic": topic, "reason": "no such article", "records": 2}]
    assert told["redrive"]["sent"] == 0
    assert isinstance(producer.send(dead, b"three", partition=0).result(WAIT_S), Done)
    homeless = work.run("redrive", dead, "--yes")
    assert homeless.returncode == 2 and "hint: name a topic for them: --to TOPIC" in homeless.stderr
    nowhere = work.run("redrive", dead, "--to", "nowhere", "--yes")
    assert nowhere.returncode == 1 and "there is no topic 'nowhere'" in nowhere.stderr
    shown = work.run("redrive", dead, "--to", topic)
    assert shown.returncode == 2 and f"twinlog redrive {dead} --to {topic} --yes" in shown.stderr
    assert work.json("redrive", dead, "--to", topic, "--yes")["redrive"]["sent"] == 3
    assert work.json("redrive", dead, "--yes") == {
        "redrive": {"topic": dead, "group": f"redrive-{dead}", "sent": 0},
        "letters": [],
    }
    with Consumer.of_bus(work.file, USER, "redriven", [topic]) as consumer:
        got = {record.value: record.headers for record in take(consumer, 3)}
        assert consumer.poll(0.5) is None
    assert got == {b"one": (("kind", b"late"),), b"two": (("kind", b"late"),), b"three": ()}


def test_letters_that_fail_again_at_once_do_not_go_round_for_ever(
    work: Bus, topic: str, producer: Producer, make_topic: MakeTopic
) -> None:
    dead = make_topic(f"{topic}.dead")
    values = [b"%d" % number for number in range(20)]
    write_letters(producer, topic, *values)
    stop = threading.Event()

    def fails(_: Received) -> None:
        raise ValueError("still no such article")

    def work_on() -> None:
        with Consumer.of_bus(work.file, USER, "failing", [topic]) as consumer:
            worker = Worker(consumer, producer, fails, Retries(topic, delays_s=()))
            while not stop.is_set():
                worker.run_once(0.2)

    thread = threading.Thread(target=work_on)
    thread.start()
    try:
        with Consumer.of_bus(work.file, USER, "sending-back", [dead]) as letters:
            assert redrive(letters, producer) == len(values)
        with Consumer.of_bus(work.file, USER, "counting", [dead]) as counter:
            assert len(take(counter, 2 * len(values))) == 2 * len(values)
            assert counter.poll(0.5) is None
        with Consumer.of_bus(work.file, USER, "sending-back", [dead]) as letters:
            assert redrive(letters, producer) == len(values)
    finally:
        stop.set()
        thread.join()
