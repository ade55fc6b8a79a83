"""One test that uses the marker or the fixture: its watch, its limits, its end; and at the end of a run a table of the
programs of all tests, and a session file, which `jaxprof gate` and `jaxprof compare` take.

The marker `@pytest.mark.jaxprof(max_compiles=1, ...)` has the limits. An unknown fact is not within any limit: the test
fails, and reports what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pytest

from jaxprof.api.session import Session, header_environment
from jaxprof.base.errors import JaxprofError, UsageError, unknown_name
from jaxprof.base.text import safe
from jaxprof.events import SessionClosed
from jaxprof.facts import column, pick, within
from jaxprof.facts.comparisons import EXACT
from jaxprof.findings.compare.session_difference import facts_of
from jaxprof.report import Table, text_lines
from jaxprof.report.program_words import signature, why_again
from jaxprof.session import new_header
from jaxprof.session.files import EXTENSION
from jaxprof.session.lines import decode_line, encode_line
from jaxprof.testing.calls import Caller, CompileWatch


def file_of(option: str) -> Path:
    """Return the session file that `--jaxprof-save` names, which is replaced. Raises pytest.UsageError for a name with
    another ending: pytest takes the word after the option as its value, a file of tests too."""
    path = Path(option)
    if path.suffix not in ("", EXTENSION) or path.is_dir():
        raise pytest.UsageError(f"--jaxprof-save {option} is not a session file. Write --jaxprof-save=NAME{EXTENSION}.")
    return path.with_suffix(EXTENSION)


def session_of(lines: Mapping[str, Iterable[str]]) -> Session:
    """Return one session of the programs of all tests, with their runs numbered. `lines`: log lines by test id."""
    session = Session(new_header(header_environment()))
    count = 0
    for test_lines in lines.values():
        numbers: dict[str, str] = {}
        for line in test_lines:
            event = decode_line(line.encode())
            if event.run not in numbers:
                count += 1
                numbers[event.run] = f"r{count}"
            session.apply(replace(event, run=numbers[event.run]))
    session.apply(SessionClosed())
    return session


def report(path: Path | None, programs: Mapping[str, Sequence[str]]) -> tuple[list[str], bool]:
    """Return the table of the programs, after saving them at `path`, if there is one; and whether that failed.
    `programs`: events by test id."""
    if not programs:
        return ["no test has called the fixture jaxprof: nothing is saved"], False
    session = session_of(programs)
    runs = list(session.runs.values())
    programs_of = Counter(run.plan.workload for run in runs)
    tests = Counter({run.plan.workload: run.plan.workload.rpartition("::")[2] for run in runs}.values())
    rows = []
    for run in runs:
        short = run.plan.workload.rpartition("::")[2]
        test = short if tests[short] == 1 else run.plan.workload
        name = f"{test} {run.plan.variant}" if programs_of[run.plan.workload] > 1 else test
        rows.append((name, facts_of(session, run)))
    exact = (replace(fact, title=_SHOWN[fact.key]) for fact in pick(EXACT, *_SHOWN))
    columns = [column("name", itemgetter(0)), *within(itemgetter(1), exact)]
    lines = list(text_lines(Table(columns, rows), indent=""))
    if path is None:
        return lines, False
    try:
        return [*lines, safe(f"saved: {session.save(path, replace=True)}")], False
    except JaxprofError as error:
        return [*lines, safe(f"not saved: {error.what}. {error.hint}")], True


_SHOWN = {
    "kernels": "kernels",
    "flops": "FLOPs",
    "accessed_bytes": "bytes",
    "peak_bytes": "peak",
    "compiles": "compiles",
}
"""Code of a fact → the title of its column."""


FACT_LIMITS = {
    "max_kernels": "kernels",
    "max_flops": "flops",
    "max_bytes": "accessed_bytes",
    "max_peak_bytes": "peak_bytes",
}
"""Limit on the program of a call → the code of the fact."""
COMPILES = "max_compiles"
LIMITS = (COMPILES, *FACT_LIMITS)
_LISTED = 8


def limits_of(item: pytest.Item) -> dict[str, float]:
    """Return the limits of a test; the nearest of several markers decides. Raises UsageError."""
    limits: dict[str, float] = {}
    for mark in item.iter_markers("jaxprof"):
        if mark.args:
            raise UsageError(f"the marker jaxprof takes no {mark.args[0]!r} without a name", "Write max_compiles=1.")
        for name, value in mark.kwargs.items():
            if name not in LIMITS:
                raise unknown_name("limit of the marker jaxprof", name, LIMITS)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise UsageError(f"the marker jaxprof has {name}={value!r}", "A limit is a number, 0 or more.")
            limits.setdefault(name, value)
    return limits


def refuse_wrong_markers(items: Iterable[pytest.Item]) -> None:
    """Raises pytest.UsageError for the first marker that cannot be read."""
    for item in items:
        try:
            limits_of(item)
        except JaxprofError as error:
            raise pytest.UsageError(f"{item.nodeid}: {error.what}. {error.hint}") from None


def find_excesses(limits: Mapping[str, float], caller: Caller) -> list[str]:
    """Return what exceeds the limits, each as a few lines; empty if nothing does."""
    failures: list[str] = []
    if COMPILES in limits:
        keys = {key for function in caller.functions for key in function.keys}
        most = limits[COMPILES]
        for rows in caller.watch.by_function(keys).values():
            if len(rows) <= most:
                continue
            times = "once" if len(rows) == 1 else f"{len(rows)} times"
            lines = [safe(f"{rows[0].function}: {COMPILES}={most:g}, compiled {times}")]
            for number, row in enumerate(rows[:_LISTED], start=1):
                at = f" at {row.called_from.short()}" if row.called_from else ""
                lines.append(safe(f"  {number}. {row.function}{signature(row)}{at}: {why_again(row)}"))
            if len(rows) > _LISTED:
                lines.append(f"  and {len(rows) - _LISTED} more")
            failures.append("\n".join(lines))
    fact_limits = {name: limits[name] for name in FACT_LIMITS if name in limits}
    if fact_limits and not caller.programs:
        names = " and ".join(fact_limits)
        failures.append(f"{names}: the test has not called the fixture jaxprof, so there is no program to look at")
    for program in caller.programs:
        call = f"{program.function.name}({', '.join(program.call.words)})"
        for name, most in fact_limits.items():
            (fact,) = pick(EXACT, FACT_LIMITS[name])
            value = program.facts[fact.key]
            if value is None:
                why = f": {program.run.error}" if program.run.error else ""
                failures.append(safe(f"{call}: {name}={most:g}, not known{why}"))
            elif value > most:
                rounded = f" ({fact.shown(value)})" if fact.unit.name and value >= 10_000 else ""
                failures.append(safe(f"{call}: {name}={most:g}, found {value:.0f}{rounded}"))
    return failures


_CALLER = pytest.StashKey[Caller]()
_LINES = pytest.StashKey[list[str]]()


@contextmanager
def watch_test(item: pytest.Item) -> Iterator[Caller]:
    """Yield what calls a test's functions, from the fixture or the test's body on, whichever begins first, until that
    ends; meanwhile all compilations are watched."""
    existing = item.stash.get(_CALLER, None)
    if existing is not None:
        yield existing
        return
    caller = Caller(item.nodeid, CompileWatch())
    try:
        caller.watch.start()
    except ImportError as error:
        pytest.fail(f"the fixture and the marker jaxprof need jax, which cannot be imported: {error}", False)
    item.stash[_CALLER] = caller
    try:
        yield caller
    finally:
        caller.watch.stop()
        del item.stash[_CALLER]
        item.stash[_LINES] = [
            encode_line(replace(event, run=f"r{number}")).decode()
            for number, program in enumerate(caller.programs, start=1)
            for event in program.events
        ]


def lines_of(item: pytest.Item) -> list[str]:
    """Return the events of the programs that a finished test called, as lines of a session's log."""
    return item.stash.get(_LINES, [])


@contextmanager
def enforce_limits(item: pytest.Item) -> Iterator[None]:
    """Run the test's body inside; if it passes and a limit of its marker is exceeded, the test fails."""
    try:
        limits = limits_of(item)
    except JaxprofError as error:
        pytest.fail(f"jaxprof: {error.what}. {error.hint}", pytrace=False)
    with watch_test(item) as caller:
        yield
        failures = find_excesses(limits, caller)
    if failures:
        pytest.fail("\n".join(f"jaxprof: {failure}" for failure in failures), pytrace=False)
