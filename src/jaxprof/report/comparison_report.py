"""Report a whole comparison, of two sessions or of the sides of a measured comparison: text, Markdown, JSON and CSV.

The tables are those of `report.comparison`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.ab import AbResult, AbVersus, ab_results, side_versus
from jaxprof.analysis.session_difference import RunComparison, SessionDifference
from jaxprof.facts import SENTENCE, Fact, at, pick, recorder, within
from jaxprof.facts.runs import RUNS
from jaxprof.facts.sessions import state_of, state_words
from jaxprof.facts.units import ANY, BY_NAME, LIST, NUMBER, NUMBERS, OBJECT, ROWS, SECONDS, TEXT, TRUTH
from jaxprof.report.comparison import (
    BUFFERS_COMPARED,
    COLLECTIVES_COMPARED,
    ENVIRONMENT,
    FIGURES,
    FINDINGS_COMPARED,
    FUNCTIONS_COMPARED,
    KERNELS_COMPARED,
    PHASES,
    PROGRAM_FINDINGS_COMPARED,
    STAGES_COMPARED,
    STATES_COMPARED,
    STATUS,
    WIDTH,
    answer,
    environment_table,
    named,
    tables,
    title,
)
from jaxprof.report.renderers import csv_lines, markdown, markdown_lines, text_lines, wrap
from jaxprof.report.run_text import most_important
from jaxprof.report.runs import parameters_text
from jaxprof.report.sides import KEPT, PLAN, SPEC, VERSUS, SideRow, ab_head, side_rows, verdict_line
from jaxprof.report.table import Table
from jaxprof.session import Run, Session
from jaxprof.text import safe

if TYPE_CHECKING:
    from jaxprof.analysis.difference import FigureDifference
    from jaxprof.analysis.kernel_difference import KernelDifferences
    from jaxprof.analysis.session_difference import ProgramDifference


def _heading(name: str, session: Session) -> str:
    header = session.header
    return f"{name}: {header.session}  ·  {header.created}  ·  {header.host}  ·  {state_words(session)}"


def _notes(difference: SessionDifference) -> Iterator[str]:
    for session in (difference.before, difference.after):
        yield from (f"note: {notice}" for notice in session.notices)
    if not difference.runs:
        yield "No run of the first session matches a run of the second: " + _why_no_pair(difference)
    for side, runs in (("first", difference.only_before), ("second", difference.only_after)):
        for run in runs:
            yield f"only in the {side} session: {_run_name(run)}"


def _why_no_pair(difference: SessionDifference) -> str:
    if not difference.before.runs or not difference.after.runs:
        side = "first" if not difference.before.runs else "second"
        return f"the {side} has no runs."
    first, second = (_suggested_run(session) for session in (difference.before, difference.after))
    return (
        "workload, variant, kind of device and parameters must be equal. To compare two runs all the same, name "
        f"them: jaxprof compare FIRST:{first} SECOND:{second}."
    )


def _suggested_run(session: Session) -> str:
    """Return the id of the first run with HLO, or of the first run without any."""
    return next((run.id for run in session.runs.values() if "hlo" in run.texts), next(iter(session.runs)))


def _run_name(run: Run) -> str:
    parameters = parameters_text(run.plan.parameters)
    return f"{run.id} {run.label}{f' ({parameters})' if parameters else ''}"


def _stored_verdicts(difference: SessionDifference, session: Session) -> Iterator[str]:
    """Yield the verdicts of the measured comparisons that a session holds; none if `difference` compares two runs of
    one session."""
    if difference.before is not difference.after:
        yield from (verdict_line(versus) for result in ab_results(session) for versus in result.versus)


def comparison_text(difference: SessionDifference) -> str:
    """Return the whole report, without a line break at its end."""
    lines: list[str] = []
    for name, session in (("first", difference.before), ("second", difference.after)):
        lines.append(safe(_heading(name, session)))
        for sentence in _stored_verdicts(difference, session):
            lines += wrap(sentence, width=WIDTH, indent="    ", first="  ")
    lines.append("")
    lines += text_lines(environment_table(difference), width=WIDTH)
    for pair in difference.runs:
        heading = safe(title(pair))
        lines += ["", *wrap(heading, width=WIDTH, indent="  ", first=""), "─" * min(WIDTH, len(heading))]
        if (versus := side_versus(pair.session_before, pair.before, pair.after)) is not None:
            lines += wrap(verdict_line(versus), width=WIDTH, indent="  ")
        lines += wrap(answer(pair), width=WIDTH, indent="  ")
        for reason in pair.difference.unlike:
            lines.append(safe(f"  not the same measurement: {reason}"))
        for table in tables(pair):
            if table_lines := list(text_lines(table, width=WIDTH)):
                lines += ["", *table_lines]
    if notes := list(_notes(difference)):
        lines.append("")
        for note in notes:
            lines += wrap(note, width=WIDTH, indent="  ", first="")
    return "\n".join(lines)


def comparison_markdown(difference: SessionDifference) -> str:
    """Return the report as Markdown for a pull request."""
    lines: list[str] = []
    for name, session in (("first", difference.before), ("second", difference.after)):
        lines.append(f"- {markdown(_heading(name, session))}")
        lines += [f"  - {markdown(sentence)}" for sentence in _stored_verdicts(difference, session)]
    lines.append("")
    lines += _markdown_table(environment_table(difference))
    for pair in difference.runs:
        lines += ["", f"### {markdown(title(pair))}", ""]
        if (versus := side_versus(pair.session_before, pair.before, pair.after)) is not None:
            lines += [markdown(verdict_line(versus)), ""]
        lines.append(markdown(answer(pair)))
        lines += [f"\nNot the same measurement: {markdown(reason)}" for reason in pair.difference.unlike]
        for table in tables(pair):
            if table_lines := _markdown_table(table):
                lines += ["", *table_lines]
    if notes := [f"- {markdown(note)}" for note in _notes(difference)]:
        lines += ["", *notes]
    return "\n".join(lines)


def _markdown_table(table: Table[Any]) -> list[str]:
    """Return the table as Markdown, or only its notes if it has no rows."""
    rows = list(table.rows)
    if rows:
        return list(markdown_lines(Table(table.columns, rows, notes=table.notes)))
    return [markdown(note) for note in table.notes]


RUN_COMPARED: Final[tuple[Fact[Run], ...]] = (
    Fact("run", TEXT, "Id of the run", at("id")),
    Fact("workload", TEXT, "Name of the workload, the function or the program", at("plan.workload")),
    Fact("variant", TEXT, "numpy, jax, jit, or a name of the user's", at("plan.variant")),
    Fact("device", TEXT, "Where it ran", at("plan.device")),
    Fact("parameters", BY_NAME, "Parameters of the workload", lambda run: dict(run.plan.parameters)),
    Fact("status", TEXT, "How it ended", at("shown.status")),
)
_SIDE: Final[tuple[Fact[Session], ...]] = (
    Fact("session", TEXT, "Identity of the session", at("header.session")),
    Fact("created", TEXT, "When it was begun, in UTC", at("header.created")),
    Fact("host", TEXT, "Name of the machine", at("header.host")),
    Fact("state", TEXT, "complete, interrupted, or the signal that ended it", state_of),
    Fact("notices", LIST, "What of the session could not be read"),
    Fact("comparisons", ROWS, "Measured comparisons that it holds", ab_results, inside=KEPT),
)
_OF_BOTH: Final[tuple[Fact[Any], ...]] = (
    Fact("before", NUMBER, "The figure of the first program"),
    Fact("after", NUMBER, "The figure of the second program"),
)


def _sum(key: str, meaning: str, code: str) -> Fact[ProgramDifference]:
    def read(difference: ProgramDifference) -> FigureDifference:
        return next(row for row in difference.sums if row.code == code)

    return Fact(key, OBJECT, meaning, read, inside=_OF_BOTH)


_PROGRAM: Final[tuple[Fact[ProgramDifference], ...]] = (
    _sum("steps_per_second", "Steps of the hottest loop a second", "steps a second"),
    _sum("wall_seconds", "Wall time", "wall time"),
    _sum("compiles", "Compilations", "compilations"),
    _sum("compile_seconds", "Time of all compilations", "compile time"),
    Fact("functions", ROWS, "What was compiled, by function", inside=FUNCTIONS_COMPARED),
    Fact("timeline", ROWS, "What the main thread's time was spent on", at("states"), inside=STATES_COMPARED),
    Fact("findings", ROWS, "What is worth changing", inside=PROGRAM_FINDINGS_COMPARED),
)


def _timed_kernels(pair: RunComparison) -> KernelDifferences | None:
    """Return the kernels of a pair; None unless the times of all of them are known."""
    kernels = pair.difference.kernels
    return None if kernels is None or kernels.difference_seconds is None else kernels


PAIR: Final[tuple[Fact[RunComparison], ...]] = (
    Fact("before", OBJECT, "The first run", inside=RUN_COMPARED),
    Fact("after", OBJECT, "The second run", inside=RUN_COMPARED),
    Fact("side", OBJECT, "How the two compare, where they were measured in turns",
         lambda pair: side_versus(pair.session_before, pair.before, pair.after), inside=VERSUS),
    Fact("unlike", LIST, "Why the two runs are not the same measurement", at("difference.unlike")),
    Fact("differs", TRUTH, "Whether they differ in exact facts; null if unknown", at("difference.differs")),
    Fact("answer", TEXT, "What differs in exact facts, in a line", answer),
    Fact("phases", ROWS, "The phases of a call", inside=PHASES),
    *within(at("difference"), (
        Fact("facts", ROWS, "Exact figures, which have no noise", inside=FIGURES),
        Fact("kernels", ROWS, "Kernels", at("kernels.rows"), inside=KERNELS_COMPARED),
    )),
    Fact("kernels_seconds", OBJECT, "Time of all kernels of a call", _timed_kernels, inside=(
        Fact("before", SECONDS, "Time of all kernels on the first side", at("before_seconds")),
        Fact("after", SECONDS, "Time of all kernels on the second side", at("after_seconds")),
        Fact("difference", SECONDS, "The second less the first", at("difference_seconds")),
    )),
    *within(at("difference"), (
        Fact("collectives", ROWS, "Collectives", inside=COLLECTIVES_COMPARED),
        Fact("findings", ROWS, "What is worth changing in the HLO", inside=FINDINGS_COMPARED),
        Fact("buffers", ROWS, "Buffers", inside=BUFFERS_COMPARED),
        Fact("passes", ROWS, "Stages of the compiler", inside=STAGES_COMPARED),
    )),
    Fact("program", OBJECT, "What differs between two recorded programs", inside=_PROGRAM, when=at("program")),
)  # fmt: skip
DIFFERENCE: Final[tuple[Fact[SessionDifference], ...]] = (
    Fact("before", OBJECT, "The first session", inside=_SIDE),
    Fact("after", OBJECT, "The second session", inside=_SIDE),
    Fact("environment", ROWS, "Versions, devices, machine and settings", inside=ENVIRONMENT),
    Fact("runs", ROWS, "Runs that belong together", inside=PAIR),
    Fact("only_before", ROWS, "Runs that only the first session has", inside=RUN_COMPARED),
    Fact("only_after", ROWS, "Runs that only the second session has", inside=RUN_COMPARED),
)
comparison_json: Final = recorder(DIFFERENCE)
"""Return a comparison as JSON-ready data, with nothing rounded or left out."""


@dataclass(frozen=True, slots=True)
class _CsvRow:
    """One compared figure of a pair of runs."""

    pair: RunComparison
    about: str
    name: str
    status: str | None
    before: float | str | None
    after: float | str | None
    unit: str


_CSV_COLUMNS: Final[tuple[Fact[_CsvRow], ...]] = (
    Fact("run_before", TEXT, "Id of the first run", at("pair.before.id")),
    Fact("run_after", TEXT, "Id of the second run", at("pair.after.id")),
    *within(at("pair.after"), pick(RUN_COMPARED, "workload", "variant", "device")),
    Fact("about", TEXT, "phase, fact, kernel, collective, finding, buffer, function"),
    Fact("name", TEXT, "Its name"),
    replace(STATUS, title=None),
    Fact("before", ANY, "What the first side has"),
    Fact("after", ANY, "What the second side has"),
    Fact("unit", TEXT, "second, byte, flop; null for a count"),
)


def comparison_csv(differences: Iterable[SessionDifference]) -> Iterator[str]:
    """Yield a row for each phase, fact, kernel, collective, finding, buffer and function, under one heading."""
    pairs = (pair for difference in differences for pair in difference.runs)
    return csv_lines(Table(_CSV_COLUMNS, (row for pair in pairs for row in _csv_rows(pair))))


_CSV_SOURCES: Final[tuple[tuple[str, str, str, Callable[[Any], str | None], str, str], ...]] = (
    ("phase", "phases", "phase", lambda row: row.times.verdict, "{}_seconds", "second"),
    ("fact", "difference.facts", "code", at("status"), "{}", ""),
    ("kernel", "difference.kernels.rows", "name", at("status"), "{}_seconds", "second"),
    ("collective", "difference.collectives", "opcode", at("status"), "{}_bytes", "byte"),
    ("finding", "difference.findings", "either.code", at("status"), "{}.message", ""),
    ("buffer", "difference.buffers", "either.instruction", at("status"), "{}.bytes", "byte"),
    ("function", "program.functions", "either.function", at("status"), "{}.count", ""),
)
"""For each value of the column `about`: the attribute of a pair that holds the rows, and the attributes of a row that
hold its name, its status and the figures of both sides; then their unit."""


def _csv_rows(pair: RunComparison) -> Iterator[_CsvRow]:
    for about, rows, name, status, side, unit in _CSV_SOURCES:
        before, after = (at(side.format(word)) for word in ("before", "after"))
        for row in at(rows)(pair) or ():
            row_unit = row.unit if about == "fact" else unit
            yield _CsvRow(pair, about, at(name)(row), status(row), before(row), after(row), row_unit)


def ab_lines(result: AbResult) -> Iterator[str]:
    """Yield the report of a measured comparison as text."""
    yield from ab_head(result, WIDTH)
    for versus in result.versus:
        yield from _all_differences(result, versus)
    yield ""
    for side in result.failed:
        run = side.run
        yield from wrap(f"{run.plan.side} {run.status}: {run.error}", width=WIDTH, indent="    ", first="  ✗ ")
        yield from wrap(run.advice, width=WIDTH, indent="    ")
    yield from _warnings(result)


def _all_differences(result: AbResult, versus: AbVersus) -> Iterator[str]:
    """Yield what differs between A and one side: the environments, exact facts, kernels, and last the phases."""
    difference = result.difference(versus)
    (pair,) = difference.runs
    yield ""
    yield from wrap(f"A → {versus.label}: {answer(pair)}", width=WIDTH, indent="    ", first="  ")
    listed = list(tables(pair))
    times = [table for table in listed if table.columns is PHASES]
    exact = [table for table in listed if table.columns is not PHASES]
    for table in (environment_table(difference), *exact, *times):
        lines = list(text_lines(named(table, "A", versus.label), width=WIDTH))
        if lines:
            yield ""
            yield from lines


def _warnings(result: AbResult) -> Iterator[str]:
    labels_by_message: dict[str, list[str]] = {}
    shown, more = most_important([warning for side in result.sides for warning in side.warnings])
    for side in result.sides:
        for warning in (warning for warning in side.warnings if warning.message in shown):
            labels_by_message.setdefault(warning.message, []).append(side.run.plan.side)
    for message, labels in labels_by_message.items():
        yield from wrap(f"{', '.join(labels)}: {message}", width=WIDTH, indent="    ", first="  ! ")
    yield from (*more, "")


@dataclass(frozen=True, slots=True)
class _Compared:
    """A side compared with A, with everything that differs between the two."""

    versus: AbVersus
    difference: SessionDifference

    @property
    def pair(self) -> RunComparison:
        return self.difference.runs[0]


_VERSUS: Final[tuple[Fact[_Compared], ...]] = (
    *within(at("versus"), VERSUS),
    *within(at("pair"), (fact for fact in PAIR if fact.key != "side")),
    Fact("environment", ROWS, "What differs between the environments",
         lambda row: environment_table(row.difference).rows, inside=ENVIRONMENT),
)  # fmt: skip
_MEASURED_SIDE: Final[tuple[Fact[SideRow], ...]] = (
    *SPEC,
    *within(
        at("result"),
        (
            *pick(RUNS.facts, "workload", "variant", "device"),
            Fact("python", TEXT, "Version of Python", at("run.python")),
            Fact("jax", TEXT, "Version of jax", at("run.environment.jax")),
            Fact("status", TEXT, "How it ended", at("run.status")),
            Fact("error", TEXT, "Why it failed", at("run.error")),
            Fact("median_seconds", SECONDS, "Median time of a call", at("summary.median")),
            Fact("ci95_seconds", NUMBERS, "Its 95 % interval, [low, high]", at("summary.ci95")),
            Fact("warnings", ROWS, "Warnings: why the figures are less certain than they look", inside=SENTENCE[:2]),
        ),
    ),
)  # fmt: skip
AB: Final[tuple[Fact[AbResult], ...]] = (
    *PLAN,
    Fact("versus", ROWS, "Each side beside A",
         lambda result: [_Compared(versus, result.difference(versus)) for versus in result.versus], inside=_VERSUS),
    Fact("sides", ROWS, "What was compared", side_rows, inside=_MEASURED_SIDE),
)  # fmt: skip
ab_json: Final = recorder(AB)
"""Return a measured comparison as JSON-ready data: times in seconds, shares from 0 to 1, None for unknown."""
