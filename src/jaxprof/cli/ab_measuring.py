"""Measure the sides of a comparison in turns, for the commands that need one: `ab`, and `gate` for its times."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxprof.cli.exit_codes import SIGNAL_BASE, ExitCode
from jaxprof.cli.session_output import report_location

if TYPE_CHECKING:
    from jaxprof.analysis.ab import AbResult
    from jaxprof.cli.ab_sides import ReadSides
    from jaxprof.runner import Interpreter, PlannedRun
    from jaxprof.runner.sides import SideOptions
    from jaxprof.session.log import LogWriter


@dataclass(frozen=True, slots=True)
class MeasuredSides:
    """What the measuring gave."""

    result: AbResult | None
    """None where a signal other than ctrl+c ended it."""
    path: str | None
    """Where the session is; None if it could not be kept there."""
    exit_code: int
    """Of the measuring: 1 if a side failed or the session could not be kept, else what ended it."""


def measure(read: ReadSides, options: SideOptions, make_writer: Callable[[], LogWriter]) -> MeasuredSides:
    """Measure the sides and keep the session. Raises UsageError for sides that do not fit, before anything runs."""
    from jaxprof.runner.sides import plan_comparison

    planned = plan_comparison(read.sides, options, read.notes)
    return measure_planned(planned, read.sides[0].interpreter, make_writer(), options.max_silence_seconds)


def measure_planned(
    planned: Sequence[PlannedRun], interpreter: Interpreter, writer: LogWriter, max_silence_seconds: float
) -> MeasuredSides:
    """Measure the sides of one comparison, A first, and keep the session."""
    import signal

    from jaxprof.analysis.ab import ab_results
    from jaxprof.cli.progress import Progress
    from jaxprof.cli.run_headless import HeadlessRuns

    progress = Progress(sys.stderr)
    for note in planned[0].comparison.notes if planned[0].comparison is not None else ():
        progress.note(f"note: {note}")
    runs = HeadlessRuns(writer, interpreter, progress)
    runs.scheduler.max_silence_seconds = max_silence_seconds
    runs.work(planned)
    path = str(writer.path) if report_location(writer, progress.note) else None
    if runs.stopped_by is not None and runs.stopped_by != signal.SIGINT:
        return MeasuredSides(None, path, SIGNAL_BASE + runs.stopped_by)
    (result,) = ab_results(runs.scheduler.session)
    if runs.stopped_by is not None:
        return MeasuredSides(result, path, ExitCode.INTERRUPTED)
    return MeasuredSides(result, path, ExitCode.FAILED if result.failed or path is None else ExitCode.OK)
