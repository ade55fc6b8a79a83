"""Takes samples of one kind of call: calibrated, warmed up, stopped by precision or by time.

It knows nothing of JAX: a `Trial` prepares and makes the calls. While the clock runs, the garbage collector is off and
no event is sent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from statistics import median
from typing import Any

from jaxprof.base.values import frozen, not_collecting
from jaxprof.engine.measure.control import PhaseReport, Reporter
from jaxprof.events import SamplesTaken, TurnAwaited

try:
    import resource
except ImportError:  # Windows, where `profile` may measure all the same
    resource = None  # type: ignore[assignment]

Clock = Callable[[], float]
Execute = Callable[[Callable[[], Any]], Any]
"""Calls a function somewhere, waits for it, and returns what it returned or raises what it raised.

JAX records the Python stack for every array that it makes: 25 ns a frame, so twenty frames of ours add half a
microsecond to every call (measured: 6.96 µs at depth 0, 7.45 µs at 20). In a process of its own, jaxprof therefore
makes timed calls at the bottom of the main thread's stack."""


def here(work: Callable[[], Any]) -> Any:
    """Run `work` in the caller's own thread, which has the caller's thread-local settings of JAX."""
    return work()


OVERHEAD_SHARE = 0.01
"""Largest share that timing a sample (the clock, its resolution, the loop around the calls) may add to it."""
LARGEST_OVERHEAD_SECONDS = 2e-6
"""Upper bound for the cost of the loop and the clock: a call a hundred times as long needs no calibration."""
BATCH_SECONDS = 0.1
"""Length of the batches in which samples are sent, so that the listener does not wake all the time."""
MOST_SAMPLES = 10_000
"""Limit for the steady run. Untimed calls run between the samples of a very short call, so that this many samples span
the budget and a session stays small."""
MOST_SIDE_SAMPLES = 2_000
"""Limit for any other series."""
PRECISE_HALFWIDTH = 0.01
"""Half the 95 % interval of the median, divided by the median, below which sampling stops."""
LONG_CALL_SAMPLES = 3
"""Timed calls if one call exceeds the budget, after one as warm-up; also the fewest samples of any series."""
LEAST_SECONDS = 2.0
WARM_SHARE = 0.2
"""Share of the budget that warming up may take, at most `WARM_SECONDS`."""
WARM_SECONDS = 2.0
SPREAD_SECONDS = 2.0
"""Time over which the samples of a very short call are spread, or the budget if that is less."""
WARM_AGREEMENT = 0.03
"""A series is warm when the medians of two successive slices differ by less than this share."""
LONG_SHARE = 0.05
"""A call that takes a larger share of the budget is not calibrated or warmed up further: its first call did that."""
_MOST_CALLS = 10_000


@frozen
class Trial:
    """One kind of call. `prepare(calls)` prepares, untimed, what `make` is then timed with."""

    prepare: Callable[[int], Any]
    make: Callable[[Any], Any]


@frozen(kw_only=True)
class Plan:
    """How much of a series is sampled, and how."""

    series: str
    budget_seconds: float
    least_share: float = 0.25
    """Share of the budget, at most `LEAST_SECONDS`, for which sampling continues however precise it is, so that a slow
    change of the machine is noticed."""
    calls_per_sample: int | None = None
    """Fixed if the definition of the series fixes it; None to calibrate it."""
    most_samples: int = MOST_SIDE_SAMPLES
    show_progress: bool = False
    in_turns: bool = False
    """Whether blocks of samples are taken one at a time, when the run's control gives it a turn."""


@dataclass(slots=True)
class _Usage:
    """What all threads of the process used during the calls of a series."""

    page_faults: list[float] = field(default_factory=list)
    """Minor page faults a call in each burst. Their median counts, because the heap may grow once between two."""
    kernel_seconds: float = 0.0
    """The system estimates it by its ticks, so it means something of the whole series only."""
    cpu_seconds: float = 0.0


@cache
def clock_cost_seconds(clock: Clock = time.perf_counter) -> float:
    """Return the time that one reading of the clock adds, or its smallest step if larger: the median of pairs."""
    steps = []
    for _ in range(1001):  # odd, so that the median is one of the steps
        began = clock()
        steps.append(clock() - began)
    seen = [step for step in steps if step > 0]
    return max(median(steps), min(seen, default=0.0))


def calls_per_sample(call_seconds: float, cost_seconds: float) -> int:
    """Return the fewest calls for which a cost paid once a sample stays under `OVERHEAD_SHARE` of the sample."""
    if call_seconds <= 0:
        return _MOST_CALLS
    return min(_MOST_CALLS, max(1, math.ceil(cost_seconds / (OVERHEAD_SHARE * call_seconds))))


class CallSampler:
    """Takes samples and sends them."""

    def __init__(self, reporter: Reporter, clock: Clock = time.perf_counter, execute: Execute = here) -> None:
        self._reporter = reporter
        self._clock = clock
        self._execute = execute
        self.is_own_process = execute is not here
        """Whether the process is ours, where the user's functions may be replaced."""
        self.turns_seconds: float | None = None
        """Time from the first to the last sample of the turns, including those of other runs; None without turns."""
        self._usage = _Usage()

    def sample(self, trial: Trial, plan: Plan, call_seconds: float) -> list[float]:
        """Return the samples of `trial`, in seconds a call, which are also sent as they come.

        `call_seconds`: the time of an earlier call, which counts as the warm-up if it exceeds the budget.
        """
        self._usage = _Usage()
        calls = plan.calls_per_sample or 1
        samples: list[float] = []
        if call_seconds > plan.budget_seconds and not plan.in_turns:
            for index in range(LONG_CALL_SAMPLES):
                self._reporter.control.check()
                if plan.show_progress:
                    self._reporter.progress(
                        f"the first call took longer than the budget: timed call {index + 1} of {LONG_CALL_SAMPLES}",
                        fraction=index / LONG_CALL_SAMPLES,
                        remaining_seconds=(LONG_CALL_SAMPLES - index) * call_seconds * calls,
                    )
                samples.append(self.take(trial, calls))
                self._send(plan, samples[-1:], calls)
            return samples
        gap = 0
        if call_seconds <= LONG_SHARE * plan.budget_seconds:
            calls = plan.calls_per_sample or self._calibrate(trial, plan)
            call_seconds = self._warm_up(trial, plan, calls)
            self._usage = _Usage()
        if plan.in_turns:
            return self._take_turns(trial, plan, calls, call_seconds)
        if plan.calls_per_sample is None and call_seconds > 0:
            # Untimed calls between the samples of a short call, so that these span time, and not one moment of the
            # machine.
            spacing = min(plan.budget_seconds, SPREAD_SECONDS) / plan.most_samples
            gap = max(0, round((spacing - calls * call_seconds) / call_seconds))
        least = min(LEAST_SECONDS, plan.least_share * plan.budget_seconds)
        began = self._clock()
        while True:
            most = plan.most_samples - len(samples)
            batch = self._burst(trial, calls, most=most, seconds=BATCH_SECONDS, gap=gap)
            samples += batch
            self._send(plan, batch, calls)
            spent = self._clock() - began
            if plan.show_progress:
                remaining = max(0.0, plan.budget_seconds - spent)
                self._reporter.progress(fraction=min(1.0, spent / plan.budget_seconds), remaining_seconds=remaining)
            self._reporter.control.check()
            if spent >= plan.budget_seconds and len(samples) >= LONG_CALL_SAMPLES:
                return samples
            if len(samples) >= plan.most_samples or (spent >= least and precise(samples)):
                return samples

    def describe(self, phase: PhaseReport) -> None:
        """Add to `phase`, the steady run's, what is known of the series that was sampled last."""
        phase.seconds = self.turns_seconds
        if self._usage.page_faults:
            phase.page_faults = round(median(self._usage.page_faults), 2)
        if self._usage.cpu_seconds:
            phase.kernel_share = round(self._usage.kernel_seconds / self._usage.cpu_seconds, 4)

    def take(self, trial: Trial, calls: int = 1) -> float:
        """Take one sample, in seconds a call."""
        return self._burst(trial, calls, most=1)[0]

    def _burst(
        self, trial: Trial, calls: int, *, most: int, seconds: float = math.inf, gap: int = 0, warm_in: float = 0.0
    ) -> list[float]:
        """Take up to `most` samples in about `seconds`, with `gap` untimed calls after each. With a warm-in, its first
        sample precedes them, and its other samples are dropped."""
        before = resource and resource.getrusage(resource.RUSAGE_SELF)
        samples: list[float]
        samples, made = self._execute(partial(_burst, trial, self._clock, calls, most, seconds, gap, warm_in))
        if before:
            after = resource.getrusage(resource.RUSAGE_SELF)
            kernel = after.ru_stime - before.ru_stime
            self._usage.page_faults.append((after.ru_minflt - before.ru_minflt) / made)
            self._usage.kernel_seconds += kernel
            self._usage.cpu_seconds += kernel + after.ru_utime - before.ru_utime
        return samples

    def _take_turns(self, trial: Trial, plan: Plan, calls: int, call_seconds: float) -> list[float]:
        """Return the samples of all turns that this run gets. Between turns it only waits, and costs nothing."""
        sample_seconds = calls * call_seconds
        announce = partial(self._reporter.emit, TurnAwaited(call_seconds=sample_seconds))
        samples: list[float] = []
        first_began: float | None = None
        worked: float | None = None
        while (turn := self._reporter.control.next_turn(announce, worked)) is not None:
            began = self._clock()
            first_began = began if first_began is None else first_began
            gap = 0
            if plan.calls_per_sample is None and call_seconds > 0:
                gap = max(0, round((turn.seconds / turn.most_samples - sample_seconds) / call_seconds))
            block = self._burst(
                trial, calls, most=turn.most_samples, seconds=turn.seconds, gap=gap, warm_in=turn.warm_in_seconds
            )
            ended = self._clock()
            worked, self.turns_seconds = ended - began, ended - first_began
            first = block.pop(0) if turn.warm_in_seconds else None
            if turn.series == plan.series:
                samples.extend(block)
            announce = partial(self._send, replace(plan, series=turn.series), block, calls, turn.block, first)
        return samples

    def _calibrate(self, trial: Trial, plan: Plan) -> int:
        """Return the calls in a sample, from the fastest of one and of two calls: what does not double is overhead."""
        cost = clock_cost_seconds(self._clock)
        single = double = math.inf
        ends = self._clock() + LONG_SHARE * plan.budget_seconds
        for _ in range(10):
            single = min(single, *self._burst(trial, 1, most=5))
            # The largest overhead is less than the allowed share of so long a call.
            if single > LARGEST_OVERHEAD_SECONDS / OVERHEAD_SHARE:
                return 1
            double = min(double, *(2 * each for each in self._burst(trial, 2, most=5)))
            if self._clock() > ends:
                break
        # Two noisy minima may differ by next to nothing, or by less; a call is no shorter than a quarter of both.
        call = max(double - single, single / 4)
        overhead = min(max(cost, single - call), LARGEST_OVERHEAD_SECONDS)
        return calls_per_sample(call, overhead)

    def _warm_up(self, trial: Trial, plan: Plan, calls: int) -> float:
        """Make calls until two slices agree, or the warm-up's share of the budget is spent; return the last median."""
        ends = self._clock() + min(WARM_SECONDS, WARM_SHARE * plan.budget_seconds)
        before: float | None = None
        while True:
            self._reporter.control.check()
            now = median(self._burst(trial, calls, most=MOST_SAMPLES, seconds=0.02))
            if before is not None and abs(now - before) <= WARM_AGREEMENT * before:
                return now
            if self._clock() >= ends:
                return now
            before = now

    def _send(
        self, plan: Plan, samples: list[float], calls: int, block: int | None = None, first: float | None = None
    ) -> None:
        if plan.series == "run":
            self._reporter.samples += len(samples)
        rounded = [round(sample, 11) for sample in samples]  # to a hundredth of a nanosecond, which keeps lines short
        self._reporter.emit(
            SamplesTaken(series=plan.series, seconds=rounded, calls_per_sample=calls, block=block, first_seconds=first)
        )


def _burst(
    trial: Trial, clock: Clock, calls: int, most: int, seconds: float, gap: int, warm_in: float
) -> tuple[list[float], int]:
    """Take samples; return them with the number of all calls that were made. This is the only place where the clock
    runs, and it is one frame, because every frame costs."""
    prepare, make = trial.prepare, trial.make
    samples: list[float] = []
    made = 0
    warm = clock() + warm_in if warm_in else 0.0
    ends = clock() + seconds
    # A collection in the middle would be counted as a part of the call in which it happens.
    with not_collecting():
        while True:
            work = prepare(calls)
            began = clock()
            make(work)
            samples.append((clock() - began) / calls)
            made += calls
            # Freeing what the call has made is no part of the next sample.
            del work
            if warm:
                del samples[1:]
                if clock() < warm:
                    continue
                warm, most, ends = 0.0, most + 1, clock() + seconds
                continue
            if len(samples) >= most or clock() >= ends:
                return samples, made
            if gap:
                make(prepare(gap))
                made += gap


def precise(samples: list[float]) -> bool:
    """Whether the median of `samples` is known to `PRECISE_HALFWIDTH`."""
    from jaxprof.stats.summary import median_interval

    interval = median_interval(samples)
    if interval is None:
        return False
    return (interval[1] - interval[0]) / 2 <= PRECISE_HALFWIDTH * median(samples)
