"""One run in figures: medians with their intervals, phases, speed-up, break-even, rates, warnings.

Cheap enough to be asked for at each refresh of a screen: the statistics of a series are kept until it grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxprof.events import PHASES, STARTUP_PHASES, DeviceReading, WarningRaised
from jaxprof.results.warnings import derived_warnings
from jaxprof.session import Run, Session
from jaxprof.stats import Speedup, Summary, break_even_calls, speedup, summarise

SAMPLED_PHASES = ("transfer_in", "run", "transfer_out")
"""Phases that are sampled; their figure is the median of a call. The others happen once."""
ONCE_PHASES = ("trace", "lower", "compile")
"""What is paid once for a compiled program, before its first call."""


@dataclass(frozen=True, slots=True)
class Versus:
    """A run beside its baseline."""

    baseline: str
    """The baseline's run id."""
    speedup: Speedup
    break_even_calls: int | None
    """After how many calls trace, lower, compile and the transfer in have paid off; None: never, or unknown."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What is derived from one run. Times in seconds a call; None is unknown or does not apply."""

    run: Run
    summary: Summary | None
    """Of the steady run."""
    dispatch_median_seconds: float | None
    pipelined_median_seconds: float | None
    transfers: dict[str, Summary]
    """`transfer_in` and `transfer_out`, where they were measured."""
    phase_seconds: dict[str, float | None]
    """Start-up phases and phases that this run has, in order; of a sampled one the median."""
    once_seconds: float | None
    """Trace + lower + compile + transfer in: what is paid before the first call."""
    versus: Versus | None
    flops: float | None
    bytes_accessed: float | None
    flops_per_second: float | None
    bytes_per_second: float | None
    warnings: tuple[WarningRaised, ...]
    """The engine's and the derived ones."""


def result(session: Session, run_id: str) -> RunResult:
    """The figures of one run. Raises KeyError for an unknown id."""
    run = session.runs[run_id]
    summary = _summary(run, "run")
    phase_seconds = _phase_seconds(run)
    once = _once_seconds(run, phase_seconds)
    flops = run.cost.flops if run.cost is not None else None
    traffic = run.cost.bytes_accessed if run.cost is not None else None
    dispatch, pipelined = _summary(run, "dispatch"), _summary(run, "pipelined")
    transfers = {name: found for name in ("transfer_in", "transfer_out") if (found := _summary(run, name))}
    median = summary.median if summary else None
    return RunResult(
        run=run,
        summary=summary,
        dispatch_median_seconds=dispatch.median if dispatch else None,
        pipelined_median_seconds=pipelined.median if pipelined else None,
        transfers=transfers,
        phase_seconds=phase_seconds,
        once_seconds=once,
        versus=_versus(session, run, phase_seconds, once, median),
        flops=flops,
        bytes_accessed=traffic,
        flops_per_second=flops / median if flops and median else None,
        bytes_per_second=traffic / median if traffic and median else None,
        warnings=(*run.warnings, *derived_warnings(run, summary, _readings(session, run))),
    )


def results(session: Session) -> list[RunResult]:
    """The figures of every run, in the order of the plan."""
    return [result(session, run_id) for run_id in session.runs]


def _readings(session: Session, run: Run) -> list[DeviceReading]:
    """The readings of this run's device that were taken for it."""
    return [reading for reading in session.readings.get(run.plan.device, []) if reading.run == run.id]


def _versus(
    session: Session, run: Run, phases: dict[str, float | None], once: float | None, median: float | None
) -> Versus | None:
    baseline = session.runs.get(run.plan.baseline)
    if baseline is None or median is None:
        return None
    found = _speedup(baseline, run)
    if found is None:
        return None
    theirs = _summary(baseline, "run")
    calls = None
    if theirs is not None and once is not None:
        first = phases.get("first_run")
        calls = break_even_calls(theirs.median, once, first if first is not None else median, median)
    return Versus(baseline.id, found, calls)


def _phase_seconds(run: Run) -> dict[str, float | None]:
    seconds: dict[str, float | None] = {}
    for name in (*STARTUP_PHASES, *PHASES):
        if name in SAMPLED_PHASES:
            found = _summary(run, name)
            if found is not None:
                seconds[name] = found.median
            elif name in run.phases:
                seconds[name] = None
        elif name in run.phases:
            seconds[name] = run.phases[name].seconds
    return seconds


def _once_seconds(run: Run, phases: dict[str, float | None]) -> float | None:
    """None when a phase that belongs to it could not be measured; 0 for a variant that has none of them."""
    total = 0.0
    for name in (*ONCE_PHASES, "transfer_in"):
        if name in phases:
            seconds = phases[name]
            if seconds is None:
                return None
            total += seconds
    return total


_kept: dict[tuple[int, int], tuple[Sequence[float], Summary | None]] = {}
_KEPT_LIMIT = 512


def _summary(run: Run, series: str) -> Summary | None:
    """The summary of a series, computed again only when it has grown."""
    samples = run.samples(series)
    if not samples:
        return None
    key = (id(samples), len(samples))
    found = _kept.get(key)
    if found is None or found[0] is not samples:  # an id can be given to another list, once this one is gone
        if len(_kept) >= _KEPT_LIMIT:
            _kept.clear()
        found = _kept[key] = (samples, summarise(samples))
    return found[1]


_ratios: dict[tuple[int, int, int, int], tuple[Sequence[float], Sequence[float], Speedup | None]] = {}


def _speedup(baseline: Run, run: Run) -> Speedup | None:
    """The speed-up, computed again only when one of the two series has grown."""
    theirs, ours = baseline.samples("run"), run.samples("run")
    key = (id(theirs), len(theirs), id(ours), len(ours))
    found = _ratios.get(key)
    if found is None or found[0] is not theirs or found[1] is not ours:
        if len(_ratios) >= _KEPT_LIMIT:
            _ratios.clear()
        found = _ratios[key] = (theirs, ours, speedup(theirs, ours))
    return found[2]
