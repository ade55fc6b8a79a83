"""What differs between two runs of the session, or two sessions, in the text of `jaxprof compare`. Threads read HLO and
sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jaxprof.analysis.runs.ab import sides_beside
from jaxprof.base.errors import UsageError
from jaxprof.base.units import seconds
from jaxprof.findings.compare.session_difference import SessionDifference, session_difference
from jaxprof.report.comparison import comparison_pieces
from jaxprof.report.renderers import Headline, Piece, Prose
from jaxprof.session import Session
from jaxprof.session.log import load
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.dialogs import ReportDialog, report_dialog

if TYPE_CHECKING:
    from pathlib import Path

    from jaxprof.session import Run


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


def verdict(difference: SessionDifference) -> Iterator[Piece]:
    """Yield which of two runs of one session is faster, and on what that rests; nothing where the report says it."""
    (pair,) = difference.runs
    phase = next((phase for phase in pair.phases if phase.code == "run"), None)
    if pair.side is not None or phase is None or phase.times.ratio is None:
        return
    runs, speedup = (pair.before, pair.after), phase.times
    ours, theirs = (run.plan.variant for run in runs)
    if ours == theirs:
        ours, theirs = (f"{run.plan.variant} ({run.id})" for run in runs)
    words = f"{theirs} against {ours}: " if speedup.verdict == "inconclusive" else f"{theirs} is "
    yield Headline(words + speedup.words(ours))
    medians = f"{seconds(phase.before)} → {seconds(phase.after)} a call, medians"
    yield from (Prose(f"{speedup.ratio_text}  {speedup.basis}  ·  {medians}"), "")


def of_runs(session: Session, first: str, second: str) -> ReportDialog:

    def derive() -> Iterator[Piece]:
        difference = session_difference(session, session, run_before=first, run_after=second)
        yield from (*verdict(difference), *comparison_pieces(difference))

    return report_dialog(f"{session.runs[first].label} and {session.runs[second].label}", derive)


def of_sessions(first: Path, second: Path) -> ReportDialog:

    def derive() -> Iterator[Piece]:
        return comparison_pieces(session_difference(load(first, Session), load(second, Session)))

    return report_dialog(f"{first.stem} and {second.stem}", derive)
