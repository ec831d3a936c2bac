"""Every error that Twinlog raises on purpose.

    TwinlogError             what happened, where, and a hint
    ├── UsageError           the command was called wrongly             exit 2
    │   └── FileProblems     the file is wrong: every problem at once   exit 2
    ├── Findings             the command worked and found something     exit 3
    ├── PrerequisiteError    the machine lacks something: Java, memory, disk, a port
    ├── SiteError            a site, or one of its nodes, did not do what it should
    ├── KafkaError           Kafka refused; carries Kafka's own code
    └── UnknownOutcome       a write was sent and nobody can say whether it took

The command line turns each into a message on stderr and an exit code; nothing below it prints.
A message says what was being done and to what; the hint is a command to run or a question to ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_FINDINGS = 3


class TwinlogError(Exception):
    """Something went wrong that the user can understand and do something about."""

    exit_code = EXIT_FAILED

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class UsageError(TwinlogError):
    """The command was called in a way that cannot work."""

    exit_code = EXIT_USAGE


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong (or doubtful) in the file, with its place.

    What came from the environment has line 0 and the variable as its path: "$TWINLOG_SITES_A_BROKERS".
    """

    line: int
    column: int
    what: str
    hint: str = ""
    path: str = ""  # where in the document: "sites.a.brokers"
    severity: str = "error"  # or "warning"

    def render(self, file: str) -> str:
        """The problem as compilers print it, so that editors can jump to the place."""
        place = f"{file}:{self.line}:{self.column}" if self.line else self.path
        text = f"{place}: {self.severity}: {self.what}"
        return f"{text}\n    hint: {self.hint}" if self.hint else text


class FileProblems(UsageError):
    """The file cannot be used; carries every problem in it, in the order of lines."""

    def __init__(
        self, file: str, problems: Sequence[Problem], *, hint: str = "twinlog schema --help"
    ) -> None:
        self.file = file
        self.problems = tuple(sorted(problems))
        count = len(self.problems)
        noun = "problem" if count == 1 else "problems"
        super().__init__(f"{count} {noun} in {file}", hint=hint)

    def __str__(self) -> str:
        return "\n".join(problem.render(self.file) for problem in self.problems)


class Findings(TwinlogError):
    """The command did its work and found what the user wants to know about (exit 3)."""

    exit_code = EXIT_FINDINGS


class PrerequisiteError(TwinlogError):
    """This machine lacks something that the work needs."""


class SiteError(TwinlogError):
    """A site or one of its nodes did not do what it should."""


class KafkaError(TwinlogError):
    """Kafka refused a request. `code` is Kafka's own name for the reason."""

    def __init__(
        self, what: str, *, code: str = "UNKNOWN", retriable: bool = False, where: str = "", hint: str = ""
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.code = code
        self.retriable = retriable


class UnknownOutcome(TwinlogError):
    """A write was sent and the answer never came: it may have been done or not."""
