"""Two jobs beside each other, as text, Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.jobs.difference import JobDifference, JobRow, OverProcesses
from jaxprof.facts import at
from jaxprof.facts.processes import FIGURES
from jaxprof.report.hosts import FINDINGS
from jaxprof.report.renderers import csv_lines, markdown, markdown_lines, records, text_lines, wrap
from jaxprof.report.table import Column, Table
from jaxprof.text import safe
from jaxprof.units import UNKNOWN, counted, integer, percent, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.finding import JobFinding

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


ROWS: Final[tuple[Column[JobRow], ...]] = (
    Column("key", "of a process", show=_WORDS.__getitem__, right=False),
    Column("", "A", lambda row: _figure(row, row.before), right=True),
    Column("", "B", lambda row: _figure(row, row.after), right=True),
    Column("", "verdict", _verdict),
    Column("unit", value=at("measure")),
    Column("before.median", value=at("before.middle")),
    Column("before.low", value=at("before.low")),
    Column("before.high", value=at("before.high")),
    Column("before.processes", value=at("before.count")),
    Column("after.median", value=at("after.middle")),
    Column("after.low", value=at("after.low")),
    Column("after.high", value=at("after.high")),
    Column("after.processes", value=at("after.count")),
    Column("verdict"),
    Column("reason"),
    Column("difference"),
    Column("ci95_low", value=at("low")),
    Column("ci95_high", value=at("high")),
)


def job_comparison_text(found: JobDifference) -> str:
    """What is not alike first, then facts and times, then the findings of one alone."""
    heading = f"A {Path(found.before.folder).name}  ·  B {Path(found.after.folder).name}  ·  " + counted(
        found.after.count, "process", "processes"
    )
    lines = [safe(heading), "─" * min(_WIDTH, len(heading))]
    for notice in found.notices:
        lines += wrap(safe(notice), width=_WIDTH, indent="    ", first="  ! ")
    lines += ["", *text_lines(Table(ROWS, found.rows)), *_reason_lines(found), "", *_finding_lines(found)]
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
    lines += [*markdown_lines(Table(ROWS, found.rows)), ""]
    lines += [f"- {markdown(line.strip())}" for line in _reason_lines(found)]
    lines += [f"- {markdown(line.strip())}" for line in _finding_lines(found)]
    return "\n".join(lines)


def job_comparison_csv(found: Iterable[JobDifference]) -> Iterator[str]:
    """A row for each figure; of several comparisons one after the other, under one heading."""
    for number, each in enumerate(found):
        lines = csv_lines(Table(ROWS, each.rows))
        if number:
            next(lines)
        yield from lines


def job_comparison_json(found: JobDifference) -> dict[str, Any]:
    """For programs."""
    return {
        "before": {"folder": found.before.folder, "process_count": found.before.count},
        "after": {"folder": found.after.folder, "process_count": found.after.count},
        "notices": list(found.notices),
        "figures": list(records(Table(ROWS, found.rows))),
        "findings_gone": _findings(found.gone),
        "findings_new": _findings(found.new),
    }


def _findings(findings: tuple[JobFinding, ...]) -> list[dict[str, Any]]:
    return list(records(Table(FINDINGS, findings)))
