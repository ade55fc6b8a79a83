"""Warnings that the samples themselves give: noise, drift, too few, a busy machine, a wrong result; with advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxprof.events import DeviceReading, WarningRaised
from jaxprof.session import Run
from jaxprof.stats import Summary, median_interval, outliers
from jaxprof.units import percent, seconds

NOISY_HALFWIDTH = 0.05
"""Half the 95 % interval over the median, above which a figure is called noisy."""
FEW_SAMPLES = 5
DRIFT = 0.10
"""Difference of the two halves' medians, over the whole median."""
MANY_OUTLIERS = 0.10
BUSY_SHARE = 0.15
"""Of the cores, used by other processes during the run, above which the machine is called busy."""


def derived_warnings(
    run: Run, summary: Summary | None, readings: Sequence[DeviceReading] = ()
) -> Iterator[WarningRaised]:
    """The warnings that follow from a run's facts and samples, and from the `readings` of its device meanwhile."""
    if summary is not None and run.over:
        yield from _kept_of_samples(run, summary)
    yield from _busy(run)
    yield from _throttled(run, readings)
    if run.check is not None and run.check.passed is False:
        yield WarningRaised(
            run=run.id,
            code="wrong_result",
            message=f"the result is not the expected one ({run.check.against}): relative error "
            f"{_number(run.check.max_relative_error)} against a tolerance of {_number(run.check.tolerance)}",
            advice="Its time means nothing until the result is right; compare the `highest` precision variant.",
        )


_KEPT_LIMIT = 512
_kept: dict[tuple[str, int, int], tuple[Sequence[float], tuple[WarningRaised, ...]]] = {}


def _kept_of_samples(run: Run, summary: Summary) -> tuple[WarningRaised, ...]:
    """The warnings of a series that has not grown since they were found: each costs two bootstraps."""
    samples = run.samples("run")
    key = (run.id, id(samples), len(samples))
    found = _kept.get(key)
    if found is None or found[0] is not samples:  # an id can be given to another list, once this one is gone
        if len(_kept) >= _KEPT_LIMIT:
            _kept.clear()
        found = _kept[key] = (samples, tuple(_of_samples(run, summary)))
    return found[1]


def _of_samples(run: Run, summary: Summary) -> Iterator[WarningRaised]:
    if summary.count < FEW_SAMPLES:
        yield WarningRaised(
            run=run.id,
            code="few_samples",
            message=f"only {summary.count} samples: no interval can be given",
            advice="A larger --budget gives more, a smaller size makes each call shorter.",
        )
        return
    halfwidth = summary.relative_halfwidth
    if halfwidth is not None and halfwidth > NOISY_HALFWIDTH:
        yield WarningRaised(
            run=run.id,
            code="noise",
            message=f"noisy: the median is known to ± {percent(halfwidth)} only",
            advice="Close what else runs on the machine, fix the clocks, or give a larger --budget.",
        )
    samples = run.samples("run")
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
                    advice="The machine changed under the run: heat, clocks, or other work. Run it again.",
                )
    far = sum(outliers(samples))
    if far > MANY_OUTLIERS * len(samples):
        yield WarningRaised(
            run=run.id,
            code="outliers",
            message=f"{percent(far / len(samples))} of the samples lie far from the median (up to "
            f"{seconds(summary.maximum)})",
            advice="They are kept and marked; look at the distribution before you trust one number.",
        )


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
            advice="Other work takes turns with the measurement; times are an upper bound.",
        )


def _throttled(run: Run, readings: Sequence[DeviceReading]) -> Iterator[WarningRaised]:
    reasons = sorted({reason for reading in readings for reason in reading.throttle_reasons})
    if reasons:
        yield WarningRaised(
            run=run.id,
            code="throttled",
            message=f"{run.plan.device} held its clocks back during the run: {', '.join(reasons)}",
            advice="Look at temperature and power limit; times of a throttled device are those of a slower one.",
        )


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2g}"
