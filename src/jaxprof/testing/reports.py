"""The pytest plugin's options, and what it does at the end of a run with the tests' programs: a table, a file, a
comparison.

The programs are kept as one session in `.jaxprof` beside the tests, found again, and compared. A program is found by
the id of its test, the name of its function, and its number among the programs of that function in the test.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from jaxprof.analysis.difference import FigureDifference
from jaxprof.analysis.gate import GateLimit, GateRow, judged, read_limits
from jaxprof.analysis.run_difference import RunDifference, facts_of, run_difference
from jaxprof.analysis.run_result import result
from jaxprof.api.session import Session, header_environment, load
from jaxprof.errors import JaxprofError, StorageError, UsageError, not_found
from jaxprof.events import SessionClosed
from jaxprof.facts import Fact, at, column
from jaxprof.report.comparison import figure, growth_text
from jaxprof.report.gate import LIMITS
from jaxprof.report.renderers import Table, text_lines
from jaxprof.session import Run
from jaxprof.session.log import Library, new_header
from jaxprof.session.log.baselines import Baselines
from jaxprof.session.log.codec import decode_line
from jaxprof.session_names import EXTENSION
from jaxprof.text import safe
from jaxprof.units import UNKNOWN, seconds

FOLDER: Final = ".jaxprof"
_NAME: Final = re.compile(r"[\w.+-]+")
_NUMBERED: Final = re.compile(r"(?P<number>\d{4,})(?:_(?P<name>.*))?")
_ATTEMPTS: Final = 100


def refuse_wrong_name(name: str) -> None:
    """Raises UsageError for a name that no file can have, and for a path: pytest takes the word after
    `--jaxprof-save` as its value."""
    if name and (not _NAME.fullmatch(name) or Path(name).exists()):
        raise UsageError(
            f"--jaxprof-save {name} is a path, or no name", "Write --jaxprof-save, or --jaxprof-save=NAME."
        )


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


def save(session: Session, root: Path, name: str) -> Path:
    """Write `.jaxprof/0001_NAME.jaxprof` below `root`, with the next number. Raises StorageError."""
    folder = root / FOLDER
    for _ in range(_ATTEMPTS):
        numbers = [int(match["number"]) for path in _kept(folder) if (match := _NUMBERED.fullmatch(path.stem))]
        stem = f"{max(numbers, default=0) + 1:04d}"
        path = folder / f"{stem}_{name}{EXTENSION}" if name else folder / f"{stem}{EXTENSION}"
        if not path.exists():
            return session.save(path)
    raise StorageError(f"no free number in {folder}", "Other runs are saving there.")


def find(name: str, root: Path) -> Path:
    """Return the session that `--jaxprof-compare` names: a path; a session in `.jaxprof` by its number, its name (the
    newest) or both; a baseline (`jaxprof gate baseline save`); or a session that `jaxprof sessions` lists. Raises
    UsageError."""
    kept = _kept(root / FOLDER)
    for path in reversed(kept):
        match = _NUMBERED.fullmatch(path.stem)
        names = {path.name, path.stem, *(match.groups() if match is not None else ())}
        if name in names:
            return path
    kept_session = Baselines().search(name) or Library().search(name)
    if kept_session is None:
        raise not_found(f"session in {FOLDER}", name, [path.stem for path in kept])
    return kept_session


def _kept(folder: Path) -> list[Path]:
    """Return the saved sessions by number, the newest last."""
    return sorted(folder.glob(f"*{EXTENSION}"), key=lambda path: (len(path.stem.partition("_")[0]), path.stem))


@dataclass(frozen=True, slots=True)
class ComparedPrograms:
    """The programs of the tests, compared with those of a base."""

    base: Path
    pairs: Mapping[str, RunDifference]
    """Run id in the present session → the difference to the base."""
    new: tuple[Run, ...]
    """Programs that the base does not have."""
    gone: tuple[Run, ...]
    """Programs of the base that were not called this time."""
    limits: tuple[GateRow, ...]

    @property
    def passed(self) -> tuple[GateRow, ...]:
        """The limits that were exceeded."""
        return tuple(row for row in self.limits if row.state == "passed")


def compared(base: Path, session: Session, limits: tuple[GateLimit, ...]) -> ComparedPrograms:
    """Compare each program with the one of the same test and name. Raises FileRefusedError if `base` is no session."""
    before = load(base)
    earlier = {_name(run): run for run in before.runs.values()}
    pairs: dict[str, RunDifference] = {}
    new: list[Run] = []
    for run in session.runs.values():
        partner = earlier.pop(_name(run), None)
        if partner is None:
            new.append(run)
        else:
            pairs[run.id] = run_difference(before, partner, session, run)
    rows = tuple(row for run_id, pair in pairs.items() for row in judged(session.runs[run_id].label, pair, limits))
    return ComparedPrograms(base, pairs, tuple(new), tuple(earlier.values()), rows)


def _name(run: Run) -> tuple[str, str]:
    return run.plan.workload, run.plan.variant


_FACTS: Final = {"kernels": "kernels", "flops": "FLOPs", "bytes": "bytes", "peak": "peak", "compiles": "compiles"}
_UNITS: Final = {"flops": "flop", "bytes": "byte", "peak": "byte"}
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What the plugin's options request."""

    root: Path
    name: str | None
    """Name of the file to save; empty for a number alone, None to save nothing."""
    base: Path | None
    """Session to compare with; None to compare nothing."""
    limits: tuple[GateLimit, ...]


def read_options(root: Path, name: str | None, base: str | None, limits: Sequence[str]) -> ReportOptions:
    """Read the options. Raises pytest.UsageError for options that cannot be followed, before any test has run."""
    try:
        if name is not None:
            refuse_wrong_name(name)
        if limits and not base:
            raise UsageError("--jaxprof-fail-on needs a base", "--jaxprof-compare=BASE names it.")
        read = read_limits(limits)
        if times := [limit.text for limit in read if limit.is_time]:
            raise UsageError(
                f"--fail-on {times[0]} is a time",
                "Two runs of pytest are not measured together; the sides of compare and gate are.",
            )
        return ReportOptions(root, name, find(base, root) if base else None, read)
    except JaxprofError as error:
        raise pytest.UsageError(f"{error.what}. {error.hint}".replace("--fail-on", "--jaxprof-fail-on")) from None


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run of pytest prints at its end."""

    lines: tuple[str, ...]
    failed: bool
    """Whether a limit was exceeded, or saving or comparing failed."""


def report(options: ReportOptions, programs: Mapping[str, Sequence[str]]) -> RunReport:
    """Return the table of the programs, after saving and comparing as the options ask. `programs`: events by test
    id."""
    if not programs:
        is_requested = options.name is not None or options.base is not None
        return RunReport(
            ("no test has called the fixture jaxprof: nothing is saved or compared",) * is_requested, False
        )
    session = session_of(programs)
    problems: list[str] = []
    comparison: ComparedPrograms | None = None
    if options.base is not None:
        try:
            comparison = compared(options.base, session, options.limits)
        except JaxprofError as error:
            problems.append(f"not compared: {error.what}. {error.hint}")
    lines = list(_summary_lines(session, comparison))
    if options.name is not None:
        try:
            lines.append(f"saved: {safe(str(save(session, options.root, options.name)))}")
        except JaxprofError as error:
            problems.append(f"not saved: {error.what}. {error.hint}")
    failed = bool(problems) or (comparison is not None and bool(comparison.passed))
    return RunReport((*lines, *map(safe, problems)), failed)


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    facts: dict[str, float | None]
    median_seconds: float | None
    before_seconds: float | None
    difference: RunDifference | None


def _summary_lines(session: Session, comparison: ComparedPrograms | None) -> Iterator[str]:
    """Yield the table, then what was compared."""
    names = _names(list(session.runs.values()))
    rows = [_row(session, run, name, comparison) for run, name in zip(session.runs.values(), names, strict=True)]
    yield from text_lines(Table(_columns(), rows), indent="")
    if comparison is not None:
        yield from _compared(comparison, rows)


def _columns() -> Sequence[Fact[_Row]]:
    def of_fact(code: str, title: str) -> Fact[_Row]:
        return column(title, lambda row: _cell(row, code), right=True)

    median = column("median", _median, right=True)
    return [column("name", at("name")), median, *(of_fact(code, title) for code, title in _FACTS.items())]


def _row(session: Session, run: Run, name: str, comparison: ComparedPrograms | None) -> _Row:
    pair = comparison.pairs.get(run.id) if comparison is not None else None
    summary = result(session, run.id).summary
    before = pair.before.closed.median_seconds if pair is not None and pair.before.closed is not None else None
    return _Row(name, facts_of(session, run), summary.median if summary else None, before, pair)


def _cell(row: _Row, code: str) -> str:
    fact = row.difference.fact(code) if row.difference is not None else None
    shown = figure(row.facts[code], _UNITS.get(code, ""))
    return f"{shown} ({_growth(fact)})" if fact is not None and fact.differs else shown


def _growth(fact: FigureDifference) -> str:
    """Return the growth: `+2` of what is counted one by one, `+12 %` of everything else."""
    if fact.unit or fact.before is None or fact.after is None:
        return growth_text(fact)
    return f"{fact.after - fact.before:+.0f}"


def _median(row: _Row) -> str:
    if row.median_seconds is None:
        return UNKNOWN
    was = f" (was {seconds(row.before_seconds)})" if row.before_seconds is not None else ""
    return seconds(row.median_seconds) + was


def _names(runs: Sequence[Run]) -> list[str]:
    """Return the names of the tests, with the function if a test called several, and the file if two have one name."""
    programs = Counter(run.plan.workload for run in runs)
    tests = Counter({run.plan.workload: run.plan.workload.rpartition("::")[2] for run in runs}.values())
    names = []
    for run in runs:
        short = run.plan.workload.rpartition("::")[2]
        test = short if tests[short] == 1 else run.plan.workload
        names.append(f"{test} {run.plan.variant}" if programs[run.plan.workload] > 1 else test)
    return names


def _compared(comparison: ComparedPrograms, rows: Sequence[_Row]) -> Iterator[str]:
    yield f"compared with {comparison.base}"
    if any(row.before_seconds is not None and row.median_seconds is not None for row in rows):
        yield "the medians were not measured together: jaxprof compare says whether one is faster"
    yield from _listed("not in the base", comparison.new)
    yield from _listed("in the base, and not called now", comparison.gone)
    if not comparison.limits:
        return
    outside = [row for row in comparison.limits if row.state != "within"]
    count = len(comparison.limits)
    if comparison.passed:
        yield f"limits: {len(comparison.passed)} of {count} exceeded"
    elif outside:
        yield f"limits: none of {count} exceeded, {len(outside)} undecided"
    else:
        yield f"limits: all {count} held"
    if outside:
        yield from text_lines(Table(LIMITS, outside))


def _listed(what: str, runs: Sequence[Run]) -> Iterator[str]:
    if runs:
        names = [f"{run.plan.workload} {run.plan.variant}" for run in runs]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"{what}: {', '.join(names[:_NAMED])}{more}"
