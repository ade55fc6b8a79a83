"""The finding of measured kernels that are far below what their device reaches, with the reason if their HLO shows one.

What a device reaches are the rates of `triad` and `gemm-peak` on this machine, or the vendor's. A kernel is not blamed
for work that is not counted: one whose FLOPs are unknown (a library call) has no ceiling, and transcendentals count as
several FLOPs each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from jaxprof.base.units import bytes_, integer, percent, scaled
from jaxprof.base.values import frozen
from jaxprof.events.finding import CatalogueEntry
from jaxprof.findings.hlo.gradients import GRADIENT_OF_DIFFERENCES
from jaxprof.hlo.kernels.kernels import Kernel, kernels
from jaxprof.hlo.kernels.kinds import instructions_in, reorders
from jaxprof.hlo.kernels.opcodes import ARITHMETIC, FREE, PRODUCTS
from jaxprof.hlo.text.model import Instruction

if TYPE_CHECKING:
    from jaxprof.analysis.kernels import MeasuredKernel
    from jaxprof.hlo.kernels.cost.peaks import DevicePeaks

FAR_BELOW = 0.25
"""Most of what its device reaches that a slow kernel reaches."""
MUCH = 0.2
"""Least share of the time that a slow kernel takes."""
_TRANSCENDENTAL_FLOPS = 16
"""FLOPs of one transcendental in code that uses SIMD: a polynomial, and what reduces its argument."""
_VECTOR_SHARE = 0.5
"""Rate of operations that are no products over the peak of products, of which each multiplies and adds at once."""
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
            sizes, order = operand.shape.dimensions, operand.shape.layout.minor_to_major
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
