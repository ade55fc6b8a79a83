"""Findings about random numbers: bits that take more work than what uses them, and draws by rejection.

Each function yields one finding at most.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from jaxprof.base.grouping import grouped
from jaxprof.base.units import bytes_, integer, percent, scaled
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding
from jaxprof.findings.hlo.scene import WORTH, Scene, check, module_finding, total
from jaxprof.hlo.kernels import ARITHMETIC
from jaxprof.hlo.kernels.execution import Execution
from jaxprof.hlo.kernels.kernels import Kernel, kernels
from jaxprof.hlo.kernels.kinds import instructions_in
from jaxprof.hlo.text.model import Instruction, Module, once_per_module

_ROUNDS = 3
"""Exclusive ors and shifts of unsigned numbers by which threefry shows in a kernel: it has four of both in a group of
rounds; XLA may move one of them to another kernel. Other code that mixes bits so is rare."""
_INTEGERS_PER_BYTE = 5.0
"""Integer operations that a device does while its memory moves a byte: half of what an H100 does in float32, and about
what a TPU v5e and AVX2 do."""
_MOST = 0.4
"""Share of the work of random bits that is reported: a program that draws numbers has to make some."""
_INTEGERS = frozenset({"u32", "s32"})


@frozen
class _Mixing:
    """What one execution of a kernel does to mix bits."""

    operations: int
    numbers: int


@once_per_module
def _mixing(module: Module) -> dict[Hashable, _Mixing]:
    """Return the work of the kernels that make threefry's bits, by their likeness."""
    known: dict[Hashable, _Mixing] = {}
    if " xor(" not in module.text:
        return known
    for kernel in {kernel.likeness: kernel for kernel in kernels(module)}.values():
        inside = [held for held in instructions_in(kernel.instruction) if held.shape.dtype == "u32"]
        opcodes = [held.opcode for held in inside]
        if min(opcodes.count("xor"), opcodes.count("shift-left")) >= _ROUNDS:
            sizes = [held.shape.elements for held in inside if held.opcode in ARITHMETIC]
            known[kernel.likeness] = _Mixing(sum(sizes), max(sizes))
    return known


_FEWER_BITS = {
    "bernoulli": "a mask needs 8 of the 32 bits that jax.random.bernoulli takes for each element, so "
    "jax.lax.bitcast_convert_type(jax.random.bits(key, (n // 4,)), jnp.uint8) < 256 * p makes n decisions of a quarter "
    "of the bits",
    "gumbel": "categorical takes a number for each category and draw, jnp.searchsorted in the cumulative sum one for "
    "each draw",
}
"""How to draw fewer bits, by the function of `jax.random` that draws them."""
_FEWER_OPERATIONS = (
    "jax.config.update('jax_threefry_partitionable', False) takes half the operations for large arrays. {} other "
    "random numbers. On a CPU rbg is slower than threefry."
)


@check(
    "random bits take much of the work",
    "threefry computes each number in 20 rounds of integer operations, some hundred for 32 bits: more than most of "
    "what is done with the number.",
    "Use the generator of the device: jax.config.update('jax_default_prng_impl', 'rbg'), or jax.random.key(seed, "
    "impl='rbg'). It gives other random numbers. Or draw fewer: categorical takes a number for each category and draw.",
    saves="part",
)
def random_bits(scene: Scene) -> Iterator[Finding]:
    mixing = _mixing(scene.module)
    if not mixing or next(rejection_sampling.find(scene), None) is not None:
        return
    bodies = grouped((kernel.computation, kernel) for kernel in scene.kernels)
    work: dict[str, float] = {}
    rest = operations = 0.0
    for inside in bodies.values():
        # On a CPU threefry's rounds are a loop of their own, whose other kernels (copies) belong to it.
        rounds = any(each.likeness in mixing for each in inside) and all(each.dtype in _INTEGERS for each in inside)
        for kernel in inside:
            mixed = mixing.get(kernel.likeness)
            done = mixed.operations * (kernel.count or 1) if mixed is not None else 0
            whole, bits = scene.work(kernel), done / _INTEGERS_PER_BYTE
            if rounds or (mixed is not None and kernel.dtype in _INTEGERS):  # it does nothing with its bits
                bits = max(whole, bits)
            elif mixed is not None:
                rest += total(kernel)
            else:
                rest += whole
            operations += done
            if bits:
                work[kernel.name] = bits
    bits = sum(work.values())
    if bits < _MOST * (bits + rest):
        return
    finding = module_finding(
        f"random bits (threefry) are {percent(bits / (bits + rest))} of the program's work: {scaled(operations)} "
        "integer operations a call",
        tuple(sorted(work, key=lambda name: -work[name])),
    )
    if not scene.on_accelerator:  # a CPU has no generator of its own: what makes the bits of these kernels cheaper
        origins = [origin.op_name for kernel in scene.kernels if kernel.name in work for origin in kernel.origins]
        fewer = [text for function, text in _FEWER_BITS.items() if any(function in name for name in origins)]
        draw = f"Draw fewer bits: {'; '.join(fewer)}. " if fewer else ""
        fix = draw + _FEWER_OPERATIONS.format(("It gives", "Both give", "All give")[len(fewer)])
        finding = replace(finding, own_fix=fix)
    yield finding


# -- rejection ---------------------------------------------------------------------------------------------------------


_LANES = 256
"""Fewest numbers that are drawn together by a loop; the few chains of a sampler draw as they go."""


@frozen
class _Rejection:
    """A loop that draws numbers until the last one is accepted."""

    loop: Instruction
    kernels: tuple[Kernel, ...]
    numbers: int


def _asks_all(kernel: Kernel) -> bool:
    """Return whether the kernel reduces an array of truth values, as the condition of such a loop does, in one or
    several steps."""
    for held in instructions_in(kernel.instruction):
        operand = held.operand(0) if held.opcode in ("reduce", "reduce-window") else None
        if operand is not None and operand.shape.dtype == "pred" and operand.shape.elements >= _LANES:
            return True
    return False


@check(
    "random numbers are drawn by rejection",
    "Gamma, beta, Poisson and binomial numbers are drawn again until they are accepted. On a device all wait for the "
    "last one: each iteration draws for the whole array, most of which was accepted in the first.",
    "Draw a fixed number of candidates at once and take the first that is accepted (four of Marsaglia and Tsang for a "
    "gamma number); look a Poisson number of few rates up in its table (jnp.searchsorted); invert the distribution "
    "function; or take a normal or log-normal number where the model allows it. On a CPU let numpy.random.Generator "
    "draw them before the step.",
    saves="part",
)
def rejection_sampling(scene: Scene) -> Iterator[Finding]:
    mixing = _mixing(scene.module)
    if not mixing:
        return
    # The outermost loops of unknown length that draw arrays of numbers, and end when no element needs another.
    execution = scene.module.once(Execution)
    bodies = grouped((kernel.computation, kernel) for kernel in scene.kernels)
    found: dict[Instruction, _Rejection] = {}
    seen: set[str] = set()
    for caller in reversed(execution.post_order):  # callers first
        for edge in execution.edges[caller]:
            if caller in seen or edge.caller.opcode != "while" or edge.times is not None:
                continue
            reached = execution.callees_of(edge.caller)
            inner = tuple(kernel for computation in reached for kernel in bodies.get(computation, ()))
            drawn = max((mixing[each.likeness].numbers for each in inner if each.likeness in mixing), default=0)
            if drawn >= _LANES and any(map(_asks_all, inner)):
                found[edge.caller] = _Rejection(edge.caller, inner, drawn)
                seen.update(reached)
    loops = [*found.values()]
    inside = [kernel for loop in loops for kernel in loop.kernels]
    if not loops or (share := scene.share(inside)) < WORTH:
        return
    loops.sort(key=lambda loop: -sum(map(total, loop.kernels)))
    first = loops[0]
    path = first.loop.metadata.first_name.partition("/while")[0]
    names = [part.rpartition("(")[2].rstrip(")") for part in path.split("/")]
    name = next((name.strip("_") for name in reversed(names) if name), "a loop")
    yield module_finding(
        f"{name} draws until the last number is accepted: each iteration draws {integer(first.numbers)} numbers and "
        f"moves {bytes_(sum(map(total, first.kernels)))}, for all; one iteration is {percent(share)} of the program's "
        "work, and how many there are depends on chance",
        tuple(dict.fromkeys(kernel.name for kernel in sorted(inside, key=lambda kernel: -scene.work(kernel)))),
    )
