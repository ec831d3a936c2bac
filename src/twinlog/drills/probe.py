"""A probe of writes that must be refused: one record for each partition, tried once, and what it was told.

The story of `under-min-isr` asks. Clients of the load try again by themselves and say nothing of refusals,
so that a bus which refuses would look like one that hangs.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from functools import partial

from twinlog.drills.cast import ORDERS, USER, Program
from twinlog.drills.history import Outcome, Write
from twinlog.drills.reach import tuning_of
from twinlog.drills.recording import Recorder
from twinlog.sites.home import Home
from twinlog.wire.driver import Delivered, Outgoing, Report, Sender, Settings

NAME = "probe"
ANSWER_S = 10.0
ONCE: Settings = {"client.id": NAME, "enable.idempotence": False, "retries": 0}
TOO_FEW = "NOT_ENOUGH_REPLICAS"
TAKEN, TOO_FEW_REFUSED, OTHERWISE = "taken", f"refused with {TOO_FEW}", "not answered, or otherwise"


def probe(home: Home, site: str, recorder: Recorder) -> Counter[str]:
    """Write a record to each partition with acks=all, and count what was answered; each is in the history."""
    answers: Counter[str] = Counter()
    sender = Sender(home.user_access(USER, site), timeout_s=ANSWER_S, tuning=tuning_of(home), settings=ONCE)
    for partition in range(home.bus.topics[ORDERS].partitions):
        write = Write(
            NAME,
            Program.LIBRDKAFKA,
            "all",
            False,
            ORDERS,
            f"{NAME}:{partition}@{time.time_ns()}",
            Outcome.UNKNOWN,
            start_s=recorder.now_s(),
        )
        recorder.add(write)
        told = partial(_told, recorder, write, answers)
        sender.send(Outgoing(ORDERS, write.value.encode(), partition=partition), told)
    sender.flush(2 * ANSWER_S)
    sender.close()
    return answers


def _told(recorder: Recorder, write: Write, answers: Counter[str], report: Report) -> None:
    ended = replace(write, end_s=recorder.now_s())
    if isinstance(report, Delivered):
        answers[TAKEN] += 1
        ended = replace(
            ended, outcome=Outcome.OK, partition=report.partition, offset=report.offset, retried=False
        )
    elif is_refusal(report.reason):
        answers[TOO_FEW_REFUSED] += 1
        ended = replace(ended, outcome=Outcome.FAILED)  # it was tried once, and not appended
    else:
        answers[OTHERWISE] += 1
    recorder.add(ended)


def is_refusal(reason: str) -> bool:
    """True if a site has said that too few copies are in sync, before it took the record."""
    return TOO_FEW in reason and f"{TOO_FEW}_AFTER_APPEND" not in reason


def said(answers: Counter[str]) -> str:
    """The answers in words."""
    return ", ".join(f"{count} {answer}" for answer, count in sorted(answers.items())) or "nothing was sent"
