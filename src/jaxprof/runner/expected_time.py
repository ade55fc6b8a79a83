"""Say how long runs take at least, before they begin, and how long the turns of running ones will still take."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from jaxprof.events import RunSpec
from jaxprof.runner.planning import PlannedRun
from jaxprof.session import Run
from jaxprof.units import seconds

_START_SECONDS, _START_SECONDS_NUMPY = 1.0, 0.2
"""Time from the start of a process to its first call."""


def expected_time(planned: Sequence[PlannedRun]) -> str:
    """Return what starting the processes and the budgets take, however short a call is: `at least 23 s`."""
    specs = [plan.spec for plan in planned]
    if any(spec.how not in ("numpy", "eager", "jit") or spec.side for spec in specs):
        return "time unknown"
    return f"at least {seconds(math.fsum(map(_least_seconds, specs)), 2)}"


def _least_seconds(spec: RunSpec) -> float:
    starts = spec.launches * (_START_SECONDS_NUMPY if spec.how == "numpy" else _START_SECONDS)
    most = math.inf if spec.max_seconds is None else spec.max_seconds
    return starts + min(spec.timing_seconds, most)


def left_in_words(runs: Collection[Run], now_seconds: float) -> str:
    """Return `≈ 25 s left`, at a monotonic time: from what the turns of these runs have taken, rounded as coarsely as
    an estimate deserves; empty if it is unknown, as while others wait that are not measured together with them."""
    begun = {run.plan.baseline or run.id for run in runs if run.started_seconds is not None}
    going = [run for run in runs if not run.over]
    left = [
        run.remaining_seconds - (now_seconds - run.progress_seconds)
        for run in going
        if run.remaining_seconds is not None and run.progress_seconds is not None
    ]
    most = max(left, default=0.0)
    if most <= 0 or any((run.plan.baseline or run.id) not in begun for run in going):
        return ""
    if most > 110:
        return f"≈ {math.ceil(most / 60)} min left"
    step = next(step for step, limit in ((1, 10), (5, 60), (10, 110)) if most <= limit)
    return f"≈ {math.ceil(most / step) * step} s left"
