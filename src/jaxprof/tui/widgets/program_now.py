"""What a program is doing at this moment, as far as its events say: the stage that goes on, or its last stretch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxprof.results.programs.places import place
from jaxprof.safe_text import safe
from jaxprof.tui.widgets.place_text import place_text
from jaxprof.tui.widgets.program_bar import in_order, state_title
from jaxprof.units import percent

if TYPE_CHECKING:
    from jaxprof.events import StageRunning
    from jaxprof.session.program import Program

_DOING = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}
_WITH = {"trace": "in Python", "lower": "to StableHLO", "compile": "backend"}


@dataclass(frozen=True, slots=True)
class Doing:
    """What it does. Where `began_seconds` (monotonic) is set, a clock runs between `before` and `after`."""

    before: str
    after: str = ""
    began_seconds: float | None = None


def doing(program: Program, directory: str = "") -> Doing:
    """What a program that goes on does now."""
    stage = _stage(program)
    if stage is not None:
        what = f"{_DOING.get(stage.stage, safe(stage.stage))} `{safe(stage.function)}`, {_WITH.get(stage.stage, '')}, "
        at = place_text(place(stage.called_from), directory)
        thread = f" in thread {safe(stage.thread)}" if stage.thread else ""
        return Doing(what, (f"  called from {at}" if at else "") + thread, stage.began_seconds)
    window = program.windows[-1] if program.windows else None
    if window is not None and window.state == "began":
        return Doing("a profile is being captured, ", "", window.monotonic_seconds or None)
    if not program.sampled:
        return Doing("starting" if program.jax is None else "jax is imported")
    last = program.sampled[-1]
    length = sum(last.states.values())
    parts = sorted(in_order(last.states), key=lambda pair: -pair[1])[:3]
    words = ", ".join(f"{state_title(state)} {percent(value / length)}" for state, value in parts) if length else ""
    return Doing(words if program.jax is not None else f"{words} (jax is not imported yet)")


def _stage(program: Program) -> StageRunning | None:
    """The stage that goes on; the main thread's first. One of which later samples saw nothing is over."""
    for thread in sorted(program.running):
        stage = program.running[thread]
        if thread or not program.sampled:
            return stage
        last = program.sampled[-1]
        if last.began_seconds <= stage.began_seconds or last.states.get(stage.stage, 0.0) > 0:
            return stage
    return None
