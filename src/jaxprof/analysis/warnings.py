"""Warnings derived from the samples: noise, drift, too few samples, a busy machine, a wrong result; with advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxprof.analysis.speedup import disturbed, steady_samples
from jaxprof.events import CheckReported, DeviceReading, WarningRaised
from jaxprof.session import Run
from jaxprof.stats import Modes, Summary, median_interval, outliers, two_modes
from jaxprof.stats.turns import change_within
from jaxprof.units import counted, integer, percent, seconds

NOISY_HALFWIDTH = 0.05
"""Half the 95 % interval over the median above which a figure is called noisy."""
FEW_SAMPLES = 5
DRIFT = 0.10
"""Difference between the medians of the two halves, over the median of all, above which a series drifts."""
MANY_OUTLIERS = 0.10
BUSY_SHARE = 0.15
"""Share of the cores, used by other processes during the run, above which the machine is called busy."""
_FULL_PRECISION = ("", "float32", "float64")
"""Effective precisions of products for which there is no better one to compare with."""


def derived_warnings(
    run: Run, summary: Summary | None, readings: Sequence[DeviceReading] = ()
) -> Iterator[WarningRaised]:
    """The warnings that follow from a run's facts and samples, and from the `readings` of its device during the run."""
    if summary is not None and run.over:
        yield from _kept_of_samples(run, summary)
    yield from _busy(run)
    yield from _throttled(run, readings)
    if run.check is not None and run.check.passed is False:
        yield WarningRaised(
            run=run.id,
            code="wrong_result",
            message=f"the result differs from the expected one ({run.check.against}): {what_is_wrong(run.check)}",
            advice="The time means nothing until the result is right."
            + (" Compare the `highest` precision variant." if run.check.precision not in _FULL_PRECISION else ""),
        )


def what_is_wrong(check: CheckReported) -> str:
    """How many numbers of a result are off, and the one that is furthest off."""
    if check.note and not check.worst_got:
        return check.note
    if check.wrong_elements is None or check.elements is None:  # a session of jaxprof 0.1.0
        return f"relative error {_number(check.max_relative_error)} against a tolerance of {_number(check.tolerance)}"
    how = f"off by more than the tolerance of {check.tolerance:g}" if check.tolerance else "not the same"
    if check.elements == 1:
        return f"it is {how}{worst_element(check)}"
    shares = f"{integer(check.wrong_elements)} of {integer(check.elements)} numbers are {how}"
    return f"{shares}; the furthest off{worst_element(check)}" if check.worst_got else shares


def worst_element(check: CheckReported) -> str:
    """` at [3, 5]: 0.81 for 0.80`; empty where every number is the same."""
    if not check.worst_got:
        return ""
    at = f" at {check.worst_at}" if check.worst_at else ""
    return f"{at}: {check.worst_got} for {check.worst_expected}"


_KEPT_LIMIT = 512
_kept: dict[tuple[str, int, int], tuple[Sequence[float], tuple[WarningRaised, ...]]] = {}


def _kept_of_samples(run: Run, summary: Summary) -> tuple[WarningRaised, ...]:
    """The warnings of a series, kept until it grows: finding them costs two bootstraps."""
    samples = steady_samples(run)
    key = (run.id, id(samples), len(samples))
    cached = _kept.get(key)
    if cached is None or cached[0] is not samples:  # an id can be given to another list, once this one is gone
        if len(_kept) >= _KEPT_LIMIT:
            _kept.clear()
        cached = _kept[key] = (samples, tuple(_of_samples(run, summary)))
    return cached[1]


def _of_samples(run: Run, summary: Summary) -> Iterator[WarningRaised]:
    if summary.count < FEW_SAMPLES:
        yield WarningRaised(
            run=run.id,
            code="few_samples",
            message=f"only {counted(summary.count, 'sample')}: too few for an interval",
            advice="A larger --budget gives more samples; a smaller size makes each call shorter.",
        )
        return
    yield from _of_interval(run, summary)
    samples = steady_samples(run)
    yield from _of_order(run, summary, samples)
    yield from _of_distribution(run, summary, samples)


def _of_interval(run: Run, summary: Summary) -> Iterator[WarningRaised]:
    """How far the median is known."""
    halfwidth = summary.relative_halfwidth
    if halfwidth is None:
        blocks = sum(len(launch.turns) for launch in run.launches)
        those = counted(summary.count, "sample") + (f" in {counted(blocks, 'block')}" if blocks else "")
        yield WarningRaised(
            run=run.id,
            code="no_interval",
            message=f"{those} of one launch: too few, or too much like their neighbours, to say how far the median is "
            "known",
            advice="More --launches give an interval over launches; a larger --budget gives more blocks.",
        )
    if halfwidth is not None and halfwidth > NOISY_HALFWIDTH:
        yield WarningRaised(
            run=run.id,
            code="noise",
            message=f"noisy: the median is known to ± {percent(halfwidth)} only",
            advice="Close other programs on the machine, fix the clocks, or give a larger --budget.",
        )


def _of_order(run: Run, summary: Summary, samples: Sequence[float]) -> Iterator[WarningRaised]:
    """What the time of a call depended on: the turns of other runs, its place in a block, the hour."""
    beside = disturbed(run)
    if beside is not None:
        yield WarningRaised(
            run=run.id,
            code="disturbed",
            message=f"a call takes {seconds(beside.alone_seconds)} alone and {seconds(beside.turns_seconds)} in turns "
            "with the others: its figures and its speed-up are those of the runs alone",
            advice="Something that the others leave behind (memory, caches, clocks) changes its time.",
        )
    turns = [turn.seconds for launch in run.launches for turn in launch.turns] if beside is None else []
    change = change_within(turns)
    if change is not None:
        yield WarningRaised(
            run=run.id,
            code="unsettled",
            message=f"its calls do not settle within a turn: those of the second half are {percent(abs(change))} "
            f"{'slower' if change > 0 else 'faster'}",
            advice="The time of a call depends on what ran before it. Look at the samples in their order.",
        )
    half = len(samples) // 2
    if half >= FEW_SAMPLES:
        first, second = median_interval(samples[:half]), median_interval(samples[half:])
        if first and second and (first[1] < second[0] or second[1] < first[0]):
            shift = (sum(second) - sum(first)) / 2 / summary.median
            if abs(shift) > DRIFT:
                yield WarningRaised(
                    run=run.id,
                    code="drift",
                    message=f"the second half of the samples is {percent(abs(shift))} "
                    f"{'slower' if shift > 0 else 'faster'} than the first",
                    advice="The machine changed during the run: heat, clocks, or other work. Run it again.",
                )


def _of_distribution(run: Run, summary: Summary, samples: Sequence[float]) -> Iterator[WarningRaised]:
    """Whether the median stands for the samples."""
    modes = two_modes(samples)
    if modes is not None:
        once = " It changed once and stayed so." if modes.switches == 1 else ""
        yield WarningRaised(
            run=run.id,
            code="two_modes",
            message=f"two modes: {modes_text(modes)}; the median is not a typical time.{once}",
            advice="Look at the distribution: something alternates, such as threads, clocks, other work, or a cache.",
        )
    far = sum(outliers(samples))
    if modes is None and far > MANY_OUTLIERS * len(samples):
        yield WarningRaised(
            run=run.id,
            code="outliers",
            message=f"{percent(far / len(samples))} of the samples lie far from the median (up to "
            f"{seconds(summary.maximum)})",
            advice="They are kept and marked; look at the distribution before you trust a single number.",
        )


def modes_text(modes: Modes) -> str:
    """`1.20 ms (60 %), 3.40 ms (40 %)`: the median of each mode, and its share of the samples."""
    return f"{seconds(modes.low)} ({percent(modes.low_share)}), {seconds(modes.high)} ({percent(1 - modes.low_share)})"


def _busy(run: Run) -> Iterator[WarningRaised]:
    if run.environment is None:
        return
    settings = run.environment.settings
    others, cores = settings.get("other_busy_cores"), settings.get("cores")
    if isinstance(others, int | float) and isinstance(cores, int | float) and cores and others / cores > BUSY_SHARE:
        yield WarningRaised(
            run=run.id,
            code="busy_machine",
            message=f"the machine was busy: other processes used {others:.1f} of {cores:g} cores during the run",
            advice="Other work competes with the measurement; times are an upper bound.",
        )


def _throttled(run: Run, readings: Sequence[DeviceReading]) -> Iterator[WarningRaised]:
    reasons = sorted({reason for reading in readings for reason in reading.throttle_reasons})
    if reasons:
        yield WarningRaised(
            run=run.id,
            code="throttled",
            message=f"{run.plan.device} throttled its clocks during the run: {', '.join(reasons)}",
            advice="Check the temperature and the power limit; a throttled device gives the times of a slower one.",
        )


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2g}"
