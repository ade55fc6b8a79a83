"""Two jobs beside each other: figures over their processes, and the findings that only one of them has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from jaxprof.analysis.jobs.difference import JobDifference, JobRow, OverProcesses
from jaxprof.analysis.jobs.job import JobFigures
from jaxprof.facts import Fact, at, column, recorder
from jaxprof.facts.processes import FIGURES
from jaxprof.facts.units import COUNT, LIST, NUMBER, OBJECT, ROWS, TEXT
from jaxprof.grouping import grouped
from jaxprof.report.hosts import FINDINGS
from jaxprof.report.renderers import csv_lines, markdown, markdown_lines, text_lines, wrap
from jaxprof.report.table import Table
from jaxprof.text import safe
from jaxprof.units import UNKNOWN, counted, integer, percent, scaled, seconds

_WIDTH: Final = 80
_FORMATS: Final[dict[str, Callable[[Any], str]]] = {
    "count": integer, "seconds": seconds, "rate": scaled, "share": percent,
}  # fmt: skip
_LABELS: Final = {fact.key: fact.title or "" for fact in FIGURES}


def _figure(row: JobRow, over: OverProcesses | None) -> str:
    """Return the value of the median process, with the smallest and the largest one: `12 ms (11 ms to 15 ms)`."""
    if over is None:
        return UNKNOWN
    middle, low, high = map(_FORMATS[row.measure], (over.middle, over.low, over.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def _verdict(row: JobRow) -> str:
    if row.verdict in ("more", "less") and row.difference:
        return f"{row.verdict} by {abs(row.difference) * 100:.0f} points"
    return row.verdict


_OVER: Final[tuple[Fact[OverProcesses], ...]] = (
    Fact("median", NUMBER, "Value of the median process", at("middle")),
    Fact("low", NUMBER, "Smallest value of a process"),
    Fact("high", NUMBER, "Largest value of a process"),
    Fact("processes", COUNT, "How many processes have it", at("count")),
)
FIGURES_COMPARED: Final[tuple[Fact[JobRow], ...]] = (
    Fact("key", TEXT, "Which figure: a column of processes", title="of a process", show=_LABELS.__getitem__,
         right=False),
    column("A", lambda row: _figure(row, row.before), right=True),
    column("B", lambda row: _figure(row, row.after), right=True),
    column("verdict", _verdict),
    Fact("unit", TEXT, "count, seconds, rate (a second), share (of the loop)", at("measure")),
    Fact("before", OBJECT, "Over the processes of the first job; null where none has it", inside=_OVER),
    Fact("after", OBJECT, "Over the processes of the second job; null where none has it", inside=_OVER),
    Fact("verdict", TEXT, "same or differs (exact), more, less or same (shares), undecided"),
    Fact("reason", TEXT, "Why it is undecided"),
    Fact("difference", NUMBER, "Difference of the means over processes, the second less the first"),
    Fact("ci95_low", NUMBER, "Lower bound of its 95 % interval over processes", at("low")),
    Fact("ci95_high", NUMBER, "Upper bound of the 95 % interval", at("high")),
)  # fmt: skip


def to_text(difference: JobDifference) -> str:
    """Return the report: first why the jobs may not be comparable, then facts and times, then the findings that only
    one job has."""
    before, after = difference.before, difference.after
    processes = counted(after.count, "process", "processes")
    heading = f"A {Path(before.folder).name}  ·  B {Path(after.folder).name}  ·  {processes}"
    lines = [safe(heading), "─" * min(_WIDTH, len(heading))]
    for notice in difference.notices:
        lines += wrap(safe(notice), width=_WIDTH, indent="    ", first="  ! ")
    lines += ["", *text_lines(Table(FIGURES_COMPARED, difference.rows)), *_reason_lines(difference)]
    lines += ["", *_finding_lines(difference)]
    basis = "the median process (smallest to largest); compilations are exact, shares come from samples"
    lines += wrap(basis, width=_WIDTH, indent="  ")
    return "\n".join(lines)


def _reason_lines(difference: JobDifference) -> Iterator[str]:
    """Yield why there is no verdict, each reason once."""
    by_reason = grouped((row.reason, _LABELS[row.key]) for row in difference.rows if row.reason)
    for reason, labels in by_reason.items():
        yield from wrap(f"undecided ({', '.join(labels)}): {reason}", width=_WIDTH, indent="    ", first="  ")


def _finding_lines(difference: JobDifference) -> Iterator[str]:
    for which, findings in (("only in A", difference.gone), ("only in B", difference.new)):
        for finding in findings:
            yield from wrap(safe(f"{which}: {finding.message}"), width=_WIDTH, indent="      ", first="  ✗ ")
    if not difference.gone and not difference.new:
        both = len(difference.before.findings)
        yield f"  the same {counted(both, 'finding')} in both" if both else "  no finding in either"


def to_markdown(difference: JobDifference) -> str:
    """Return the report as Markdown for a pull request or an issue."""
    lines = [f"### {markdown(difference.before.folder)} and {markdown(difference.after.folder)}", ""]
    lines += [f"- {markdown(notice)}" for notice in difference.notices] + ([""] if difference.notices else [])
    lines += [*markdown_lines(Table(FIGURES_COMPARED, difference.rows)), ""]
    lines += [f"- {markdown(line.strip())}" for line in _reason_lines(difference)]
    lines += [f"- {markdown(line.strip())}" for line in _finding_lines(difference)]
    return "\n".join(lines)


def to_csv(differences: Iterable[JobDifference]) -> Iterator[str]:
    """Yield a row for each figure, comparison by comparison, under one heading."""
    return csv_lines(Table(FIGURES_COMPARED, (row for difference in differences for row in difference.rows)))


_SIDE: Final[tuple[Fact[JobFigures], ...]] = (
    Fact("folder", TEXT, "Folder of the job"),
    Fact("process_count", COUNT, "Processes of the job; null where it is not known", at("count")),
)
JOB_DIFFERENCE: Final[tuple[Fact[JobDifference], ...]] = (
    Fact("before", OBJECT, "The first job", inside=_SIDE),
    Fact("after", OBJECT, "The second job", inside=_SIDE),
    Fact("notices", LIST, "Why they may not be compared"),
    Fact("figures", ROWS, "Figures of both jobs, over their processes", at("rows"), inside=FIGURES_COMPARED),
    Fact("findings_gone", ROWS, "What was found in the first one alone", at("gone"), inside=FINDINGS),
    Fact("findings_new", ROWS, "What was found in the second one alone", at("new"), inside=FINDINGS),
)
to_json: Final = recorder(JOB_DIFFERENCE)
"""Return the comparison of two jobs as JSON-ready data."""
