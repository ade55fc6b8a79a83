"""One stretch of a program's time: samples come in, one event comes out, whose states add up to the stretch.

Three sources are put together. JAX announces the stages of compilations: exact. The CPU clock says for how long of the
rest the thread ran and for how long it was blocked: exact, too. The samples share out each of the two.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from jaxprof.events import STAGES, ProgramSampled
from jaxprof.program.samples.states import SYNC, Line, Seen

MOST_LINES: Final = 12
_WORTH_A_STATE: Final = 0.02
"""CPU time of less than this share, for which no sample speaks, belongs to the states that were seen."""

_Weights = dict[tuple[str, Line | None], float]


@dataclass(slots=True)
class Stretch:
    """`add` for every sample, then `event`."""

    began: float
    samples: int = 0
    stage_lines: _Weights = field(default_factory=lambda: defaultdict(float))
    running: _Weights = field(default_factory=lambda: defaultdict(float))
    blocked: _Weights = field(default_factory=lambda: defaultdict(float))
    if_running: _Weights = field(default_factory=lambda: defaultdict(float))
    """The blocked samples once more: what CPU time would be there."""
    stages: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    busy: float | None = 0.0
    """Seconds outside the stages for which the thread ran; None where there is no such clock."""
    delay: float = 0.0
    """Seconds outside the stages for which it was ready to run and the scheduler let others."""

    def add(
        self,
        seen: Seen | None,
        seconds: float,
        *,
        running: bool,
        stages: dict[str, float],
        stage: str = "",
        busy_seconds: float | None = None,
    ) -> None:
        """A sample that stands for the `seconds` before it, of which `stages` were spent compiling.

        `seen` is None where the stack says nothing of the rest, because the stage `stage` is going on now.
        """
        self.samples += 1
        in_stages = sum(stages.values())
        for name, value in stages.items():
            self.stages[name] += value
        rest = max(0.0, seconds - in_stages)
        if busy_seconds is None:
            self.busy = None
        elif self.busy is not None and seconds > 0:
            self.busy += busy_seconds * rest / seconds
        if seen is None:
            return
        if stage:
            self.stage_lines[stage, seen.line] += in_stages
        elif rest > 0:
            (self.running if running else self.blocked)[seen.state(running), seen.line] += rest
            if not running:
                self.if_running[("host_busy", None) if seen.kind == SYNC else (seen.state(True), seen.line)] += rest

    def delayed(self, seconds: float, now: float) -> None:
        """The thread would have run for so much longer in this stretch, had the scheduler let it."""
        total = now - self.began
        if total > 0:
            self.delay += seconds * max(0.0, 1.0 - sum(self.stages.values()) / total)

    def event(self, now: float, own_seconds: float | None, least: str = "host_busy") -> ProgramSampled:
        """The stretch until `now`. `least`: the state where no sample speaks for any."""
        total = max(0.0, now - self.began)
        in_stages = sum(self.stages.values())
        if in_stages > total:  # the two clocks are not read at the same instant
            self.stages = {name: value * total / in_stages for name, value in self.stages.items()}
            in_stages = total
        lines = self._shared_out(total - in_stages, least)
        states: dict[str, float] = defaultdict(float)
        for (state, _), seconds in lines.items():
            states[state] += seconds
        for name, value in self.stages.items():
            states[name] += value
        lines.update(self._stage_seconds_of_lines())
        return ProgramSampled(
            monotonic_seconds=now,
            began_seconds=self.began,
            samples=self.samples,
            states={name: value for name, value in states.items() if value > 0},
            lines=_largest(lines),
            own_seconds=own_seconds,
        )

    def _shared_out(self, rest: float, least: str) -> _Weights:
        """The time outside the stages, by state and line."""
        on, off = sum(self.running.values()), sum(self.blocked.values())
        if not on and not off:
            return {(least, None): rest}
        ran = rest * on / (on + off)
        if self.busy is not None:
            # A thread that the scheduler keeps waiting looks blocked; only where it was seen running, too, is it told.
            ran = min(rest, self.busy + (self.delay if on else 0.0))
            if not off:  # never seen blocked
                ran = rest
            elif not on and ran < _WORTH_A_STATE * rest:
                ran = 0.0
        shared: _Weights = defaultdict(float)
        for weights, seconds in ((self.running if on else self.if_running, ran), (self.blocked, rest - ran)):
            whole = sum(weights.values())
            for key, weight in weights.items():
                shared[key] += seconds * weight / whole
        return shared

    def _stage_seconds_of_lines(self) -> _Weights:
        """The stages' exact seconds, shared out over the lines that samples saw in them."""
        shared: _Weights = {}
        for stage, seconds in self.stages.items():
            weights = {key: weight for key, weight in self.stage_lines.items() if key[0] == stage}
            whole = sum(weights.values())
            for key, weight in weights.items():
                shared[key] = seconds * weight / whole if whole > 0 else 0.0
        return shared


def _largest(lines: _Weights) -> list[dict[str, Any]]:
    named = [(line, state, seconds) for (state, line), seconds in lines.items() if line is not None and seconds > 0]
    named.sort(key=lambda item: -item[2])
    return [
        {
            "file": line.file,
            "line": line.line,
            "function": line.function,
            "state": state,
            "seconds": seconds,
            "call": line.call,
        }
        for line, state, seconds in named[:MOST_LINES]
    ]
