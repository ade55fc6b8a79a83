"""A run in progress: its phases side by side with their clocks, its launch, and how its interval narrows."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget

from jaxprof.events import STARTUP_PHASES
from jaxprof.text import shorten
from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.format import clock
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.phase_bars import SHOWN, STYLES, title
from jaxprof.tui.kit.plots import WAITING
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.analysis.run_result import RunResult
    from jaxprof.session import Run


_START_UP = "start-up"


@dataclass(frozen=True, slots=True)
class PhaseStep:
    """A phase in the strip: `text` is its time, a dash, or empty while it runs (`began_seconds` is set then)."""

    phase: str
    text: str
    reached: bool
    began_seconds: float | None = None
    """Monotonic time at which the phase began; None unless it is running."""


def steps(result: RunResult, *, growing: bool) -> tuple[PhaseStep, ...]:
    """Return the phases of this run, in order. Anything else that the engine does appears only in the list of runs."""
    run = result.run
    own = [phase for phase in SHOWN if phase in run.phases or phase == "run"] if run.plan.how == "numpy" else SHOWN
    return tuple(_step(result, phase, growing) for phase in (_START_UP, *own))


def _step(result: RunResult, phase: str, growing: bool) -> PhaseStep:
    run = result.run
    names = STARTUP_PHASES if phase == _START_UP else (phase,)
    if run.current_phase in names and run.status == "running":
        phases = run.present_phases
        current = phases.get(run.current_phase)
        began = next((first.started_seconds for name in names if (first := phases.get(name))), None)
        if growing and current is not None and began is not None:
            return PhaseStep(phase, "", True, began)
        return PhaseStep(phase, "stopped", True)
    found_phases = [name for name in names if name in result.phase_seconds]
    if not found_phases:
        return PhaseStep(phase, "", False)
    durations = [value for name in found_phases if (value := result.phase_seconds[name]) is not None]
    if not durations and phase == "run" and run.shown.status == "running" and growing:
        return PhaseStep(phase, "", False)  # warm, and waiting for its first turn
    total = sum(durations) if len(durations) == len(found_phases) else None
    zero_copy = phase in run.phases and run.phases[phase].zero_copy
    return PhaseStep(phase, "no copy" if zero_copy else seconds(total), True)


class PhaseStrip(Guarded, Widget):
    """Two lines: the phases, and the time of each so far."""

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.shift_seconds = 0.0
        """Seconds by which the writer's clock is ahead of ours, if another machine writes the session."""
        self._steps: tuple[PhaseStep, ...] = ()
        self._clock = ""

    def show(self, phases: tuple[PhaseStep, ...]) -> None:
        """Show these steps."""
        if phases != self._steps:
            self._steps = phases
            self.refresh()

    def tick(self) -> None:
        """Redraw the running clock if its text has changed."""
        if any(step.began_seconds is not None and self._elapsed(step) != self._clock for step in self._steps):
            self.refresh()

    def render(self) -> Content:
        width = max(6, min(16, self.content_size.width // max(1, len(self._steps))))
        names: list[Content] = []
        times: list[Content] = []
        for step in self._steps:
            current = step.began_seconds is not None
            style = STYLES.get(step.phase, "$accent") if step.reached else "$quiet"
            names.append(cell(title(step.phase, width - 1), width, f"bold {style}" if current else style))
            if current:
                self._clock = self._elapsed(step)
                times.append(cell(f"▶ {self._clock}", width, "bold $warning"))
            else:
                times.append(cell(step.text or "·", width, "$foreground" if step.reached else "$quiet"))
        return Content.assemble(*names, "\n", *times)

    def _elapsed(self, step: PhaseStep) -> str:
        return clock(monotonic() + self.shift_seconds - (step.began_seconds or 0.0))


def why_no_samples(run: Run) -> str:
    """Return the text in place of the samples."""
    if run.plan.how == "compile":
        return "compiled, and not run" if run.shown.over else "this is compiled, and not run"
    if run.plan.how == "imported":
        return "an opened profile: its kernels have times, but no call was timed"
    return "no samples were taken" if run.shown.over else WAITING


def launch_text(run: Run) -> str:
    """Return `launch 2 of 3, in turns with 2 more` while a run is in progress; empty with one launch, or in the
    first."""
    if run.shown.status != "running":
        return ""
    if run.current_phase == "run" and run.note:
        return shorten(run.note, 48)
    number = run.launches[-1].number if run.launches else 1
    return f"launch {number} of {run.plan.launches}" if number > 1 else ""
