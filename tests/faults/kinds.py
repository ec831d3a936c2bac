"""What a fault run does to the mirror and its sites, kind by kind. Pure.

`plan` draws from these, `hands` takes them, `results` counts each towards `WANTED`. The words are those
of the results file: a kind that is renamed begins to count anew.
"""

from __future__ import annotations

from enum import StrEnum

WANTED = 25


class Kind(StrEnum):
    """One kind of fault."""

    WORKER = "worker killed"
    EXECUTOR = "executor killed"
    DRIVER = "driver killed"
    ACTIVE_BROKER = "broker of the active killed"
    STANDBY_BROKER = "broker of the standby killed"
    TASKS_IN_FILL = "all tasks killed in a fill"
    STANDBY_ENDED_IN_FILL = "standby ended in a fill"
    STANDBY_KILLED_IN_FILL = "standby killed in a fill"
    TWO_MIRRORS = "second mirror started"
    STOPPED = "mirror stopped, replaced, continued"
    MESSAGE_LIMIT = "message limit of the standby too small"
    DISK_FULL = "disk of the standby full"
    ACTIVE_SITE = "active killed under acks=twin"
    LINK_STILL = "link stands still under acks=twin, active killed"

    @property
    def how(self) -> str:
        """What is done, for the table."""
        return _HOW[self]

    @property
    def needs_executors(self) -> bool:
        """True if it takes a Spark whose tasks run in processes of their own."""
        return self is Kind.EXECUTOR


_HOW = {
    Kind.WORKER: "kill -9 of one Python worker of Spark",
    Kind.EXECUTOR: "kill -9 of one of Spark's executors (`local-cluster`)",
    Kind.DRIVER: "kill -9 of the mirror's driver; started again",
    Kind.ACTIVE_BROKER: "kill -9 of a broker, mostly the crowded partition's leader; started again",
    Kind.STANDBY_BROKER: "the same at the standby",
    Kind.TASKS_IN_FILL: "kill -9 of all Python workers while the standby's end lies inside a gap",
    Kind.STANDBY_ENDED_IN_FILL: "SIGTERM of all its brokers at such a moment; started again",
    Kind.STANDBY_KILLED_IN_FILL: "kill -9 of all its brokers at such a moment; started again",
    Kind.TWO_MIRRORS: "its lock is deleted and another mirror started beside it",
    Kind.STOPPED: "SIGSTOP of all its processes, another mirror started, SIGCONT a minute later",
    Kind.MESSAGE_LIMIT: "`max.message.bytes` below what is on its way; the reason is shown; set back",
    Kind.DISK_FULL: "its brokers may write no more (a limit on files) and end; the reason is shown; mended",
    Kind.ACTIVE_SITE: "kill -9 of all its brokers; what was acknowledged is looked up at the standby alone",
    Kind.LINK_STILL: "SIGSTOP of the mirror, a while later the same; SIGCONT",
}
