"""What differs between two runs of the session, or two sessions, and how a workload did over the kept sessions.

Two runs: the verdict, its basis, how the environments differ, then exact facts from the HLO of both. Two sessions: the
text of `jaxprof compare`. Over time: that of `jaxprof compare --over-time`, a phase or an exact fact at a time. Threads
read HLO and sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.analysis.ab import sides_beside
from jaxprof.analysis.history import FACTS_KEPT, PHASES_KEPT, read_history
from jaxprof.errors import UsageError
from jaxprof.text import safe_lines, shorten
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.dialogs import TextDialog
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.format import speedup_style
from jaxprof.tui.kit.guard import in_thread
from jaxprof.tui.kit.table_columns import table_lines
from jaxprof.units import seconds

if TYPE_CHECKING:
    from pathlib import Path

    from jaxprof.analysis.session_difference import SessionDifference
    from jaxprof.errors import JaxprofError
    from jaxprof.session import Run, Session
    from jaxprof.session.log import Library

_NAME_WIDTH = 24
_NAMES_SHARE = 6
"""A name in the heading of a table takes at most the width divided by this."""


def unfit(run: Run) -> UsageError | None:
    """Return why this run is not compared here; None if it is."""
    name = run.label
    if run.is_program:
        return UsageError(f"{name} is a recorded program", "jaxprof compare A B compares the sessions of programs.")
    if run.plan.how == "imported":
        return UsageError(f"{name} is an opened profile", "jaxprof compare A B compares profiles.")
    if not run.shown.over:
        return UsageError(f"{name} has not ended", "Compare it once it has ended.")
    if run.shown.status != "ok":
        advice = f"{key_of('app.mode.summary')} shows its run, {key_of('results.again')} runs it again."
        ended = "was cancelled" if run.shown.status == "cancelled" else run.shown.status
        return UsageError(f"{name} {ended}: there is nothing to compare", advice)
    return None


def in_comparison(session: Session, run: Run) -> tuple[str, str] | None:
    """Return the ids of A and of the other side, for the comparison that `run` belongs to; if `run` is A, of the first
    other side. None for a run that is no side of a comparison.

    Raises UsageError if one of the two cannot be compared.
    """
    first, *others = sides_beside(session, run) or [run]
    if not others:
        return None
    second = run if run in others else others[0]
    for side in (first, second):
        if (error := unfit(side)) is not None:
            raise error
    return first.id, second.id


def in_order(session: Session, marked: Sequence[str]) -> tuple[str, str]:
    """Return the two marked runs, the baseline first: the planned one, or else the one that was marked first.

    Raises UsageError unless there are two.
    """
    advice = "Space marks a run; two of them are compared."
    if not marked:
        raise UsageError("no run is marked", advice)
    if len(marked) == 1:
        raise UsageError(f"only {session.runs[marked[0]].label} is marked", advice)
    first, second = marked
    return (second, first) if session.runs[first].plan.baseline == second else (first, second)


Draw = Callable[[int], list[Content]]
"""Draws a text in so many columns."""


class ReportDialog(TextDialog):
    """A text for which a thread reads files."""

    CLASSES = "dialog report"

    def make(self, waiting: str) -> None:
        """Read in a thread, and show the text then; until then, `waiting`."""
        self.take(partial(plain_lines, waiting))
        in_thread(self, self.read, "report", then=self.take, failed=self.refused)

    def read(self) -> Draw:
        """Read what the text is made of. For threads only."""
        raise NotImplementedError

    def refused(self, error: JaxprofError) -> None:
        """Show why there is no text."""
        self.take(partial(plain_lines, str(error), style="$error"))

    def take(self, draw: Draw) -> None:
        """Show another text."""
        self._draw = draw
        self.show(draw)


def plain_lines(text: str, width: int, style: str = "") -> list[Content]:
    """Return a text from a report, with its lines wrapped."""
    return [drawn for line in safe_lines(text) for drawn in hang(Content(""), line, width, style)]


class CompareDialog(ReportDialog):
    """What differs between two runs, the first one the baseline."""

    def __init__(self, session: Session, first: str, second: str) -> None:
        super().__init__(f"{session.runs[first].label} and {session.runs[second].label}")
        self._session, self._runs = session, (first, second)

    def on_mount(self) -> None:
        self.make("Comparing the runs…")

    def read(self) -> Draw:
        from jaxprof.analysis.session_difference import session_difference

        (first, second), session = self._runs, self._session
        difference = session_difference(session, session, run_before=first, run_after=second)
        return lambda width: [*head_lines(difference, width), *fact_lines(difference, width)]


class SessionsDialog(ReportDialog):
    """What differs between two sessions, the first one the baseline."""

    def __init__(self, first: Path, second: Path) -> None:
        super().__init__(f"{first.stem} and {second.stem}")
        self._paths = first, second

    def on_mount(self) -> None:
        self.make("Comparing the sessions…")

    def read(self) -> Draw:
        from jaxprof.analysis.session_difference import session_difference
        from jaxprof.report.comparison import comparison_pieces
        from jaxprof.report.renderers import report_lines
        from jaxprof.session import Session
        from jaxprof.session.log import load

        pieces = [*comparison_pieces(session_difference(*(load(path, Session) for path in self._paths)))]
        return lambda width: plain_lines("\n".join(report_lines(pieces, width)), width)


_MEASURES = (*PHASES_KEPT, *FACTS_KEPT)


class HistoryDialog(ReportDialog, keys="history"):
    """Each measurement with its trend, and its points with what changed between them."""

    def __init__(self, library: Library, workload: str = "") -> None:
        """`workload`: the one to show; empty for all."""
        keys = f"{key_of('history.measure')} another phase, {key_of('reader.copy')} copies"
        super().__init__(f"History of {workload or 'all workloads'}", keys=keys)
        self._library, self._workload = library, workload
        self._measure = "run"

    def on_mount(self) -> None:
        self.action_measure(0)

    def action_measure(self, step: int) -> None:
        self._measure = _MEASURES[(_MEASURES.index(self._measure) + step) % len(_MEASURES)]
        self.make(f"Reading the sessions: {self._measure}…")

    def read(self) -> Draw:
        from jaxprof.report.history import history_text

        return partial(plain_lines, history_text(read_history(self._library.paths(), self._measure, self._workload)))

    def refused(self, error: JaxprofError) -> None:
        unmeasured = isinstance(error, UsageError)
        super().refused(UsageError(f"No kept session measured {self._workload}.") if unmeasured else error)


# -- drawing --------------------------------------------------------------------------------------------------


def names(before: Run, after: Run) -> tuple[str, str]:
    """Return what distinguishes two runs of a session, in a word or two: the side or the variant, or else the id."""
    first, second = (run.plan.side or run.plan.variant for run in (before, after))
    if first == second:
        first, second = (f"{run.plan.variant} ({run.id})" for run in (before, after))
    return shorten(first, _NAME_WIDTH), shorten(second, _NAME_WIDTH)


def head_lines(difference: SessionDifference, width: int) -> list[Content]:
    """Return the verdict, the ratio with its basis, the two sides, and the exact facts in one line."""
    from jaxprof.analysis.ab import side_title
    from jaxprof.report.comparison import answer
    from jaxprof.report.runs import parameters_text
    from jaxprof.report.sides import verdict_line

    (pair,) = difference.runs
    ours, theirs = names(pair.before, pair.after)
    phase = next((phase for phase in pair.phases if phase.code == "run"), None)
    paragraphs: list[tuple[str, str, str]] = []  # what stands before it, text, style
    if pair.side is not None:
        paragraphs.append(("", verdict_line(pair.side), f"bold {speedup_style(pair.side.times)}"))
    if phase is None or phase.times.ratio is None:
        paragraphs.append(("", f"{theirs} against {ours}: the times are not compared, no call was timed", ""))
    else:
        speedup = phase.times
        words = f"{theirs} against {ours}: " if speedup.verdict == "inconclusive" else f"{theirs} is "
        if pair.side is None:
            paragraphs.append(("", words + speedup.words(ours), f"bold {speedup_style(speedup)}"))
        medians = f"{seconds(phase.before)} → {seconds(phase.after)} a call, medians"
        paragraphs.append(("", f"{speedup.ratio_text}  {speedup.basis}  ·  {medians}", ""))
    for label, run in (("first", pair.before), ("second", pair.after)):
        what = side_title(difference.before, run) or run.label
        notes = (what, parameters_text(run.plan.parameters), run.plan.precision)
        paragraphs.append((f"{label:<7}", " · ".join(filter(None, notes)), ""))
    paragraphs += [("! ", f"not the same measurement: {why}", "$warning") for why in pair.unlike]
    paragraphs += [("exact  ", answer(pair), ""), ("", "", "")]
    return [
        line
        for before, text, style in paragraphs
        for line in hang(Content.styled(f" {before}", "$text-muted"), text, width, style)
    ]


def fact_lines(difference: SessionDifference, width: int) -> list[Content]:
    """Return the tables: how the environments differ, exact facts, kernels and so on, and the phases last."""
    from jaxprof.report.comparison import PHASES, environment_table, named, tables

    (pair,) = difference.runs
    ours, theirs = (shorten(name, max(9, width // _NAMES_SHARE)) for name in names(pair.before, pair.after))
    sorted_tables = sorted(tables(pair), key=lambda table: table.columns is PHASES)
    lines: list[Content] = []
    for table in (environment_table(difference), *sorted_tables):
        if block := list(table_lines(named(table, ours, theirs), width)):
            lines += [*block, Content("")]
    return lines
