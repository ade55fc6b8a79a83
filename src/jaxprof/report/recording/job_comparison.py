"""Two jobs beside each other, as text, Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.jobs.difference import JobDifference, JobRow, OverProcesses
from jaxprof.facts import Fact, at, column, recorder
from jaxprof.facts.processes import FIGURES
from jaxprof.facts.units import COUNT, LIST, NUMBER, OBJECT, ROWS, TEXT
from jaxprof.report.hosts import FINDINGS
from jaxprof.report.renderers import csv_lines, markdown, markdown_lines, text_lines, wrap
from jaxprof.report.table import Table
from jaxprof.text import safe
from jaxprof.units import UNKNOWN, counted, integer, percent, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.job import JobFigures

_WIDTH: Final = 100
_SHOWN: Final[dict[str, Callable[[Any], str]]] = {
    "count": integer, "seconds": seconds, "rate": scaled, "share": percent,
}  # fmt: skip
_WORDS: Final[dict[str, str]] = {
    **{fact.key: fact.title or "" for fact in FIGURES},
    "compile_count": "compilations",
    "compiled_again": "compiled again",
    "compile_seconds": "compiling",
}


def _figure(row: JobRow, over: OverProcesses | None) -> str:
    """`12 ms (11 ms to 15 ms)`: the middle process, and the least and the largest."""
    if over is None:
        return UNKNOWN
    shown = _SHOWN[row.measure]
    middle, low, high = (shown(value) for value in (over.middle, over.low, over.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def _verdict(row: JobRow) -> str:
    of = f" by {abs(row.difference) * 100:.0f} points" if row.verdict in ("more", "less") and row.difference else ""
    return row.verdict + of


_OVER: Final[tuple[Fact[OverProcesses], ...]] = (
    Fact("median", NUMBER, "The middle process", at("middle")),
    Fact("low", NUMBER, "The least of them"),
    Fact("high", NUMBER, "The largest of them"),
    Fact("processes", COUNT, "How many processes have it", at("count")),
)
FIGURES_COMPARED: Final[tuple[Fact[JobRow], ...]] = (
    Fact("key", TEXT, "Which figure: a column of processes", title="of a process", show=_WORDS.__getitem__,
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


def job_comparison_text(found: JobDifference) -> str:
    """What is not alike first, then facts and times, then the findings of one alone."""
    heading = f"A {Path(found.before.folder).name}  ·  B {Path(found.after.folder).name}  ·  " + counted(
        found.after.count, "process", "processes"
    )
    lines = [safe(heading), "─" * min(_WIDTH, len(heading))]
    for notice in found.notices:
        lines += wrap(safe(notice), width=_WIDTH, indent="    ", first="  ! ")
    lines += ["", *text_lines(Table(FIGURES_COMPARED, found.rows)), *_reason_lines(found), "", *_finding_lines(found)]
    lines.append("  the middle process (the least to the largest); compilations are exact, shares come from samples")
    return "\n".join(lines)


def _reason_lines(found: JobDifference) -> Iterator[str]:
    """Why there is no verdict, each reason once."""
    by_reason: dict[str, list[str]] = {}
    for row in found.rows:
        if row.reason:
            by_reason.setdefault(row.reason, []).append(_WORDS[row.key])
    for reason, rows in by_reason.items():
        yield from wrap(f"undecided ({', '.join(rows)}): {reason}", width=_WIDTH, indent="    ", first="  ")


def _finding_lines(found: JobDifference) -> Iterator[str]:
    for which, findings in (("only in A", found.gone), ("only in B", found.new)):
        for finding in findings:
            yield from wrap(safe(f"{which}: {finding.message}"), width=_WIDTH, indent="      ", first="  ✗ ")
    if not found.gone and not found.new:
        both = len(found.before.findings)
        yield f"  the same {counted(both, 'finding')} in both" if both else "  no finding in either"


def job_comparison_markdown(found: JobDifference) -> str:
    """For a pull request or an issue."""
    lines = [f"### {markdown(found.before.folder)} and {markdown(found.after.folder)}", ""]
    lines += [f"- {markdown(notice)}" for notice in found.notices] + ([""] if found.notices else [])
    lines += [*markdown_lines(Table(FIGURES_COMPARED, found.rows)), ""]
    lines += [f"- {markdown(line.strip())}" for line in _reason_lines(found)]
    lines += [f"- {markdown(line.strip())}" for line in _finding_lines(found)]
    return "\n".join(lines)


def job_comparison_csv(found: Iterable[JobDifference]) -> Iterator[str]:
    """A row for each figure; of several comparisons one after the other, under one heading."""
    for number, each in enumerate(found):
        lines = csv_lines(Table(FIGURES_COMPARED, each.rows))
        if number:
            next(lines)
        yield from lines


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
job_comparison_json: Final = recorder(JOB_DIFFERENCE)
"""For programs."""
