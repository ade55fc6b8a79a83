"""What a person sees while runs go on: one live line for the current run, one line for each that is over. On stderr.

Where stderr is no terminal nothing is drawn. A terminal that is gone (the line was dropped) ends the drawing, never
the measuring.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from jaxprof.events import Event, RunFinished
from jaxprof.report.text import interval_text, speedup_text
from jaxprof.results import RunResult, result
from jaxprof.safe_text import shorten
from jaxprof.session import Run, Session
from jaxprof.units import percent, seconds

_CLEAR = "\r\x1b[K"


class Progress:
    """Fed with the conductor's batches and ticked by whoever waits; both on one thread."""

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.session = Session()
        """The fold of what has come so far."""
        self._stream = stream
        self._clock = clock
        self._seen = stream.isatty()
        self._moving = self._seen and os.environ.get("TERM", "") not in ("", "dumb")
        self._drawn = ""

    def take(self, events: Sequence[Event]) -> None:
        """Folds a batch; a run that it ends gets its line."""
        for event in events:
            self.session.apply(event)
            if isinstance(event, RunFinished) and self._seen:
                self._print(self._finished(self.session.runs[event.run]))

    def tick(self) -> None:
        """Draws the live line again, if it has changed."""
        if not self._moving:
            return
        current = next((run for run in self.session.runs.values() if run.status == "running"), None)
        line = self._live(current) if current is not None else ""
        line = shorten(line, max(20, shutil.get_terminal_size().columns - 1)) if line else ""
        if line != self._drawn:
            self._drawn = line
            self._write(_CLEAR + line)

    def note(self, text: str) -> None:
        """A line that stays, also where stderr is no terminal."""
        self._print(text)

    def end(self) -> None:
        """Takes the live line away."""
        if self._drawn:
            self._drawn = ""
            self._write(_CLEAR)

    def _live(self, run: Run) -> str:
        order = list(self.session.runs)
        parts = [f"[{order.index(run.id) + 1}/{len(order)}] {run.label}", self._phase(run)]
        found = result(self.session, run.id)
        if found.summary is not None:
            parts.append(f"{_median(found)}  {found.summary.count} samples")
        if run.fraction is not None:
            left = f", {seconds(run.remaining_seconds, 2)} left" if run.remaining_seconds else ""
            parts.append(f"{percent(run.fraction)}{left}")
        return "  ".join(part for part in parts if part)

    def _phase(self, run: Run) -> str:
        phase = run.phases.get(run.current_phase)
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
        found = result(self.session, run.id)
        return "  ".join(
            part for part in (place, _median(found), speedup_text(found) if run.plan.baseline else "") if part
        )

    def _print(self, text: str) -> None:
        line = shorten(text, 2000)
        self._write(f"{_CLEAR if self._moving else ''}{line}\n")
        self._drawn = ""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone; the measuring goes on
            self._seen = self._moving = False


def _median(found: RunResult) -> str:
    if found.summary is None:
        return ""
    interval = interval_text(found)
    return seconds(found.summary.median) + (f" {interval}" if interval != "-" else "")
