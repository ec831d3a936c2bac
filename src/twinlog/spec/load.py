"""From a file to a Bus, with every problem at once and each at its place.

Called by the commands. The file is read as YAML (`document`), changed by the environment
(`environment`), typed (`model`, in our words by `wording`) and checked (`check`). A part that has
the wrong type is left out and the rest is still checked, so that one run shows everything.
Raises UsageError for a file that cannot be found or read, FileProblems for one that is wrong.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from twinlog.errors import FileProblems, Problem
from twinlog.spec import check, environment, typed, wording
from twinlog.spec.document import Document, Path, dotted, read
from twinlog.spec.file import Loaded, content
from twinlog.spec.finding import Finding
from twinlog.spec.implied import with_implied
from twinlog.spec.model import Bus

_ROUNDS = 8  # leaving a part out can uncover another error below it, a few levels at most
# What stands in for a required part that is missing or wrong, so that the rest can be checked.
_STAND_INS: Mapping[str, Any] = {"bus": "unnamed", "sites": {"a": {}}}


def load(file: FilePath, env: Mapping[str, str]) -> Loaded:
    """The bus that a file and an environment declare."""
    return parse(content(file), file, env)


def parse(raw: bytes, file: FilePath, env: Mapping[str, str]) -> Loaded:
    """As `load`, for text that was read already."""
    document = read_bytes(raw)
    # Without a mapping there is nothing that a rule or a variable could be about.
    if document.data is None or not isinstance(document.data, dict):
        raise FileProblems(str(file), document.problems or [_no_mapping(document)])
    overrides = environment.collect(env, document.data)
    data = environment.apply(overrides, document.data)
    bus, found = _validate(data, document.broken)
    problems = document.problems + overrides.problems

    def locate(finding: Finding) -> Problem:
        return _problem(finding, document, overrides)

    problems += [locate(finding) for finding in found]
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors or bus is None:
        raise FileProblems(str(file), errors)
    return Loaded(with_implied(bus), file, tuple(sorted(problems)), locate)


def read_bytes(raw: bytes) -> Document:
    """Parse the bytes of a file; YAML is UTF-8."""
    try:
        return read(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        what = f"byte 0x{raw[error.start]:02X} is not UTF-8"
        return Document(problems=[Problem(line, column, what, "save the file as UTF-8")])


def _no_mapping(document: Document) -> Problem:
    hint = "twinlog init writes a file to start from"
    if document.data is None:
        return Problem(1, 1, "the file is empty", hint)
    place = document.place((), at_key=False)
    return Problem(place.line, place.column, "expected keys such as `bus:` and `sites:` here", hint)


def _validate(data: dict[str, Any], unread: list[Path]) -> tuple[Bus | None, list[Finding]]:
    """Type the data; leave out what is wrong until the rest is right; check the rest.

    `unread` are the parts that YAML itself could not give, which were reported already.
    """
    found: list[Finding] = []
    rest: Any = copy.deepcopy(data)
    for _ in range(_ROUNDS):
        try:
            bus = typed.validated(Bus, rest)
        except ValidationError as error:
            fresh = wording.findings(error, rest)
            known = {finding.path for finding in found} | set(unread)
            found += [finding for finding in fresh if finding.path not in known]
            for finding in fresh:
                _leave_out(rest, finding.path)
            continue
        broken = [finding.path for finding in found]
        return bus, found + check.findings(bus, [*broken, *unread])
    return None, found


def _leave_out(data: Any, path: Path) -> None:
    """Remove one part from the data; a list loses the element's whole list, or indexes would shift."""
    whole_list = next((index for index, part in enumerate(path) if isinstance(part, int)), None)
    if whole_list is not None:
        path = path[:whole_list]
    for part in path[:-1]:
        data = data.get(part) if isinstance(data, dict) else None
    if not isinstance(data, dict) or not path:
        return
    data.pop(path[-1], None)
    if len(path) == 1 and path[0] in _STAND_INS:
        data[path[0]] = copy.deepcopy(_STAND_INS[str(path[0])])


def _problem(finding: Finding, document: Document, overrides: environment.Overrides) -> Problem:
    variable = overrides.variable_at(finding.path)
    if variable is not None:
        return Problem(0, 0, finding.what, finding.hint, f"${variable}", finding.severity)
    place = document.place(finding.path, at_key=finding.at_key)
    if finding.within is not None:
        place = document.place_within(finding.path, finding.within)
    path = dotted(finding.path)
    return Problem(place.line, place.column, finding.what, finding.hint, path, finding.severity)
