"""When compiling pays off: total time against the number of calls, for a run and its baseline. A pure function."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.stats.breakeven import total_seconds
from jaxprof.tui.widgets.line_plot import STYLES, Axis, Line, Mark, count_tick, line_plot, seconds_tick
from jaxprof.units import integer

if TYPE_CHECKING:
    from jaxprof.results import RunResult

_FEWEST_CALLS = 10


@dataclass(frozen=True, slots=True)
class Curve:
    """What the curve depends on. `once` and `first` are paid before the second call; the baseline pays nothing once."""

    label: str
    baseline_label: str
    call_seconds: float
    baseline_seconds: float
    once_seconds: float
    first_seconds: float
    break_even_calls: int | None

    @property
    def key(self) -> Hashable:
        """Equal where the drawing is."""
        return self

    @property
    def calls(self) -> int:
        """How many calls the plot goes to: twice the break-even, or till the once-only costs no longer matter."""
        if self.break_even_calls is not None:
            return max(_FEWEST_CALLS, 2 * self.break_even_calls)
        debt = self.once_seconds + self.first_seconds
        return max(_FEWEST_CALLS, math.ceil(2 * debt / max(self.baseline_seconds, 1e-12)))


def curve_of(one: RunResult, baseline: RunResult | None) -> Curve | None:
    """The curve of a run; None for a baseline, and where a figure that it needs is unknown."""
    if baseline is None or baseline.summary is None or one.summary is None or one.once_seconds is None:
        return None
    first = one.phase_seconds.get("first_run")
    return Curve(
        label=one.run.plan.variant,
        baseline_label=baseline.run.plan.variant,
        call_seconds=one.summary.median,
        baseline_seconds=baseline.summary.median,
        once_seconds=one.once_seconds,
        first_seconds=first if first is not None else one.summary.median,
        break_even_calls=one.versus.break_even_calls if one.versus is not None else None,
    )


def break_even_plot(curve: Curve, width: int, height: int) -> Content:
    """The two lines from no call on, and where they cross."""
    last = curve.calls
    ours = [(0.0, 0.0)] + [
        (float(calls), total_seconds(calls, curve.once_seconds, curve.first_seconds, curve.call_seconds))
        for calls in (1, last)
    ]
    theirs = ((0.0, 0.0), (float(last), last * curve.baseline_seconds))
    marks = []
    if curve.break_even_calls is not None:
        calls = curve.break_even_calls
        word = f"{integer(calls)} call{'s' if calls != 1 else ''}"
        marks.append(Mark(float(calls), calls * curve.baseline_seconds, word))
    return line_plot(
        [
            Line(curve.baseline_label, theirs, STYLES[0], dotted=True),
            Line(curve.label, tuple(ours), STYLES[1]),
        ],
        Axis("calls", count_tick, zero=True),
        Axis("total time", seconds_tick, zero=True),
        width,
        height,
        marks,
    )
