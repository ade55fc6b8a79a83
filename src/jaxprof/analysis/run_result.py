"""One run in figures: medians with their intervals, phases, speed-up, break-even, convergence, rates, warnings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from jaxprof.analysis.run_cost import RunCost, run_cost
from jaxprof.analysis.speedup import Speedup, alone_launches, compared, disturbed, readings_during, steady_samples
from jaxprof.analysis.warnings import derived_warnings
from jaxprof.events import PHASES, STARTUP_PHASES, WarningRaised
from jaxprof.session import Run, Session
from jaxprof.stats import (
    Block,
    LaunchBlocks,
    LaunchSummary,
    Modes,
    Summary,
    break_even_calls,
    middle,
    summarise,
    summarise_launches,
    summarise_run,
    two_modes,
)
from jaxprof.stats.breakeven import total_seconds

SAMPLED_PHASES = ("transfer_in", "run", "transfer_out")
"""Phases that are sampled; their figure is the median of a call. The others happen once."""
ONCE_PHASES = ("trace", "lower", "compile")
"""The phases that are paid once for a compiled program, before its first call."""


@dataclass(frozen=True, slots=True)
class Versus:
    """A run beside its baseline."""

    baseline: str
    """The baseline's run id."""
    speedup: Speedup
    break_even_calls: int | None
    """After how many calls the one-time cost is won back; None: never, or unknown."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run in figures. Times in seconds a call; None is unknown or does not apply."""

    run: Run
    summary: Summary | None
    """Summary of the steady run."""
    dispatch_median_seconds: float | None
    pipelined_median_seconds: float | None
    transfers: dict[str, Summary]
    """`transfer_in` and `transfer_out`, where they were measured."""
    first_after_pause_seconds: float | None
    """The first call of a turn, after another run's: the median over turns. None where it counts with the others."""
    modes: Modes | None
    """The two modes of the steady run, where it has two."""
    moved_nothing: bool
    """The result of a call shares the memory of its arguments: its time is not work, and is not compared."""
    stage_spreads: dict[str, Summary]
    """`trace`, `lower`, `compile` one by one, where a run has more than one of them; `phase_seconds` is their sum."""
    over_launches: dict[str, LaunchSummary]
    """Phases that happen once in a process, where several launches measured them: each with the interval of its
    median."""
    phase_seconds: dict[str, float | None]
    """Start-up phases and phases that this run has, in order; for a sampled phase its median."""
    once_seconds: float | None
    """Trace + lower + compile + transfer in: the cost before the first call."""
    versus: Versus | None
    warnings: tuple[WarningRaised, ...]
    """The engine's warnings and the derived ones."""
    _cost: Callable[[], RunCost] = field(repr=False, compare=False)

    @property
    def cost(self) -> RunCost:
        """FLOPs and bytes of a call. Counted from the HLO when it is asked for: of a long one, ask in a thread."""
        return self._cost()

    @property
    def flops(self) -> float | None:
        """FLOPs of one call on one device."""
        return self.cost.flops

    @property
    def bytes_accessed(self) -> float | None:
        """Bytes that the kernels of one call read and write on one device."""
        return self.cost.bytes_accessed

    @property
    def flops_per_second(self) -> float | None:
        """FLOPs over the median of a call; None also for a call that moved nothing."""
        return self._rate(self.cost.flops)

    @property
    def bytes_per_second(self) -> float | None:
        """Bytes over the median of a call; None also for a call that moved nothing."""
        return self._rate(self.cost.bytes_accessed)

    def _rate(self, count: float | None) -> float | None:
        seconds = None if self.moved_nothing or self.summary is None else self.summary.median
        return count / seconds if count and seconds else None

    @property
    def one_time_phases(self) -> dict[str, float]:
        """The parts of the one-time cost, seconds by phase: what is paid before the first call, and that call. The
        break-even counts them all. Empty where a part is unknown."""
        if self.once_seconds is None:
            return {}
        spent = ((name, self.phase_seconds.get(name)) for name in (*ONCE_PHASES, "transfer_in", "first_run"))
        return {name: seconds for name, seconds in spent if seconds is not None}


def result(session: Session, run_id: str, cost_of: Callable[[Session, Run], RunCost] = run_cost) -> RunResult:
    """The figures of one run; a screen, which cannot wait, gives `prompt_cost`. Raises KeyError for an unknown id."""
    run = session.runs[run_id]
    summary = _summary(run, "run")
    over_launches = summaries_over_launches(run)
    phase_seconds = _phase_seconds(run, over_launches)
    once = _once_seconds(run, phase_seconds)
    dispatch, pipelined = _summary(run, "dispatch"), _summary(run, "pipelined")
    transfers = {name: spread for name in ("transfer_in", "transfer_out") if (spread := _summary(run, name))}
    median = summary.median if summary else None
    moved_nothing = "run" in run.phases and bool(run.phases["run"].zero_copy)
    work_seconds = None if moved_nothing else median
    return RunResult(
        run=run,
        summary=summary,
        dispatch_median_seconds=dispatch.median if dispatch else None,
        pipelined_median_seconds=pipelined.median if pipelined else None,
        transfers=transfers,
        first_after_pause_seconds=_first_after_pause(run),
        modes=_modes(run),
        moved_nothing=moved_nothing,
        stage_spreads=_stage_spreads(run),
        over_launches=over_launches,
        phase_seconds=phase_seconds,
        once_seconds=once,
        versus=_versus(session, run, phase_seconds, once, work_seconds),
        warnings=(*run.warnings, *derived_warnings(run, summary, readings_during(session, run))),
        _cost=partial(cost_of, session, run),
    )


def _first_after_pause(run: Run) -> float | None:
    firsts = [turn.first_seconds for launch in run.launches for turn in launch.turns if turn.first_seconds is not None]
    return middle(firsts) if firsts else None


def results(session: Session) -> list[RunResult]:
    """The figures of every run, in the order of the plan."""
    return [result(session, run_id) for run_id in session.runs]


def _versus(
    session: Session, run: Run, phases: dict[str, float | None], once: float | None, median: float | None
) -> Versus | None:
    baseline = session.runs.get(run.plan.baseline)
    if baseline is None or median is None or ("run" in baseline.phases and baseline.phases["run"].zero_copy):
        return None
    speedup = Speedup.of(compared(session, baseline, run))
    if speedup is None:
        return None
    theirs = _summary(baseline, "run")
    calls = None
    if theirs is not None and once is not None:
        first = phases.get("first_run")
        calls = break_even_calls(theirs.median, once, first if first is not None else median, median)
    return Versus(baseline.id, speedup, calls)


def _phase_seconds(run: Run, over_launches: dict[str, LaunchSummary]) -> dict[str, float | None]:
    seconds: dict[str, float | None] = {}
    for name in (*STARTUP_PHASES, *PHASES):
        if name in SAMPLED_PHASES:
            summary = _summary(run, name)
            if summary is not None:
                seconds[name] = summary.median
            elif name in run.phases:
                seconds[name] = None
        elif name in run.phases:
            seconds[name] = over_launches[name].median if name in over_launches else run.phases[name].seconds
    return seconds


def summaries_over_launches(run: Run) -> dict[str, LaunchSummary]:
    """Phases that happen once in a process, where several launches know them: each with the interval of its median."""
    summaries: dict[str, LaunchSummary] = {}
    for name in (*STARTUP_PHASES, *PHASES):
        phases = [launch.phases[name] for launch in run.launches if name in launch.phases]
        known = [phase.seconds for phase in phases if phase.seconds is not None]
        if name in SAMPLED_PHASES or len(known) < 2 or len(known) < len(phases):
            continue
        summary = summarise_launches([LaunchBlocks((Block(0, (seconds,)),)) for seconds in known])
        if summary is not None:
            summaries[name] = summary
    return summaries


def _once_seconds(run: Run, phases: dict[str, float | None]) -> float | None:
    """None when a phase of the sum could not be measured; 0 for a variant that has none of these phases."""
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
    cached = _kept.get(key)
    if cached is None or cached[0] is not samples:  # an id can be reused once its list is gone
        if len(_kept) >= _KEPT_LIMIT:
            _kept.clear()
        summary = steady_summary(run) if series == "run" else summarise(samples)
        cached = _kept[key] = (samples, summary)
    return cached[1]


def steady_summary(run: Run, first: int | None = None) -> Summary | None:
    """The summary of the steady run, or of its `first` samples; its interval stands on its launches, or on the blocks
    of a single one."""
    if first is None and disturbed(run):
        calls = run.series["alone"].calls_per_sample
        return summarise_run(run.samples("alone"), alone_launches(run), calls)
    samples = run.samples("run")[:first]
    left = len(samples)
    launches: list[LaunchBlocks] = []
    for launch in run.launches:
        blocks: list[Block] = []
        for turn in launch.turns:
            if left > 0:
                blocks.append(Block(0, turn.seconds[:left]))
                left -= len(turn.seconds)
        if blocks:
            launches.append(LaunchBlocks(tuple(blocks)))
    return summarise_run(samples, launches, run.series["run"].calls_per_sample if "run" in run.series else 1)


_found_modes: dict[tuple[int, int], tuple[Sequence[float], Modes | None]] = {}


def _modes(run: Run) -> Modes | None:
    """The modes of the steady run, looked for again only when it has grown."""
    samples = steady_samples(run)
    key = (id(samples), len(samples))
    cached = _found_modes.get(key)
    if cached is None or cached[0] is not samples:
        if len(_found_modes) >= _KEPT_LIMIT:
            _found_modes.clear()
        cached = _found_modes[key] = (samples, two_modes(samples))
    return cached[1]


def _stage_spreads(run: Run) -> dict[str, Summary]:
    """What JAX announced of each compilation, for stages that happened more than once."""
    spreads: dict[str, Summary] = {}
    for stage in ONCE_PHASES:
        seconds = [compiled.seconds for compiled in run.compiles if compiled.stage == stage]
        spread = summarise(seconds) if len(seconds) > 1 else None
        if spread is not None:
            spreads[stage] = spread
    return spreads


_FEWEST_CALLS = 10


@dataclass(frozen=True, slots=True)
class BreakEvenCurve:
    """Total time against calls. `once` and `first` are paid before the second call; the baseline pays nothing once."""

    label: str
    baseline_label: str
    call_seconds: float
    baseline_seconds: float
    once_seconds: float
    first_seconds: float
    break_even_calls: int | None

    def seconds_after(self, calls: int) -> float:
        """The total time of this many calls, including the costs that are paid once."""
        return total_seconds(calls, self.once_seconds, self.first_seconds, self.call_seconds)

    @property
    def calls(self) -> int:
        """How many calls the plot covers: twice the break-even, or until the one-time cost no longer matters."""
        if self.break_even_calls is not None:
            return max(_FEWEST_CALLS, 2 * self.break_even_calls)
        debt = self.once_seconds + self.first_seconds
        return max(_FEWEST_CALLS, math.ceil(2 * debt / max(self.baseline_seconds, 1e-12)))


def break_even_curve(derived: RunResult, baseline: RunResult | None) -> BreakEvenCurve | None:
    """The curve of a run; None for a baseline, and where a figure that it needs is unknown."""
    if baseline is None or baseline.summary is None or derived.summary is None or derived.once_seconds is None:
        return None
    first = derived.phase_seconds.get("first_run")
    return BreakEvenCurve(
        label=derived.run.plan.variant,
        baseline_label=baseline.run.plan.variant,
        call_seconds=derived.summary.median,
        baseline_seconds=baseline.summary.median,
        once_seconds=derived.once_seconds,
        first_seconds=first if first is not None else derived.summary.median,
        break_even_calls=derived.versus.break_even_calls if derived.versus is not None else None,
    )


_FIRST = 8


@dataclass(frozen=True, slots=True)
class IntervalWidth:
    """The interval that this many samples gave."""

    samples: int
    relative_halfwidth: float | None
    """Half width of the median's interval; None where the samples give no interval."""


class Convergence:
    """Keeps what was computed: each doubling costs one summary, once."""

    def __init__(self) -> None:
        self._widths: dict[str, list[IntervalWidth]] = {}

    def of(self, run: Run) -> tuple[IntervalWidth, ...]:
        """The widths so far of a run; none before the first eight samples."""
        widths = self._widths.setdefault(run.id, [])
        count = _FIRST << len(widths)
        while count <= len(run.samples("run")):
            summary = steady_summary(run, count)
            widths.append(IntervalWidth(count, summary.relative_halfwidth if summary is not None else None))
            count <<= 1
        return tuple(widths)
