"""The options of pytest, and what its end does with the programs of its tests: a table, a file, a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from jaxprof.analysis.gate import GateLimit, read_limits
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.testing.saved import ComparedPrograms, compared, find, refuse_wrong_name, save, session_of
from jaxprof.testing.summary import summary_lines
from jaxprof.text import safe


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What the options ask for."""

    root: Path
    name: str | None
    """Of the file to save; empty for a number alone, None to save nothing."""
    base: Path | None
    """What to compare with."""
    limits: tuple[GateLimit, ...]


def read_options(root: Path, name: str | None, base: str | None, limits: Sequence[str]) -> ReportOptions:
    """Raises pytest.UsageError for options that cannot be followed, before any test has run."""
    try:
        if name is not None:
            refuse_wrong_name(name)
        if limits and not base:
            raise UsageError("--jaxprof-fail-on needs a base", "--jaxprof-compare=BASE names it.")
        read = read_limits(limits)
        if times := [limit.text for limit in read if limit.is_time]:
            raise UsageError(
                f"--fail-on {times[0]} is a time", "Two runs of pytest are not measured together; ab and gate are."
            )
        return ReportOptions(root, name, find(base, root) if base else None, read)
    except JaxprofError as error:
        raise pytest.UsageError(f"{error.what}. {error.hint}".replace("--fail-on", "--jaxprof-fail-on")) from None


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run of pytest says at its end."""

    lines: tuple[str, ...]
    failed: bool
    """Whether a limit was passed, or what was asked for could not be done."""


def report(options: ReportOptions, programs: Mapping[str, Sequence[str]]) -> RunReport:
    """The table of the programs, saved and compared as the options ask. `programs`: events by the test's id."""
    if not programs:
        asked = options.name is not None or options.base is not None
        return RunReport(("no test has called the fixture jaxprof: nothing is saved or compared",) * asked, False)
    session = session_of(programs)
    problems: list[str] = []
    comparison: ComparedPrograms | None = None
    if options.base is not None:
        try:
            comparison = compared(options.base, session, options.limits)
        except JaxprofError as error:
            problems.append(f"not compared: {error.what}. {error.hint}")
    lines = list(summary_lines(session, comparison))
    if options.name is not None:
        try:
            lines.append(f"saved: {safe(str(save(session, options.root, options.name)))}")
        except JaxprofError as error:
            problems.append(f"not saved: {error.what}. {error.hint}")
    failed = bool(problems) or (comparison is not None and bool(comparison.passed))
    return RunReport((*lines, *map(safe, problems)), failed)
