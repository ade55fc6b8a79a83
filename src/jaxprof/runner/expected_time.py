"""Say how long runs take, before they begin, and how long the turns of running ones will still take."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from jaxprof.base.units import seconds
from jaxprof.runner.planning import PlannedRun
from jaxprof.session import Run
from jaxprof.stats.turns import ALONE_SECONDS, ALONE_SHARE, PROBE_SECONDS, PROBES

_START_SECONDS, _START_SECONDS_NUMPY = 1.3, 0.3
"""Time from the start of a process to its first turn, with the end of the one before it: the import, a first compile,
and the warm-up. Measured on two cores with a short function, as all times here."""
_SIDE_SHARE, _MOST_SIDE_SECONDS = 0.4, 2.0
"""Share of the budget for the series beside the steady run: both transfers, dispatch, pipelined calls."""


def estimate_time(planned: Sequence[PlannedRun]) -> str:
    """Return what the runs take with short calls and compilations, which nobody knows before: `about 23 s or more`."""
    specs = [plan.spec for plan in planned]
    if any(spec.how not in ("numpy", "eager", "jit") or spec.side for spec in specs):
        return "time unknown"
    whole = 0.0
    for spec in specs:
        whole += spec.launches * (_START_SECONDS_NUMPY if spec.how == "numpy" else _START_SECONDS)
        work = spec.timing_seconds
        if len(specs) > 1:  # in turns
            alone = min(ALONE_SECONDS, ALONE_SHARE * spec.timing_seconds / spec.launches)
            work += spec.launches * alone + PROBES * PROBE_SECONDS
        if spec.how != "numpy":
            work += min(_MOST_SIDE_SECONDS, _SIDE_SHARE * spec.timing_seconds)
            # Both captures of a run, and its check.
            work += 0.6 if spec.capture else 0.0
        whole += min(work, math.inf if spec.max_seconds is None else spec.max_seconds)
    return f"about {seconds(whole, 2)} or more"


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
