"""Progress on stderr: one live line for the current run, one line for each finished run.

Nothing is drawn if stderr is not a terminal. If the terminal goes away (a dropped connection), drawing ends and
measuring continues.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from jaxprof.analysis import RunResult, result
from jaxprof.events import Event, RunFinished
from jaxprof.report.runs import interval_text, versus_text
from jaxprof.runner.expected_time import left_in_words, seconds_left
from jaxprof.session import Run, Session
from jaxprof.text import shorten
from jaxprof.units import counted, percent, seconds

_CLEAR = "\r\x1b[K"


class Progress:
    """Takes the scheduler's batches (`take`) and redraws (`tick`), both on the thread that waits."""

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.session = Session()
        """The fold of the events so far."""
        self._stream = stream
        self._clock = clock
        self._seen = stream.isatty()
        self._moving = self._seen and os.environ.get("TERM", "") not in ("", "dumb")
        self._drawn = ""

    def take(self, events: Sequence[Event]) -> None:
        """Fold a batch, and print a line for each run that it ends."""
        for event in events:
            self.session.apply(event)
            if isinstance(event, RunFinished) and self._seen:
                self._print(self._finished(self.session.runs[event.run]))

    def tick(self) -> None:
        """Redraw the live line if it has changed."""
        if not self._moving:
            return
        current = next((run for run in self.session.runs.values() if run.status == "running"), None)
        line = self._live(current) if current is not None else ""
        line = shorten(line, max(20, shutil.get_terminal_size().columns - 1)) if line else ""
        if line != self._drawn:
            self._drawn = line
            self._write(_CLEAR + line)

    def note(self, text: str) -> None:
        """Print a line that stays, even if stderr is not a terminal."""
        self._print(text)

    def end(self) -> None:
        """Remove the live line."""
        if self._drawn:
            self._drawn = ""
            self._write(_CLEAR)

    def _live(self, run: Run) -> str:
        order = list(self.session.runs)
        parts = [f"[{order.index(run.id) + 1}/{len(order)}] {run.label}", self._phase(run)]
        measured = result(self.session, run.id)
        if measured.summary is not None:
            parts.append(f"{_median(measured)}  {counted(measured.summary.count, 'sample')}")
        share = percent(run.fraction) if run.fraction is not None else ""
        left = left_in_words(seconds_left(self.session.runs.values(), self._clock()))
        parts.append(", ".join(filter(None, (share, left))))
        return "  ".join(part for part in parts if part)

    def _phase(self, run: Run) -> str:
        phase = run.present_phases.get(run.current_phase)
        if phase is None or phase.started_seconds is None:
            return (run.note or "starting") if not run.phases else ""
        return f"{run.current_phase.replace('_', ' ')} {max(0.0, self._clock() - phase.started_seconds):.1f} s"

    def _finished(self, run: Run) -> str:
        order = list(self.session.runs)
        place = f"[{order.index(run.id) + 1}/{len(order)}] {run.label}"
        if run.status != "ok":
            return (
                f"{place}  {run.status}: {run.error}" if run.error not in ("", run.status) else f"{place}  {run.status}"
            )
        measured = result(self.session, run.id)
        return "  ".join(
            part for part in (place, _median(measured), versus_text(measured) if run.plan.baseline else "") if part
        )

    def _print(self, text: str) -> None:
        line = shorten(text, 2000)
        self._write(f"{_CLEAR if self._moving else ''}{line}\n")
        self._drawn = ""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone; measuring continues
            self._seen = self._moving = False


def _median(run: RunResult) -> str:
    if run.summary is None:
        return ""
    interval = interval_text(run)
    return seconds(run.summary.median) + (f" {interval}" if interval != "-" else "")
