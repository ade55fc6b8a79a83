"""Findings of compiled programs for an explanation, with the time or the traffic of their kernels; and the finding of
kernels that are far below what their device reaches, with the reason if their HLO shows one.

What a device reaches are the rates of `triad` and `gemm-peak` on this machine, or the vendor's. A kernel is not blamed
for work that is not counted: one whose FLOPs are unknown (a library call) has no ceiling, and transcendentals count as
several FLOPs each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import TYPE_CHECKING, NamedTuple

from jaxprof.analysis.kernels.measured import measure_kernels
from jaxprof.analysis.kernels.ranking import ranking_on
from jaxprof.analysis.runs.ceilings import ceilings_for, machine_of_run, processor_share
from jaxprof.base.units import bytes_, integer, percent, scaled
from jaxprof.base.values import frozen
from jaxprof.events.finding import CatalogueEntry, Finding, Scope
from jaxprof.findings import code_line, rank
from jaxprof.findings.hlo import CHECKS, findings, line_of
from jaxprof.findings.hlo.scene import Scene, lines_of
from jaxprof.findings.hlo.transforms import GRADIENT_OF_DIFFERENCES
from jaxprof.hlo.kernels import ARITHMETIC, FREE, PRODUCTS
from jaxprof.hlo.kernels.dataflow import Value
from jaxprof.hlo.kernels.execution import functions_of_calls
from jaxprof.hlo.kernels.kernels import Kernel, kernels, with_running
from jaxprof.hlo.kernels.kinds import instructions_in, platform_of, reorders
from jaxprof.hlo.text.model import Instruction, Module
from jaxprof.session import Run, Session
from jaxprof.session.run import IMPORTED

if TYPE_CHECKING:
    from jaxprof.analysis.kernels import MeasuredKernel
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.hlo.kernels.cost.peaks import DevicePeaks

FAR_BELOW = 0.25
"""Most of what its device reaches that a slow kernel reaches."""
MUCH = 0.2
"""Least share of the time that a slow kernel takes."""
_TRANSCENDENTAL_FLOPS = 16
"""FLOPs of one transcendental in code that uses SIMD: a polynomial, and what reduces its argument."""
_VECTOR_SHARE = 0.5
"""Rate of operations that are no products over the peak of products, each of which multiplies and adds at once."""
_FEWEST_BYTES = 32 << 10
_FEWEST_FLOPS = 1e5
"""Work of one execution, with `_FEWEST_BYTES`, below which its launch takes longer than it does."""
_ONE_THREAD = 1.2
"""Mean number of threads at once below which a kernel runs in one."""
SLOW_KERNEL = CatalogueEntry(
    "slow_kernel",
    "a kernel is far below what its device reaches",
    "It takes a fifth of the time or more, and reaches at most a quarter of what `triad` (bytes) or `gemm-peak` "
    "(FLOPs) reach on this machine, or of the vendor's figures. The reason is one that its HLO shows, else unknown.",
    "See what is in it (jaxprof hlo SESSION), and write the line another way: operations on whole arrays, the last "
    "axis innermost. jaxprof compare shows which way is faster.",
    "capture",
    "hlo.md#roofline",
)


@frozen
class Reached:
    """How much of its device a kernel reaches, by the ceiling that it is nearest to."""

    share: float
    text: str
    """`0.9 GB/s of the 19 GB/s that triad reaches here`."""
    of_memory: bool
    """Whether that ceiling is the bandwidth of memory."""


def device_use(measured: MeasuredKernel, device: DevicePeaks) -> Reached | None:
    """Return how much of `device` a kernel reaches in its shortest execution, because others may have waited for a
    processor; None if that is unknown."""
    kernel = measured.kernel
    if kernel is None or measured.flops_per_second is None or measured.minimum_seconds <= 0:
        return None
    peak = device.peak(kernel.dtype, matrix=kernel.uses_matrix_units, precision=kernel.precision or "default")
    flops = (kernel.flops or 0.0) + _TRANSCENDENTAL_FLOPS * (kernel.transcendentals or 0.0)
    if peak is None and flops:
        return None
    here = "measured on this machine" in device.source
    if peak is not None and here and not kernel.uses_matrix_units:
        peak *= _VECTOR_SHARE
    took = measured.minimum_seconds
    ceilings = [(kernel.bytes / took, device.bandwidth, "B/s", "triad")]
    if peak:
        ceilings.append((flops / took, peak, "FLOP/s", "gemm-peak"))
    rate, ceiling, unit, workload = max(ceilings, key=lambda each: each[0] / each[1])
    whose = f"that {workload} reaches here" if here else f"of {device.title}"
    return Reached(
        rate / ceiling, f"{scaled(rate, unit)} of the {scaled(ceiling, unit)} {whose}", of_memory=unit == "B/s"
    )


def is_large(kernel: Kernel) -> bool:
    """Return whether a kernel has more work than its launch takes."""
    return kernel.bytes >= _FEWEST_BYTES or (kernel.flops or 0.0) >= _FEWEST_FLOPS


class _Form(NamedTuple):
    """A form of kernels that is slow, why, and what to do instead."""

    fits: Callable[[Sequence[Instruction], Set[str]], bool]
    """Whether a kernel with these instructions, and opcodes that cost something, has the form."""
    why: str
    fix: str


def _has(*opcodes: str) -> Callable[[Sequence[Instruction], Set[str]], bool]:
    return lambda _held, present: any(opcode in present for opcode in opcodes)


def _is_grouped(held: Sequence[Instruction], _present: Set[str]) -> bool:
    """Return whether a convolution has several groups, as one has whose filters differ under `vmap`."""
    groups = (each.attributes.get(name, "1") for each in held for name in ("feature_group_count", "batch_group_count"))
    return any(count != "1" for count in groups)


def _reorders(held: Sequence[Instruction], present: Set[str]) -> bool:
    """Return whether it reads an array in another order; products have code of their own for that."""
    return not present & PRODUCTS and any(map(reorders, held))


def _finds_an_index(held: Sequence[Instruction], _present: Set[str]) -> bool:
    """Return whether it reduces values together with their indices, as argmax does."""
    return any(each.opcode == "reduce" and len(each.operands) > 2 for each in held)


def _reduces_apart(held: Sequence[Instruction], _present: Set[str]) -> bool:
    """Return whether it reduces a large array along axes without the one whose elements lie together."""
    for each in held:
        if each.opcode == "reduce" and (operand := each.operand(0)) is not None and operand.shape.layout is not None:
            sizes, order = operand.shape.dimensions, operand.shape.minor_to_major
            innermost = next((number for number in order if sizes[number] != 1), None)
            if innermost is not None and innermost not in each.integers("dimensions"):
                return True
    return False


def _calls_scalar_functions(held: Sequence[Instruction], _present: Set[str]) -> bool:
    return any(
        each.opcode in _SCALAR and each.shape.leaves() and each.shape.leaves()[0].dtype[0] in "bfc" for each in held
    )


_SCALAR = frozenset({"atan2", "cbrt", "cosine", "power", "remainder", "sine", "tan"})
"""Functions for which XLA calls a routine for each element on a CPU: measured are 5 to 20 ns an element, where `exp`,
`tanh`, `log` and `erf`, which use SIMD, take 0.3 to 0.7 ns."""
_BYTES_OF_A_START = 4 << 10
"""Bytes that move while the next kernel of a loop is started on a CPU (some 0.1 µs)."""
_MORE_AT_ONCE = (
    "Let one iteration do more: unroll= of the scan, a vmap over what the loop goes through, or several steps in one."
)
_FORMS = (
    _Form(_has("scatter"), "a scatter applies its updates one after another",
        "Update whole rows at once (segment_sum of the whole array in place of a vmap over its columns), or replace "
        "the scatter by a gather, a sort with a cumulative sum, or a product."),
    _Form(_has("sort", "topk"), "a sort compares elements one by one",
        "Sort less often, fewer elements, or keys alone; jax.lax.top_k finds a few largest ones."),
    _Form(_has("select-and-scatter", "reduce-window"), "each window is reduced element by element",
        "Combine slices in place of windows: jnp.maximum(x[::2], x[1::2])."),
    _Form(_finds_an_index, "values and their indices are compared one by one",
        ""),
    _Form(_reduces_apart, "it reduces an axis whose elements do not lie together",
        "Let the axis that is reduced be the last one in memory: keep the array transposed, or transpose it once."),
    _Form(_calls_scalar_functions, "it calls a function for each element (sin, pow, arctan2, remainder and the like)",
        "Compute the function for fewer elements (a table, a recurrence, before a broadcast), or write it with "
        "operations that use SIMD: x - m * jnp.floor(x / m) for a remainder, jnp.exp(p * jnp.log(x)) for a power."),
    _Form(_is_grouped, "a grouped convolution computes one group after the other",
        "Compute the groups apart: jax.lax.map in place of the vmap over filters."),
    _Form(_reorders, "it reads an array in another order than it lies in",
        "Keep the axis that the computation runs along last, in every operand, or transpose once, outside the loop."),
    _Form(lambda _held, present: bool(present & {"pad", "reverse"}) and len(present & ARITHMETIC) > 1,
        "padding or reversing arrays in the same loop as arithmetic leaves it without SIMD",
        GRADIENT_OF_DIFFERENCES),
    _Form(_has("gather"), "a gather reads elements one by one",
        "Gather whole rows (the indexed axis first), or sort the indices, so that neighbours are read together."),
)  # fmt: skip
"""Forms of kernels that are slow on a CPU. The first one that fits is the reason."""


def reason(kernel: Kernel, platform: str) -> tuple[str, str]:
    """Return why a kernel is slow, and what to do instead; empty if its HLO shows no reason."""
    if kernel.runs_kernels:
        every = kernels(kernel.instruction.computation.module)
        runs = sum(each.count or 0 for each in every if each.computation in kernel.computations_inside)
        launches = runs / (kernel.count or 1)
        if platform == "cpu" and launches and kernel.bytes < launches * _BYTES_OF_A_START:
            each = f"its {integer(launches)} kernels move {bytes_(kernel.bytes / launches)} each"
            return f"{each}, and starting one takes longer", _MORE_AT_ONCE
        return "", ""
    held = instructions_in(kernel.instruction)
    present = {instruction.opcode for instruction in held} - FREE
    if platform == "cpu":
        for form in _FORMS:
            if form.fits(held, present):
                return form.why, form.fix
    return "", ""


def slow_kernels(
    measured: Sequence[MeasuredKernel], device: DevicePeaks, platform: str, ours: float
) -> Iterator[tuple[Kernel, str, str]]:
    """Yield the slow kernels of a program, each with a sentence, and with what to change, which is empty if that is not
    known. On a CPU, whose compiler leaves many a loop in one thread or without SIMD, one that nothing is known to mend
    is left to what is unexplained. `ours`: share of a processor that each thread had, at least."""
    for each in measured:
        kernel = each.kernel
        if kernel is None or (each.share or 0.0) < MUCH or not is_large(kernel):
            continue
        most = device_use(each, device)
        if most is not None and most.share <= FAR_BELOW * ours:
            why, fix = reason(kernel, platform)
            if platform == "cpu" and not fix:
                continue
            alone = platform == "cpu" and (each.parallelism or 2.0) < _ONE_THREAD
            message = f"{kernel.name} ({kernel.kind}) reaches {most.text}, {percent(most.share)}"
            yield kernel, f"{message}{', in one thread' if alone else ''}: {why or 'the reason is not known'}", fix


_WORTH = 0.02
"""Share of the kernels' time below which a finding is left out, if that time is known."""
_KERNELS_NAMED = 50
_SAVES = {check.code: check.saves for check in CHECKS} | {SLOW_KERNEL.code: "part"}


@frozen(kw_only=True)
class KernelWeights:
    """Time of a module's kernels: their shares of `seconds`, by name."""

    scope: Scope
    shares: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    scope_seconds: float | None = None
    """Seconds of the whole scope, of which the kernels are a part; if None, `seconds`."""
    estimate: bool = True
    """Whether shares or seconds were derived, rather than both timed together."""


def weights_of_call(session: Session, run: Run, module: Module) -> KernelWeights:
    """Return the kernels of a measured or compiled function as parts of one call. The weights come from its capture if
    that recorded all of the call, else from the least times on its device, else, if there is a capture, from the work
    of each kernel; otherwise they are unknown."""
    from jaxprof.analysis.runs.run_result import (
        result,
    )  # imports the statistics, which a module of a file does not need

    summary = result(session, run.id).summary
    median, low, high = (summary.median, summary.low, summary.high) if summary is not None else (None, None, None)
    captured = measure_kernels(session, run.id)
    captured_seconds = sum(kernel.self_seconds for kernel in captured.kernels) if captured is not None else 0.0
    checks = (check for kind in run.measured if kind in run.trust for check in run.trust[kind].rows)
    # Where the runtime continued ops on threads that it does not record, their times are some part of what they took.
    partial = any(check.code == "unrecorded" and check.verdict == "doubt" for check in checks)
    if captured is not None and captured_seconds > 0 and not partial:
        shares = {kernel.name: kernel.self_seconds / captured_seconds for kernel in reversed(captured.kernels)}
        calls = [kernel.per_call_seconds for kernel in captured.kernels]
        known = sum(seconds for seconds in calls if seconds is not None) or None
        if median is None or known is None or known >= median:  # with the profiler on they may take longer
            return KernelWeights(
                scope="call", shares=shares, seconds=known if median is None else median, low=low, high=high
            )
        # the rest of the call is the host's: dispatch, and the Python of a wrapper around jit
        low, high = (None if bound is None else bound * known / median for bound in (low, high))
        return KernelWeights(scope="call", shares=shares, seconds=known, low=low, high=high, scope_seconds=median)
    machine = machine_of_run(run, ceilings_for(session, run))
    ranked = ranking_on(machine, module, kernels(module), None)
    if ranked.basis != "least":
        if not partial or median is None:
            return KernelWeights(scope="call")
        scene = Scene(module, platform_of(module))
        works = {kernel.name: scene.work(kernel) for kernel in scene.kernels}
        whole = sum(works.values()) or 1.0
        shares = {name: work / whole for name, work in works.items()}
        return KernelWeights(scope="call", shares=shares, seconds=median, low=low, high=high)
    every = range(len(ranked))
    shares = {row.kernel.name: row.share for row in ranked.rows(every) if row.share is not None}
    seconds = median
    if seconds is None:
        seconds = ranked.step.bound_seconds if ranked.step is not None else ranked.total("weight", every)
    return KernelWeights(scope="call", shares=shares, seconds=seconds, low=low, high=high)


def weights_of_profile(session: Session, run: Run, program: ProgramResult | None) -> KernelWeights:
    """Return the kernels of a program of a profile as parts of the time of all its kernels, or of a capture window as
    parts of the recorded program's."""
    captured = measure_kernels(session, run.id)
    imported = [each for each in session.runs.values() if each.plan.how == IMPORTED]
    rows = [row for each in imported if IMPORTED in each.measured for row in each.measured[IMPORTED].rows]
    whole = sum(row.self_seconds for row in rows) / (len({row.device for row in rows}) or 1)
    kernels = reversed(captured.kernels) if captured is not None else ()
    return KernelWeights(
        scope="kernels" if program is None else "program",
        shares={kernel.name: kernel.share for kernel in kernels if kernel.share is not None},
        # the samples of a short program can miss what its own capture shows
        seconds=whole if program is None else max(whole, program.states["device_busy"]),
        scope_seconds=program.wall_seconds if program is not None else None,
        estimate=program is not None,
    )


def findings_of_run(session: Session, run: Run, module: Module) -> list[Finding]:
    """Return the findings of the module of a run in the words, at the cost and in the order of an explanation."""
    if run.plan.how != IMPORTED:
        return sorted(module_findings(session, module, weights_of_call(session, run, module), run), key=rank)
    from jaxprof.findings.program_result import program_result  # only for a session with a program

    recorded = next((program_result(session, each.id) for each in session.programs), None)
    found = module_findings(session, module, weights_of_profile(session, run, recorded), run)
    return sorted(found, key=lambda finding: rank(finding, recorded))


def module_findings(
    session: Session, module: Module, weights: KernelWeights, run: Run, *, verify: str = ""
) -> Iterator[Finding]:
    """Yield the findings of a module of a run with the cost of their kernels, and those kernels that are slow for the
    device without being in one of them."""
    found = (*findings(module), *_slow(session, module, run))
    named = {name for finding in found for name in finding.kernels}  # also loops, which are no kernels
    by_name = {kernel.name: kernel for kernel in reversed(with_running(module, named))}
    explained: set[str] = set()
    with_costs = []
    for finding in found:
        costed = with_cost(finding, weights, by_name)
        if costed is None or (finding.code == SLOW_KERNEL.code and explained.intersection(finding.kernels)):
            continue
        explained.update(finding.kernels if costed.seconds is not None else ())
        with_costs.append(costed)
    for finding in without_overlap(with_costs, weights, by_name):
        yield replace(
            finding,
            code_line=code_line(finding.where, session),
            kernels=finding.kernels[:_KERNELS_NAMED],
            verify=verify,
            run=run.id,
        )


def without_overlap(
    found: Sequence[Finding], weights: KernelWeights, by_name: Mapping[str, Kernel]
) -> Iterator[Finding]:
    """Yield the findings, most important first, with a saving of no more than what those before them leave of the time
    of their kernels; without those whose kernels are gone once a finding before them is mended."""
    claimed: set[str] = set()
    gone: set[str] = set()
    for finding in sorted(found, key=rank):
        names = {name for kernel in finding.kernels for name in _capture_names(kernel, by_name)}
        names |= _functions(finding, by_name)
        if names and names <= gone:
            continue
        gone |= names if finding.seconds is not None and not finding.at_most else set()
        if finding.seconds is None or weights.seconds is None or names.isdisjoint(claimed):
            yield finding
        else:
            left = weights.seconds * sum(weights.shares.get(name, 0.0) for name in names - claimed)
            saves = finding.seconds if finding.saves_seconds is None else finding.saves_seconds
            yield replace(finding, saves_seconds=min(saves, left))
        if finding.seconds is not None:
            claimed |= names


def _slow(session: Session, module: Module, run: Run) -> Iterator[Finding]:
    captured, device = measure_kernels(session, run.id), ceilings_for(session, run)
    if captured is None or device is None:
        return
    ours = processor_share(session, run)
    for kernel, message, fix in slow_kernels(captured.kernels, device, platform_of(module), ours):
        made = kernel.instruction
        # A kernel that XLA made by itself has the line of those beside it.
        near = lines_of(map(Value, (*made.users, *made.operand_instructions()))) if kernel.source is None else ()
        places = (near or (line_of([kernel]),))[:1]
        yield SLOW_KERNEL.complete(Finding(message, places, own_fix=fix or None, kernels=(kernel.name,)))


def with_cost(finding: Finding, weights: KernelWeights, by_name: Mapping[str, Kernel]) -> Finding | None:
    """Return the finding with its cost; None if the kernels take next to no time."""
    timed_names = dict.fromkeys(name for kernel in finding.kernels for name in _capture_names(kernel, by_name))
    share = sum(weights.shares.get(name, 0.0) for name in timed_names)
    saves = _SAVES[finding.code]
    if calls := _functions(finding, by_name) - timed_names.keys():  # which may do more than what the finding is about
        share, saves = share + sum(weights.shares.get(name, 0.0) for name in calls), saves and "part"
    if share <= 0 and saves and weights.scope != "call":
        # Its kernels have no times of their own in the capture, where a call holds them: all of the module at most.
        share, saves = sum(weights.shares.values()), "part"
    if weights.seconds is None or share <= 0 or not saves:
        return finding
    if share < _WORTH:
        return None
    seconds = share * weights.seconds
    return replace(
        finding,
        kernels=(*sorted(calls), *finding.kernels),
        scope=weights.scope,
        seconds=seconds,
        low=None if weights.low is None else share * weights.low,
        high=None if weights.high is None else share * weights.high,
        held=False,
        share=min(1.0, seconds / (weights.scope_seconds or weights.seconds)),
        saves_seconds=seconds if saves == "all" else None,
        estimate=weights.estimate,
        at_most=saves == "part",
    )


def _functions(finding: Finding, by_name: Mapping[str, Kernel]) -> set[str]:
    """Return the names of the calls that hold the kernels of a finding, where a capture has the calls alone."""
    kernels = [by_name[name] for name in finding.kernels if name in by_name]
    calls = functions_of_calls(kernels[0].instruction.computation.module) if kernels else {}
    return {calls[kernel.computation] for kernel in kernels if kernel.computation in calls}


def _capture_names(name: str, by_name: Mapping[str, Kernel]) -> Iterator[str]:
    """Yield the names under which a capture has the time of a kernel: that of a loop is also the time of its kernels,
    and the wait for an asynchronous pair the time of its second half."""
    yield name
    kernel = by_name.get(name)
    if kernel is not None and kernel.runs_kernels:
        yield from (each.name for each in by_name.values() if each.computation in kernel.computations_inside)
    if kernel is not None and kernel.asynchronous:
        yield from (user.name for user in kernel.instruction.users if user.opcode.endswith("-done"))
