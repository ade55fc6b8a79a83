"""What differs between two runs of the session, or two sessions: both sides back to back, then the text of `jaxprof
compare`. Threads read HLO and sessions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from textual.content import Content

from jaxprof.analysis.runs.ab import sides_beside
from jaxprof.base.errors import UsageError
from jaxprof.base.units import seconds
from jaxprof.findings.compare import FigureDifference
from jaxprof.findings.compare.session_difference import RunDifference, SessionDifference, session_difference
from jaxprof.report import Piece
from jaxprof.report.comparison import comparison_body, comparison_head
from jaxprof.report.program_words import words
from jaxprof.session import Run, Session, load
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.dialogs import ReportDialog, report_dialog
from jaxprof.tui.kit.drawing import bar, cell
from jaxprof.tui.kit.format import speedup_style


def unfit(run: Run) -> UsageError | None:
    name = run.label
    if run.is_program:
        return UsageError(f"{name} is a recorded program", "jaxprof compare A B compares the sessions of programs.")
    if run.plan.how == "imported":
        return UsageError(f"{name} is an opened profile", "jaxprof compare A B compares profiles.")
    if not run.shown.over:
        return UsageError(f"{name} has not ended", "Compare it once it has ended.")
    if run.shown.status != "ok":
        hint = f"{key_of('app.mode.summary')} shows its run, {key_of('results.again')} runs it again."
        ended = "was cancelled" if run.shown.status == "cancelled" else run.shown.status
        return UsageError(f"{name} {ended}: there is nothing to compare", hint)
    return None


def in_comparison(session: Session, run: Run) -> tuple[str, str] | None:
    """Return the ids of A and the other side of the comparison that `run` belongs to, else None. Raises UsageError if
    one cannot be compared."""
    first, *others = sides_beside(session, run) or [run]
    if not others:
        return None
    second = run if run in others else others[0]
    for side in (first, second):
        if (error := unfit(side)) is not None:
            raise error
    return first.id, second.id


def in_order(session: Session, marked: Sequence[str]) -> tuple[str, str]:
    """Return the two marked runs, the baseline first. Raises UsageError unless there are two."""
    hint = "Space marks a run; two of them are compared."
    if not marked:
        raise UsageError("no run is marked", hint)
    if len(marked) == 1:
        raise UsageError(f"only {session.runs[marked[0]].label} is marked", hint)
    first, second = marked
    return (second, first) if session.runs[first].plan.baseline == second else (first, second)


NUMBER = 9
"""Columns of a time, such as `41 min 7 s`, less what only a very long one has."""


def back_to_back(pair: RunDifference, width: int) -> Iterator[Content]:
    """Yield a line for each time that differs: the first's, a bar, the second's. The bar grows from the middle towards
    the faster side, by the logarithm of the ratio; green and red are verdicts, as in the table below."""
    if pair.program is not None:
        timed: list[tuple[str, FigureDifference, str]] = [(words(row.code), row, "$bar") for row in pair.program.states]
    else:
        timed = [(row.code, row, speedup_style(row.times)) for row in pair.phases]
    rows = [(name, row.before, row.after, style) for name, row, style in timed if row.before and row.after]
    rows = [row for row in rows if max(row[1:3]) > 1.05 * min(row[1:3])]  # other bars would hardly be seen
    names = max((len(name) for name, *_ in rows), default=0)
    half = min(24, (width - names - 2 * NUMBER - 5) // 2)
    if not rows or half < 4:
        return
    towards = f"{'◂ faster ':>{half}}│{' faster ▸':{half}}" if half > 8 else " " * (2 * half + 1)
    titles = (cell("first", NUMBER, right=True), f" {towards} ", "second")
    yield Content.assemble(" " * (names + 2), *titles).stylize("bold $primary")
    # at least a factor of two fills the half, so that nearly equal times have a short bar
    largest = max([2.0, *(max(before / after, after / before) for _, before, after, _ in rows)])
    for name, before, after, style in rows:
        ratio = math.log(before / after, largest)
        halves = round(max(0.0, -ratio) * half * 2)
        left = ("▐" * (halves % 2) + "█" * (halves // 2)).rjust(half)
        first, second = cell(seconds(before), NUMBER, right=True), cell(seconds(after), NUMBER)
        bars = ((f" {left}", style), "│", bar(ratio, half, style, track=""), " ")
        yield Content.assemble((f"{name:{names}}  ", "$text-muted"), first, *bars, second)
    yield Content("")


def report_with_bars(difference: SessionDifference) -> Iterator[Piece | Callable[[int], Iterable[Content]]]:
    """Yield the report, with both sides back to back below its head where there is one pair of runs."""
    yield from comparison_head(difference)
    if len(difference.runs) == 1:
        yield partial(back_to_back, difference.runs[0])
    yield from comparison_body(difference)


def of_runs(session: Session, first: str, second: str) -> ReportDialog:
    title = f"{session.runs[first].label} and {session.runs[second].label}"
    return report_dialog(
        title, lambda: report_with_bars(session_difference(session, session, run_before=first, run_after=second))
    )


def of_sessions(first: Path, second: Path) -> ReportDialog:
    return report_dialog(
        f"{first.stem} and {second.stem}",
        lambda: report_with_bars(session_difference(load(first, Session), load(second, Session))),
    )
