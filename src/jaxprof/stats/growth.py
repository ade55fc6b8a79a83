"""Judge whether a time has grown by more than a limit: the whole interval of its growth lies on one side, or
nothing is decided.

The rules are those of a verdict. Nothing is decided if the two were not measured together, if a comparison is refused,
if one launch cannot show it, or if the baseline differs from itself by as much as the growth differs from the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from jaxprof.stats.comparison import ONE_LAUNCH, TimeComparison

LimitState = Literal["within", "passed", "undecided"]


@dataclass(frozen=True, slots=True)
class GrowthVerdict:
    """A growth compared with a limit."""

    state: LimitState
    reason: str = ""
    """Why it is undecided; empty if it is not."""
    launches_to_decide: int | None = None
    """Number of further launches that would decide it, if ratio and spread stay as they are; None: unknown, or more
    than `MOST_LAUNCHES`."""


def growth(times: TimeComparison) -> float | None:
    """Return the share by which the time of `other` exceeds the baseline's: 0.1 is 10 % more. None: unknown."""
    return None if times.ratio is None else 1 / times.ratio - 1


def growth_interval(times: TimeComparison) -> tuple[float, float] | None:
    """Return the 95 % interval of `growth`; None if its error is not known."""
    interval = times.interval()
    return None if interval is None else (1 / interval[1] - 1, 1 / interval[0] - 1)


def judge_growth(times: TimeComparison, most: float) -> GrowthVerdict:
    """Judge the growth: `passed` if the time has grown by more than the share `most`; `within` if by less. Raises
    ValueError for a negative `most`."""
    if not most >= 0:
        raise ValueError(f"a limit is a share from 0 on, not {most}")
    state, reason = _judge(times, most)
    if state != "undecided":
        return GrowthVerdict(state)
    return GrowthVerdict(state, reason, times.launches_until(lambda more: _judge(more, most)[0] != "undecided"))


def _judge(times: TimeComparison, most: float) -> tuple[LimitState, str]:
    if times.refusal:
        return "undecided", times.refusal
    if times.ratio is None:
        return "undecided", "a side has no samples"
    if not times.together:
        return "undecided", "not measured together"
    interval = times.interval()
    if interval is None:
        return "undecided", "too few independent blocks"
    limit = math.log1p(most)
    low, high, grown = -math.log(interval[1]), -math.log(interval[0]), -math.log(times.ratio)
    if low <= limit <= high:
        return "undecided", "the interval contains the limit"
    if times.unit != "launch" and low - math.log1p(ONE_LAUNCH) <= limit <= high + math.log1p(ONE_LAUNCH):
        return "undecided", f"one launch cannot show a difference under {100 * ONE_LAUNCH:.0f} %"
    return ("passed" if grown > limit else "within"), ""
