"""The figures of one run: medians with intervals, phases, speed-up, break-even, cost, rates, warnings.

FLOPs, transcendentals and bytes of a call are counted from its HLO, which is the only source of these figures. XLA's
`cost_analysis` is never read: it counts the body of a loop once, however often the loop runs, and counts nothing for
library calls. For a session that holds it, the kept HLO is counted again. Code that XLA does not compile as a whole
(NumPy, op by op) has the estimate of its workload. A figure that the HLO does not determine is unknown, with the
reason.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from jaxprof.analysis.runs.speedup import (
    Memo,
    calls_figure,
    compare_times,
    disturbance,
    readings_during,
    steady_samples,
    summary_alone,
    turn_launches,
)
from jaxprof.analysis.runs.warnings import derive_warnings, unlike_medians
from jaxprof.base.errors import JaxprofError
from jaxprof.base.units import and_more
from jaxprof.base.values import frozen
from jaxprof.events import COUNTED_BY_XLA, PHASES, SAMPLED_PHASES, STARTUP_PHASES, TextRecorded, WarningRaised
from jaxprof.session import Run, Session
from jaxprof.stats.blocks import Block, LaunchBlocks, middle
from jaxprof.stats.comparison import TimeComparison
from jaxprof.stats.summary import MedianTime, Modes, Summary, summarise, summarise_launches, summarise_run, two_modes

if TYPE_CHECKING:
    from jaxprof.hlo.text.model import Module

COUNTED = "HLO, loops by their trip counts"
"""Source of the figures that this module counts."""
_MOST_NAMED = 3


@frozen
class RunCost:
    """Cost of one call on one device; None means unknown."""

    flops: float | None = None
    bytes_accessed: float | None = None
    """Bytes that the kernels read and write, each operand once."""
    transcendentals: float | None = None
    source: str = ""
    """`COUNTED`, or the author of the estimate; empty if nothing is known."""
    note: str = ""
    """Why a figure is unknown or an upper bound; empty if neither applies."""


NOTHING_KNOWN = RunCost()
_counted: dict[str, RunCost] = {}
_MOST_KEPT = 1024


def cost_of_call(session: Session, run: Run) -> RunCost:
    """Return the cost of one call of `run`. Counting takes 0.1 s for each MB of HLO, once per text and process."""
    kept = run.texts.get("hlo")
    if kept is not None:
        key = _text_key(kept)
        cost = _counted.get(key)
        if cost is None:
            from jaxprof.hlo.stages import modules

            try:
                text = session.text(run.id, "hlo")
                cost = module_cost(modules(text, run.plan.device)[0]) if text else NOTHING_KNOWN
            except JaxprofError as error:
                cost = RunCost(note=f"its HLO cannot be read: {error}")
            if len(_counted) >= _MOST_KEPT:
                _counted.clear()
            if not kept.digest or kept.digest in session.texts:  # chunks of a text may not have arrived yet
                _counted[key] = cost
        return cost
    reported = run.cost
    if reported is None:
        return NOTHING_KNOWN
    if reported.source == COUNTED_BY_XLA:
        note = "its HLO was not kept, and its figure is XLA's cost analysis, which takes the body of a loop once"
        return RunCost(note=note)
    return RunCost(reported.flops, reported.bytes_accessed, reported.transcendentals, reported.source)


def prompt_cost(session: Session, run: Run) -> RunCost:
    """Return the cost without a noticeable wait: nothing for a long HLO until `cost_of_call` has counted it."""
    return RunCost(note="its HLO is being counted") if is_uncounted(run) else cost_of_call(session, run)


def is_uncounted(run: Run) -> bool:
    """Return whether counting takes longer than a screen may wait."""
    kept = run.texts.get("hlo")
    # Counting 256 KiB of HLO takes 25 ms.
    return kept is not None and kept.bytes > 1 << 18 and _text_key(kept) not in _counted


def _text_key(text: TextRecorded) -> str:
    return text.digest or hashlib.sha256(text.text.encode("utf-8", "backslashreplace")).hexdigest()


def module_cost(module: Module) -> RunCost:
    from jaxprof.hlo.kernels.execution import Execution
    from jaxprof.hlo.kernels.kernels import kernels, totals

    if module.entry is None:
        return RunCost(note="its HLO has no entry computation")
    whole = totals(module)
    notes: list[str] = []
    edges = [edge for edges in module.once(Execution).edges.values() for edge in edges]
    if whole.opaque or whole.unsized:
        loops = dict.fromkeys(edge.caller.name for edge in edges if edge.times is None)
        if loops:
            notes.append(f"how often a loop runs is not in its HLO: {and_more(loops, _MOST_NAMED)}")
        opaque = {kernel.name: kernel for kernel in kernels(module) if kernel.flops is None}
        if opaque:
            named = [f"{name} ({each.target})" if each.target else name for name, each in opaque.items()]
            notes.append(f"what a call computes is not in its HLO: {and_more(named, _MOST_NAMED)}")
        if not notes:
            notes.append("its HLO is not whole")
    if any(edge.branch for edge in edges):
        notes.append("upper bound: the most expensive branch of each conditional counts")
    return RunCost(
        flops=None if whole.opaque else whole.flops,
        bytes_accessed=None if whole.unsized else float(whole.bytes),
        transcendentals=None if whole.opaque else whole.transcendentals,
        source=COUNTED,
        note="; ".join(notes),
    )


ONCE_PHASES = ("trace", "lower", "compile")
"""Phases that a compiled program pays for once, before its first call."""


@frozen
class Versus:
    """A run compared with its baseline."""

    baseline: str
    """Id of the baseline run."""
    speedup: TimeComparison
    """How many times as fast the run is, and the verdict; its `ratio` is known."""
    not_of_medians: str
    """Why the speed-up is not the ratio of the two medians, if that shows; otherwise empty."""
    break_even_calls: int | None
    """Number of calls from which on the run, with all that it does once, has taken no longer than the baseline with
    the same; None if never or unknown."""
    ahead_until_calls: int | None
    """Number of calls up to which a run that does less once, and takes longer a call, is ahead; None for all others."""


@dataclass(frozen=True)
class RunResult:
    """Figures of one run. Times are seconds per call; None means unknown or not applicable. What takes long and is
    rarely asked for is derived on first access."""

    session: Session = field(repr=False, compare=False)
    run: Run
    summary: Summary | None
    """Summary of the steady run."""
    _cost: Callable[[], RunCost] = field(repr=False, compare=False)

    @cached_property
    def dispatch_median_seconds(self) -> float | None:
        return spread.median if (spread := _summary(self.run, "dispatch")) else None

    @cached_property
    def pipelined_median_seconds(self) -> float | None:
        return spread.median if (spread := _summary(self.run, "pipelined")) else None

    @cached_property
    def transfers(self) -> dict[str, Summary]:
        """Summaries of `transfer_in` and `transfer_out`, if measured."""
        return {name: spread for name in ("transfer_in", "transfer_out") if (spread := _summary(self.run, name))}

    @cached_property
    def first_after_pause_seconds(self) -> float | None:
        """First call of a turn, after a turn of another run: median over turns. None if it counts as an ordinary
        sample."""
        turns = [turn for launch in self.run.launches for turn in launch.turns]
        firsts = [turn.first_seconds for turn in turns if turn.first_seconds is not None]
        return middle(firsts) if firsts else None

    @property
    def moved_nothing(self) -> bool:
        """Whether a call returns memory of its arguments. Its time is then not work, and not compared."""
        return "run" in self.run.phases and bool(self.run.phases["run"].zero_copy)

    @cached_property
    def over_launches(self) -> dict[str, MedianTime]:
        """Phases that happen once per process, if several launches measured them: medians with their intervals."""
        return summaries_over_launches(self.run)

    @cached_property
    def phase_seconds(self) -> dict[str, float | None]:
        """Seconds of the start-up phases and of this run's phases, in order; for a sampled phase, its median."""
        return _phase_seconds(self.run, self.over_launches)

    @cached_property
    def once_seconds(self) -> float | None:
        """Trace + lower + compile + transfer in: the cost before the first call, in seconds."""
        return _once_seconds(self.phase_seconds)

    @cached_property
    def modes(self) -> Modes | None:
        """The two modes of the steady run; None if it has only one."""
        samples = steady_samples(self.run)
        return _modes_of.of((samples,), len(samples), lambda: two_modes(samples))

    @cached_property
    def versus(self) -> Versus | None:
        # A call that returns its argument has a time, but has done no work that could be compared.
        work_seconds = None if self.moved_nothing or self.summary is None else self.summary.median
        baseline = self.session.runs.get(self.run.plan.baseline)
        if baseline is None or work_seconds is None or ("run" in baseline.phases and baseline.phases["run"].zero_copy):
            return None
        speedup = compare_times(self.session, baseline, self.run)
        if speedup.ratio is None:
            return None
        theirs = _phase_seconds(baseline, summaries_over_launches(baseline))
        call = speedup.ratio * work_seconds  # what a call wins is the speed-up, which the medians may contradict
        starts = _start_seconds(theirs, call), _start_seconds(self.phase_seconds, work_seconds)
        break_even = ahead_until = None
        if starts[0] is not None and starts[1] is not None:
            break_even = break_even_calls(starts[0], call, starts[1], work_seconds)
            overtaken = break_even_calls(starts[1], work_seconds, starts[0], call)
            if break_even is None and overtaken is not None and overtaken > 1:
                ahead_until = overtaken - 1
        summary = _summary(baseline, "run")
        why = speedup.why_not_of_medians(summary.median / work_seconds) if summary is not None else ""
        return Versus(baseline.id, speedup, why, break_even, ahead_until)

    @cached_property
    def warnings(self) -> tuple[WarningRaised, ...]:
        """Warnings of the engine, then derived warnings."""
        run, versus = self.run, self.versus
        warnings = [*run.warnings, *derive_warnings(run, self.summary, readings_during(self.session, run))]
        if versus is not None and versus.not_of_medians and not run.plan.side:  # `compare` reports it for sides
            warnings.append(unlike_medians(run, versus.speedup, versus.not_of_medians))
        return tuple(warnings)

    @property
    def cost(self) -> RunCost:
        """FLOPs and bytes of a call. Counts the HLO on access: for a long one, read this property in a thread."""
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
    def page_faults(self) -> float | None:
        """Minor page faults of one call: the median over launches."""
        return calls_figure(self.run, "page_faults")

    @property
    def kernel_share(self) -> float | None:
        """Share of the calls' CPU time that was spent in the operating system's kernel."""
        return calls_figure(self.run, "kernel_share")

    @property
    def one_time_phases(self) -> dict[str, float]:
        """Parts of the one-time cost in seconds by phase: what is paid before the first call, and that call. The
        break-even includes all of them. Empty if a part is unknown."""
        if self.once_seconds is None:
            return {}
        spent = ((name, self.phase_seconds.get(name)) for name in (*ONCE_PHASES, "transfer_in", "first_run"))
        return {name: seconds for name, seconds in spent if seconds is not None}

    @property
    def first_result_phases(self) -> dict[str, float]:
        """Seconds up to the end of the first call by phase, `run` for a first call like any other. Empty if unknown."""
        spent = self.one_time_phases
        if self.once_seconds is not None and "first_run" not in spent and self.summary is not None:
            spent["run"] = self.summary.median
        return spent


def result(session: Session, run_id: str, cost_of: Callable[[Session, Run], RunCost] = cost_of_call) -> RunResult:
    """Return the figures of one run. Raises KeyError for an unknown id. A screen, which must not wait, passes
    `prompt_cost`."""
    run = session.runs[run_id]
    return RunResult(session, run, _summary(run, "run"), partial(cost_of, session, run))


def results(session: Session) -> list[RunResult]:
    """Return the figures of every run, in the order of the plan."""
    return [result(session, run_id) for run_id in session.runs]


def newest_run(session: Session) -> str:
    """Return the run in progress that began last, else the one that ended last; empty before the first run."""
    runs = list(session.runs.values())
    running = [run.id for run in runs if run.status == "running"]
    if running:
        return running[-1]
    ended = [(run.ended_seconds, at) for at, run in enumerate(runs) if run.ended_seconds is not None]
    return runs[max(ended)[1]].id if ended else ""


def _start_seconds(phases: dict[str, float | None], call_seconds: float) -> float | None:
    """Return the seconds up to the end of the first call; where that has no phase of its own, it is like any other."""
    once, first = _once_seconds(phases), phases.get("first_run")
    return None if once is None else once + (call_seconds if first is None else first)


def _phase_seconds(run: Run, over_launches: dict[str, MedianTime]) -> dict[str, float | None]:
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


def summaries_over_launches(run: Run) -> dict[str, MedianTime]:
    """Summarise the phases that happen once per process and that several launches measured."""
    summaries: dict[str, MedianTime] = {}
    for name in (*STARTUP_PHASES, *PHASES):
        phases = [launch.phases[name] for launch in run.launches if name in launch.phases]
        known = [phase.seconds for phase in phases if phase.seconds is not None]
        if name in SAMPLED_PHASES or len(known) < 2 or len(known) < len(phases):
            continue
        summary = summarise_launches([LaunchBlocks((Block(0, (seconds,)),)) for seconds in known])
        if summary is not None:
            summaries[name] = summary
    return summaries


def _once_seconds(phases: dict[str, float | None]) -> float | None:
    """Return None if a phase of the sum could not be measured, and 0 for a variant that has none of these phases."""
    total = 0.0
    for name in (*ONCE_PHASES, "transfer_in"):
        if name in phases:
            seconds = phases[name]
            if seconds is None:
                return None
            total += seconds
    return total


_summaries: Memo[Summary | None] = Memo()
_modes_of: Memo[Modes | None] = Memo()


def _summary(run: Run, series: str) -> Summary | None:
    """Return the summary of a series; it is computed again only after the series has grown."""
    samples = run.samples(series)
    derive = partial(steady_summary, run) if series == "run" else partial(summarise, samples)
    return _summaries.of((samples,), len(samples), derive) if samples else None


def steady_summary(run: Run) -> Summary | None:
    """Summarise the steady run. The interval is computed over launches, or over blocks if there is a single launch."""
    if disturbance(run):
        return summary_alone(run)
    calls = run.series["run"].calls_per_sample if "run" in run.series else 1
    return summarise_run(run.samples("run"), turn_launches(run.launches), calls)


def break_even_calls(
    baseline_start_seconds: float, baseline_call_seconds: float, start_seconds: float, call_seconds: float
) -> int | None:
    """Return the number of calls from which on a run's total is at most its baseline's, None if never. A total is
    `start`, all up to the end of the first call, and a call's time for each further one."""
    debt = start_seconds - baseline_start_seconds
    gain = baseline_call_seconds - call_seconds
    if gain < 0:
        return None
    if debt <= 0:
        return 1
    return None if gain == 0 else 1 + math.ceil(debt / gain)
