"""Warnings about measured runs: why their figures are less certain than they look. Those that the engine or the
scheduler raises, with a message and advice of their own, have only their entries here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

from jaxprof.analysis.runs.speedup import BUSY_SHARE, Memo, calls_figure, disturbance, others_cores, steady_samples
from jaxprof.base.units import between, counted, integer, percent, ratio, seconds, spread
from jaxprof.base.values import frozen
from jaxprof.events import CheckReported, DeviceReading, WarningRaised
from jaxprof.events.finding import CatalogueEntry
from jaxprof.session import Run
from jaxprof.stats.blocks import change_within
from jaxprof.stats.comparison import TimeComparison
from jaxprof.stats.summary import Summary, median_interval, modes_text, outliers, two_modes


@frozen
class RunWarning(CatalogueEntry):
    """What holds for all warnings of a code."""

    effect: Literal["fault", "change", "doubt", "note"]
    """`fault`: the times are meaningless. `change`: the program is to be changed, and its times are right. `doubt`: the
    measurement cannot provide some figures. Only these are in an explanation."""


_warning_of = partial(RunWarning, source="run", page="measuring.md#what-warnings-the-engine-raises")
_fault, _change = partial(_warning_of, effect="fault"), partial(_warning_of, effect="change")
_doubt, _note = partial(_warning_of, effect="doubt"), partial(_warning_of, effect="note")
NOISY_HALFWIDTH = 0.05
"""Half the 95 % interval over the median; a figure above this is called noisy."""
FEW_SAMPLES = 5
DRIFT = 0.10
"""Difference between the medians of the two halves, over the median of all samples; above this a series drifts."""
MANY_OUTLIERS = 0.10
KERNEL_SHARE = 0.10
"""Share of the calls' CPU time in the kernel from which their page faults are reported."""
LEAST_PAGE_FAULTS = 16
"""Page faults of a call below which its time in the kernel has another reason: glibc maps blocks above 32 MiB anew at
each call, and that is 16 faults even with pages of 2 MiB."""
_warnings_of: Memo[tuple[WarningRaised, ...]] = Memo()


_WRONG_RESULT = _fault("wrong_result", "the result is wrong",
    "It differs from the expected one by more than the tolerance: its time means nothing until it is right.",
    "Compare with the `highest` precision variant; look at the number that is furthest off.")  # fmt: skip


def derive_warnings(run: Run, summary: Summary | None, readings: Sequence[DeviceReading]) -> Iterator[WarningRaised]:
    """Yield the warnings that follow from a run's facts, its samples, and its device's `readings` during the run."""
    if summary is not None and run.over:
        samples = steady_samples(run)  # the warnings from samples cost two bootstraps, so they are kept
        yield from _warnings_of.of((samples,), (run.id, len(samples)), lambda: tuple(_sample_warnings(run, summary)))
    # Page faults count on CPUs alone: a call on an accelerator is not what the host's processors do meanwhile.
    faults, share = calls_figure(run, "page_faults"), calls_figure(run, "kernel_share")
    on_cpu = run.plan.device.startswith("cpu")
    if on_cpu and faults is not None and faults >= LEAST_PAGE_FAULTS and share is not None and share >= KERNEL_SHARE:
        counts = (
            f"about {counted(round(faults), 'page fault')} a call, and {percent(share)} of its CPU time in the kernel"
        )
        why = "memory that a call frees goes back to the system, and comes back page by page, zeroed"
        memory = run.memory
        inner = memory is not None and (memory.temporary_bytes or 0) > (memory.output_bytes or 0)
        jitted = "Intermediate arrays of jit" if inner else "jit"
        side = {"numpy": "NumPy", "eager": "Op by op"}.get(run.plan.how, jitted)
        fix = _PAGE_FAULT_FIXES[side]
        yield _warning(run, _PAGE_FAULTS, f"{counts}: {why}", fix[0].upper() + fix[1:])
    has_times = summary is not None or run.status == "ok"  # else there is nothing that was disturbed
    others, cores = others_cores(run)
    if has_times and others > BUSY_SHARE * cores:
        used = f"{others:.1f} of {cores:g} cores"
        yield _warning(run, _BUSY_MACHINE, f"the machine was busy: other processes used {used} during the run")
    reasons = sorted({reason for reading in readings for reason in reading.throttle_reasons})
    if has_times and reasons:
        yield _warning(run, _THROTTLED, f"{run.plan.device} throttled its clocks during the run: {', '.join(reasons)}")
    if run.check is not None and run.check.passed is False:
        against = f" ({run.check.against})" if run.check.against else ""
        words = f"the result differs from the expected one{against}: {what_is_wrong(run.check)}"
        # Products in these precisions have no better one to compare with.
        precise = (
            " Compare the `highest` precision variant." if run.check.precision not in ("", "float32", "float64") else ""
        )
        yield _warning(run, _WRONG_RESULT, words, f"The time means nothing until the result is right.{precise}")


def _warning(run: Run, entry: CatalogueEntry, message: str, own_fix: str | None = None) -> WarningRaised:
    """Return a warning about a run, with the fix in the catalogue unless this case has one of its own."""
    fix = entry.fix if own_fix is None else own_fix
    return WarningRaised(run=run.id, code=entry.code, message=message, advice=fix)


def what_is_wrong(check: CheckReported) -> str:
    """Describe how many numbers of a result are wrong, and the one that is furthest off."""
    if check.note and not check.worst_got:
        return check.note
    if check.wrong_elements is None or check.elements is None:
        return f"relative error {_digits(check.max_relative_error)} against a tolerance of {_digits(check.tolerance)}"
    how = f"off by more than the tolerance of {check.tolerance:g}" if check.tolerance else "not the same"
    if check.elements == 1:
        return f"it is {how}{worst_element(check)}"
    shares = f"{integer(check.wrong_elements)} of {integer(check.elements)} numbers are {how}"
    return f"{shares}; the furthest off{worst_element(check)}" if check.worst_got else shares


def worst_element(check: CheckReported) -> str:
    """Return text such as ` at [3, 5]: 0.81 instead of 0.80`; empty if every number is the same."""
    if not check.worst_got:
        return ""
    at = f" at {check.worst_at}" if check.worst_at else ""
    return f"{at}: {check.worst_got} instead of {check.worst_expected}"


def unstable_text(check: CheckReported) -> str:
    """Say of a result that cannot be checked how unstable the expected one is; empty for any other."""
    if check.unstable_elements is None or check.elements is None:
        return ""
    off, moved = integer(check.wrong_elements or 0), integer(check.unstable_elements)
    return (
        f"{off} of {counted(check.elements, 'number')} are off, and inputs that differ by a rounding change {moved} of "
        "the expected ones as much: whether it is right is unknown"
    )


_FEW_SAMPLES = _doubt("few_samples", "too few samples", "Under five calls were timed.",
    "A larger --budget gives more samples; a smaller size makes each call shorter.")  # fmt: skip


def _sample_warnings(run: Run, summary: Summary) -> Iterator[WarningRaised]:
    if summary.count < FEW_SAMPLES:
        yield _warning(run, _FEW_SAMPLES, f"only {counted(summary.count, 'sample')}: too few for an interval")
        return
    halfwidth = summary.relative_halfwidth
    if halfwidth is None:
        those = f"{counted(summary.count, 'sample')} of one launch, {between(summary.minimum, summary.maximum)}"
        why = "fewer than five of its blocks are independent, because there are few or each is like the one before it"
        yield _warning(run, _NO_INTERVAL, f"{those}: no interval of the median, since {why}")
    if halfwidth is not None and halfwidth > NOISY_HALFWIDTH:
        wide = spread(halfwidth, summary.low, summary.high)
        yield _warning(run, _NOISE, f"noisy: the 95 % interval of the median is {wide}")
    samples = steady_samples(run)
    beside = disturbance(run)
    if beside is not None:
        in_turns, alone = map(seconds, beside)
        times = f"a call takes {alone} alone and {in_turns} in turns with the others"
        yield _warning(run, _DISTURBED, f"{times}: its figures are those of the run alone")
    turns = [turn.seconds for launch in run.launches for turn in launch.turns] if beside is None else []
    change = change_within(turns)
    if change is not None:
        by = f"{percent(abs(change))} {'slower' if change > 0 else 'faster'}"
        yield _warning(run, _UNSETTLED, f"its calls do not settle within a turn: those of the second half are {by}")
    half = len(samples) // 2
    if half >= FEW_SAMPLES:
        first, second = median_interval(samples[:half]), median_interval(samples[half:])
        if first and second and (first[1] < second[0] or second[1] < first[0]):
            shift = (sum(second) - sum(first)) / 2 / summary.median
            if abs(shift) > DRIFT:
                by = f"{percent(abs(shift))} {'slower' if shift > 0 else 'faster'}"
                yield _warning(run, _DRIFT, f"the second half of the samples is {by} than the first")
    modes = two_modes(samples)
    if modes is not None:
        once = " It changed once and stayed so." if modes.switches == 1 else ""
        yield _warning(run, _TWO_MODES, f"two modes: {modes_text(modes)}; the median is not a typical time.{once}")
    far = sum(outliers(samples))
    if modes is None and far > MANY_OUTLIERS * len(samples):
        share, most = percent(far / len(samples)), seconds(summary.maximum)
        yield _warning(run, _OUTLIERS, f"{share} of the samples lie far from the median (up to {most})")


_NOISE = _doubt("noise", "the median is not known well", "Half its 95 % interval is over 5 %.",
    "Close other programs on the machine, fix the clocks, or give a larger --budget.")  # fmt: skip
_NO_INTERVAL = _doubt("no_interval", "no interval can be given",
    "Fewer than five blocks of calls are independent: there are few, or each is like the one before it.",
    "More --launches give an interval over launches; a larger --budget gives more blocks.")  # fmt: skip


_DRIFT = _doubt("drift", "times drift", "The second half of the samples is faster or slower than the first.",
    "The machine changed during the run: heat, clocks, or other work. Run it again.")  # fmt: skip
_DISTURBED = _doubt("disturbed", "a call takes a different time in turns with other runs",
    "The other runs affect it: its figures are those of the run alone, and so is its speed-up, unless both sides "
    "are affected alike.",
    "Find out what the others leave behind (memory, caches, clocks) that changes its time.")  # fmt: skip
_UNSETTLED = _doubt("unsettled", "calls do not settle within a turn",
    "Later calls of a turn differ from earlier ones.",
    "The time of a call depends on what ran before it. Look at the samples in their order.")  # fmt: skip


_TWO_MODES = _doubt("two_modes", "two typical times",
    "The samples have two modes: the median is typical of neither.",
    "Look at the distribution: something alternates, such as threads, clocks, other work, or a cache.")  # fmt: skip
_OUTLIERS = _doubt("outliers", "many samples far from the median", "More than a tenth of the samples.",
    "Look at the distribution before you trust a single number: outliers are kept, and marked.")  # fmt: skip


_PAGE_FAULT_FIXES = {
    "NumPy": "write into arrays that are kept (out=), or start Python with MALLOC_MMAP_MAX_=0 and "
    "MALLOC_TRIM_THRESHOLD_=4294967296 (glibc; one of them alone makes it worse).",
    "jit": "donate an argument of the result's shape that nothing needs afterwards (donate_argnums).",
    "Intermediate arrays of jit": "start Python with MALLOC_MMAP_MAX_=0 and MALLOC_TOP_PAD_=134217728 (glibc), which "
    "keep their memory; only results can take donated memory.",
    "Op by op": "compile it with jax.jit, which makes fewer arrays.",
}
"""What avoids page faults, by what allocates: `bench/README.md` has what each saved."""
_PAGE_FAULTS = _change(
    "page_faults",
    "the system takes a call's memory back, and gives it again",
    "The kernel maps and zeroes pages at each call, for at least 10 % of its CPU time. glibc does that with each "
    "block above 32 MB, however long a program has been running; JAX on a CPU does it with large results.",
    " ".join(f"{side}: {fix}" for side, fix in _PAGE_FAULT_FIXES.items()),
)


_BUSY_MACHINE = _doubt("busy_machine", "other processes used the cores",
    "They used more than 15 % of the cores during the run.",
    "Run it again on an idle machine: until then the times are an upper bound.")  # fmt: skip


_THROTTLED = _doubt("throttled", "the device throttled its clocks",
    "Heat or its power limit made it slower during the run.",
    "Check the temperature and the power limit; a throttled device gives the times of a slower one.")  # fmt: skip


def _digits(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2g}"


_NOT_OF_MEDIANS = _doubt("not_of_medians", "the speed-up is not the ratio of the medians",
    "The ratio of the medians lies outside the interval of the speed-up.",
    "Decide by the speed-up: its sides were measured next to each other. More --launches bring both "
    "together.")  # fmt: skip


def unlike_medians(run: Run, speedup: TimeComparison, why: str) -> WarningRaised:
    """Return the warning that a speed-up is not the ratio of the medians."""
    said = f"its speed-up is {ratio(speedup.ratio)}, and not what the medians come to"
    return _warning(run, _NOT_OF_MEDIANS, f"{said}: {why}")


RAISED = (
    _fault("folded_constants", "XLA computed the result while compiling",
        "Most of the FLOPs that JAX handed over are not in the compiled program: it closes over its inputs, or does "
        "not return what it computes.", "Pass the arrays as arguments, and return what you want to measure."),
    _fault("dead_code", "costly operations that nothing uses", "XLA removes what reaches no result.",
        "Return the result if you want to measure its time."),
    _change("dtype_narrowed", "JAX computes in a narrower dtype than NumPy",
        "Without x64, JAX makes float64 float32.", "Give float32 to both, or set JAX_ENABLE_X64=1."),
    _change("compiled_again", "compilations where none was expected",
        "The timed calls compiled: times include it.",
        "Look for a new shape or dtype, or a function made anew at each call."),
    _note("zero_copy", "a copy that moved nothing", "Host and device share the buffer.",
        "On an accelerator the copy costs time; measure it there."),
    _fault("unlike_results", "the sides return different things", "Arrays of other shapes, dtypes or number.",
        "Make both return the same arrays."),
    _fault("results_differ", "the sides return different numbers", "They differ by more than rounding explains.",
        "Find out which one is right before choosing the faster one."),
    _note("compile_cached", "trace, lower or compile came from a cache",
        "Their times are not those of a compile.", "Run without --cache, in a fresh process."),
    _doubt("over_budget", "the first call took longer than the budget", "There are few samples.",
        "A larger --budget, or a smaller size."),
    _doubt("max_seconds_reached", "the hard cap was reached", "Later phases were not measured.",
        "A larger --max-seconds."),
    _doubt("not_captured", "kernels were not captured", "The pass under the profiler did not succeed.",
        "Its message says why; times of the call are unaffected."),
    _note("worker_silent", "a process gave no sign of its run for a while",
        "It may hang in native code; one that stays silent is ended after --max-silence.",
        "If it only needs longer, give a longer --max-silence, or a smaller size."),
)  # fmt: skip
"""Warnings that the engine (`engine/measure/pitfalls.py` and others) or the scheduler raises."""
ENTRIES = (
    _WRONG_RESULT, _THROTTLED, _BUSY_MACHINE, _DISTURBED, _NOT_OF_MEDIANS, _UNSETTLED, _DRIFT, _TWO_MODES, _NOISE,
    _OUTLIERS, _NO_INTERVAL, _FEW_SAMPLES, _PAGE_FAULTS, *RAISED,
)  # fmt: skip
"""In the order in which an explanation has its doubts."""
