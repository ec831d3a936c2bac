"""Answers in the order of questions, whenever each of them is known. Pure.

A Broadcast stream begins an answer for each message and fills it in when it knows, which for those that
are on their way to the brokers may be later than for the next one. The first answer that is not a
success is the last: what was asked after it gets none.
"""

from __future__ import annotations

from collections import deque

from twinlog.ordering.statuses import SUCCESS

UNKNOWN = "unknown"  # a channel or a kind of message, as long as or because nobody knows it


class Answer:
    """One answer, not known while its status is 0; whoever fills it in sets the status last."""

    __slots__ = ("began_s", "channel_id", "checked_s", "info", "kind", "size_bytes", "status")

    def __init__(self, began_s: float, size_bytes: int) -> None:
        self.status = 0
        self.info = ""
        self.channel_id = self.kind = UNKNOWN
        self.began_s = began_s
        self.size_bytes = size_bytes  # of the message
        self.checked_s = 0.0  # when it was found good; 0 if it was not


class Replies:
    """The answers of one stream."""

    def __init__(self) -> None:
        self._waiting: deque[Answer] = deque()
        self.has_ended = False
        self.size_bytes = 0  # of the messages that wait for their answers

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, now_s: float, size_bytes: int) -> Answer:
        """A place for the answer to the next question."""
        answer = Answer(now_s, size_bytes)
        self.size_bytes += size_bytes
        self._waiting.append(answer)
        return answer

    def due(self) -> list[Answer]:
        """What can be sent now; after a refusal nothing more comes."""
        ready: list[Answer] = []
        waiting = self._waiting
        while waiting and waiting[0].status:
            answer = waiting.popleft()
            ready.append(answer)
            self.size_bytes -= answer.size_bytes
            if answer.status != SUCCESS:
                self.has_ended = True
                waiting.clear()
        return ready
