"""The phases of one run side by side while it goes through them; a tick of the clock draws one cell again."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from textual.content import Content
from textual.geometry import Region
from textual.widget import Widget

from jaxprof.events import STARTUP_PHASES
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.phase_bars import SHOWN, STYLES, title
from jaxprof.tui.widgets.wording import clock
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.results import RunResult

_START_UP = "start-up"


@dataclass(frozen=True, slots=True)
class Step:
    """One phase: `text` is its time, a dash, or empty while it goes on (then `began_seconds` is set)."""

    phase: str
    text: str
    reached: bool
    began_seconds: float | None = None
    """Monotonic."""


def steps(one: RunResult, *, growing: bool) -> tuple[Step, ...]:
    """The phases that this run goes through, in their order. What the engine does besides stands in the list only."""
    run = one.run
    own = [phase for phase in SHOWN if phase in run.phases or phase == "run"] if run.plan.how == "numpy" else SHOWN
    shown = [_START_UP, *own]
    return tuple(_step(one, phase, growing) for phase in shown)


def _step(one: RunResult, phase: str, growing: bool) -> Step:
    run = one.run
    names = STARTUP_PHASES if phase == _START_UP else (phase,)
    if run.current_phase in names and run.status == "running":
        current = run.phases.get(run.current_phase)
        began = next((found.started_seconds for name in names if (found := run.phases.get(name))), None)
        if growing and current is not None and began is not None:
            return Step(phase, "", True, began)
        return Step(phase, "cut off", True)
    found_phases = [name for name in names if name in one.phase_seconds]
    if not found_phases:
        return Step(phase, "", False)
    known = [value for name in found_phases if (value := one.phase_seconds[name]) is not None]
    total = sum(known) if len(known) == len(found_phases) else None
    zero_copy = phase in run.phases and run.phases[phase].zero_copy
    return Step(phase, "no copy" if zero_copy else seconds(total), True)


class PhaseStrip(Widget):
    """Two lines: the names, and what each took or has taken so far."""

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.shift_seconds = 0.0
        """What the writer's clock is ahead of ours, where another machine writes the session."""
        self._steps: tuple[Step, ...] = ()
        self._clock = ""

    def show(self, found: tuple[Step, ...]) -> None:
        """Shows these steps."""
        if found != self._steps:
            self._steps = found
            self.refresh()

    def tick(self) -> None:
        """Draws the running clock again, if it shows another time than before."""
        for index, step in enumerate(self._steps):
            if step.began_seconds is not None and self._elapsed(step) != self._clock:
                width = self._width()
                self.refresh(Region(self.gutter.left + index * width, self.gutter.top + 1, width, 1))

    def render(self) -> Content:
        width = self._width()
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

    def _width(self) -> int:
        return max(6, min(16, self.content_size.width // max(1, len(self._steps))))

    def _elapsed(self, step: Step) -> str:
        return clock(monotonic() + self.shift_seconds - (step.began_seconds or 0.0))
